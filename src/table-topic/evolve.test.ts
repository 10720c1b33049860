import { describe, expect, test } from 'vitest';
import type { ProposedField, ProposedType } from '../formats/arrow/proposed-schema.ts';
import { findField } from '../formats/iceberg/schema.ts';
import type { Schema } from '../formats/iceberg/types.ts';
import { type EvolveRequest, evolve } from './evolve.ts';

const field = (path: string, type: ProposedType, aliases: string[] = []): ProposedField => ({
  name: path.replace(/^.*\./, ''),
  path,
  type,
  aliases,
});

const empty: Schema = { type: 'struct', 'schema-id': 0, fields: [] };

function step(fields: ProposedField[], over: Partial<EvolveRequest> = {}) {
  return evolve({
    schema: empty,
    lastColumnId: 0,
    fields: new Map(),
    newColumns: true,
    mayRename: true,
    ...over,
    proposed: { type: 'struct', fields },
  });
}

/** Applies the next source to what a former one left. */
function next(
  before: ReturnType<typeof step>,
  fields: ProposedField[],
  over: Partial<EvolveRequest> = {},
) {
  return step(fields, {
    schema: before.schema,
    lastColumnId: before.lastColumnId,
    fields: before.fields,
    ...over,
  });
}

const names = (evolution: ReturnType<typeof step>) =>
  evolution.schema.fields.map((one) => one.name);

describe('evolution', () => {
  test('nothing new changes nothing, not even the objects', () => {
    const first = step([
      field('a', 'int'),
      field('s', { type: 'struct', fields: [field('s.b', 'string')] }),
    ]);
    const again = next(first, [
      field('a', 'int'),
      field('s', { type: 'struct', fields: [field('s.b', 'string')] }),
    ]);
    expect(again.schema).toBe(first.schema);
    expect(again.fields).toBe(first.fields);
    expect(again.bindings).toEqual(first.bindings);
  });

  test('fields are added at any depth: struct, list element, map value', () => {
    const tree =
      (inner: ProposedField[]) =>
      (prefix: string): ProposedType => ({
        type: 'struct',
        fields: inner.map((one) => ({ ...one, path: `${prefix}.${one.path}` })),
      });
    const shape = (inner: ProposedField[]) => [
      field('l', { type: 'list', elementPath: 'l[]', element: tree(inner)('l[]') }),
      field('m', {
        type: 'map',
        keyPath: 'm{key}',
        key: 'string',
        valuePath: 'm{value}',
        value: tree(inner)('m{value}'),
      }),
    ];
    const first = step(shape([field('x', 'int')]));
    const second = next(first, shape([field('x', 'int'), field('y', 'string')]));
    expect(findField(second.schema, 'l.element.y')?.type).toBe('string');
    expect(findField(second.schema, 'm.value.y')?.type).toBe('string');
    expect(second.bindings.get('l[].y')).toBe(findField(second.schema, 'l.element.y')?.id);
    expect(second.bindings.get('l[].x')).toBe(first.bindings.get('l[].x'));
  });

  test('Iceberg promotions widen the column; an older, narrower source still fits', () => {
    const first = step([field('a', 'int'), field('d', 'decimal(9, 2)')]);
    const wide = next(first, [field('a', 'long'), field('d', 'decimal(12, 2)')]);
    expect(wide.schema.fields.map((one) => one.type)).toEqual(['long', 'decimal(12, 2)']);
    const old = next(wide, [field('a', 'int'), field('d', 'decimal(9, 2)')]);
    expect(old.schema).toBe(wide.schema);
    expect(old.bindings.get('a')).toBe(first.bindings.get('a'));
  });

  test('a type Iceberg can’t widen to takes a column of its own, the same one ever after', () => {
    const first = step([field('a', 'int')]);
    const text = next(first, [field('a', 'string')]);
    expect(names(text)).toEqual(['a', 'a__string']);
    expect(text.conflicts).toEqual([
      { path: 'a', column: 'a', columnType: 'int', sourceType: 'string' },
    ]);
    const back = next(text, [field('a', 'int')]);
    expect(back.bindings.get('a')).toBe(first.bindings.get('a'));
    const again = next(back, [field('a', 'string')]);
    expect(again.schema).toBe(text.schema);
    expect(again.bindings.get('a')).toBe(text.bindings.get('a'));
  });

  test('without new columns a conflict is only reported', () => {
    const first = step([field('a', 'int'), field('b', 'int')]);
    const text = next(first, [field('a', 'string'), field('b', 'int')], { newColumns: false });
    expect(text.schema).toBe(first.schema);
    expect(text.conflicts).toHaveLength(1);
    expect([...text.bindings.keys()]).toEqual(['b']);
  });

  test('the newest version renames by alias, an older one interleaved never renames back', () => {
    const first = step([field('s', { type: 'struct', fields: [field('s.old', 'int')] })]);
    const renamed = next(first, [
      field('t', { type: 'struct', fields: [field('t.new', 'int', ['old'])] }, ['s']),
    ]);
    expect(renamed.schema.fields).toMatchObject([
      { id: 1, name: 't', type: { fields: [{ id: 2, name: 'new' }] } },
    ]);
    const older = next(renamed, [field('s', { type: 'struct', fields: [field('s.old', 'int')] })], {
      mayRename: false,
    });
    expect(older.schema).toBe(renamed.schema);
    expect(older.bindings).toEqual(
      new Map([
        ['s', 1],
        ['s.old', 2],
      ]),
    );
    const early = next(first, [field('x', 'int', ['nothing'])], { mayRename: false });
    expect(names(early)).toEqual(['s', 'x']);
  });

  test('a dropped column stays dropped', () => {
    const first = step([field('a', 'int'), field('b', 'int')]);
    const dropped = { ...first.schema, fields: first.schema.fields.slice(1) };
    const again = next({ ...first, schema: dropped }, [field('a', 'int'), field('b', 'int')]);
    expect(again.schema).toBe(dropped);
    expect([...again.bindings.keys()]).toEqual(['b']);
  });

  test('names that differ in case only are told apart; ids never clash', () => {
    const evolution = step([field('id', 'int')]);
    const clash = next(evolution, [field('Id', 'int')]);
    expect(names(clash)).toEqual(['id', 'Id_2']);
    const nested = next(clash, [
      field('p', { type: 'list', elementPath: 'p[]', element: 'int' }),
      field('q', 'long'),
    ]);
    const ids = [...nested.fields.values()];
    expect(new Set(ids).size).toBe(ids.length);
    expect(Math.max(...ids)).toBe(nested.lastColumnId);
  });

  test('a column somebody added by hand is used when it fits', () => {
    const schema: Schema = {
      ...empty,
      fields: [
        { id: 7, name: 'a', required: false, type: 'long' },
        { id: 8, name: 'b', required: false, type: 'string' },
      ],
    };
    const evolution = step([field('a', 'int'), field('b', 'int')], { schema, lastColumnId: 8 });
    expect(evolution.bindings.get('a')).toBe(7);
    expect(names(evolution)).toEqual(['a', 'b', 'b__int']);
  });

  test('by number: the newest version renames, an older one and a reader’s own name stay', () => {
    const at = (path: string, name: string, type: ProposedType = 'int'): ProposedField => ({
      ...field(path, type),
      name,
    });
    const inner = (name: string): ProposedType => ({
      type: 'struct',
      fields: [at('\\#1.\\#1', name)],
    });
    const first = step([at('\\#1', 'old', inner('x'))], { mayRename: false });
    const second = next(first, [at('\\#1', 'now', inner('y'))]);
    expect(second.schema.fields).toMatchObject([
      { id: 1, name: 'now', type: { fields: [{ id: 2, name: 'y' }] } },
    ]);
    expect(next(second, [at('\\#1', 'old', inner('x'))], { mayRename: false }).schema).toBe(
      second.schema,
    );
    const [column] = second.schema.fields;
    const byHand = { ...second.schema, fields: [{ ...column!, name: 'theirs' }] };
    const again = next({ ...second, schema: byHand }, [at('\\#1', 'now', inner('y'))]);
    expect(again.schema).toBe(byHand);
    expect(next(again, [at('\\#1', 'third', inner('y'))]).schema.fields[0]!.name).toBe('third');
  });

  test('renames: over a version that sent nothing, late, and back again', () => {
    const s = (name: string, inner: string, aliases: string[][] = [[], []]) => [
      field(
        name,
        { type: 'struct', fields: [field(`${name}.${inner}`, 'int', aliases[1])] },
        aliases[0],
      ),
    ];
    const first = step(s('s', 'a'));
    const third = next(
      first,
      s('u', 'c', [
        ['t', 's'],
        ['b', 'a'],
      ]),
    );
    expect(third.schema.fields).toMatchObject([
      { id: 1, name: 'u', type: { fields: [{ id: 2, name: 'c' }] } },
    ]);
    // Seen first while a newer version was registered already, which has the name too.
    const late = next(first, s('t', 'a', [['s'], []]), { mayRename: false });
    expect(names(late)).toEqual(['s']);
    expect(names(next(late, s('t', 'a', [['s'], []])))).toEqual(['t']);
    const back = next(third, s('s', 'a', [['u'], ['c']]));
    expect(back.schema.fields).toMatchObject([
      { id: 1, name: 's', type: { fields: [{ id: 2, name: 'a' }] } },
    ]);
    expect(next(back, s('u', 'c', [['s'], ['a']]), { mayRename: false }).schema).toBe(back.schema);
  });

  test('a former name that another field has, or claims first, is not followed', () => {
    const first = step([field('a', 'int')]);
    for (const order of [0, 1]) {
      const both = [field('b', 'int', ['a']), field('a', 'int')];
      const second = next(first, order === 0 ? both : both.toReversed());
      expect(second.bindings.get('a')).toBe(1);
      expect(second.bindings.get('b')).toBe(2);
    }
    const claimed = next(first, [field('b', 'int', ['a']), field('c', 'int', ['a'])]);
    expect(names(claimed)).toEqual(['b', 'c']);
    // Renamed away, and a new field of the former name beside it.
    const renamed = next(first, [field('b', 'int', ['a'])]);
    const reused = next(renamed, [field('a', 'int'), field('b', 'int', ['a'])]);
    expect([reused.bindings.get('b'), reused.bindings.get('a')]).toEqual([1, 2]);
  });

  test('incompatible lists and maps: a column for each type, never another for one that came before', () => {
    const list = (element: ProposedType) => [
      field('l', { type: 'list', elementPath: 'l[]', element }),
    ];
    const struct: ProposedType = { type: 'struct', fields: [field('l[].x', 'int')] };
    const sources = [list('int'), list('string'), list(struct), list('boolean')];
    let table = step(sources[0]!);
    for (const source of sources.slice(1)) table = next(table, source);
    expect(names(table)).toEqual(['l', 'l__list_string', 'l__list_struct', 'l__list_boolean']);
    for (const source of sources) {
      const again = next(table, source);
      expect(again.schema).toBe(table.schema);
      expect(again.fields).toBe(table.fields);
    }
    const wider = next(table, list({ type: 'struct', fields: [field('l[].x', 'string')] }));
    expect(findField(wider.schema, 'l__list_struct.element.x__string')).toBeDefined();
    expect(names(next(step([field('a', 'string')]), [field('a', 'int')]))).toEqual(['a', 'a__int']);
  });

  test('a further column is widened before another is made', () => {
    const text = step([field('a', 'string')]);
    const int = next(text, [field('a', 'int')]);
    const long = next(int, [field('a', 'long')]);
    expect(long.schema.fields.map((one) => [one.name, one.type])).toEqual([
      ['a', 'string'],
      ['a__int', 'long'],
    ]);
    expect(next(long, [field('a', 'int')]).bindings.get('a')).toBe(2);
  });

  test('names with former ones at every level of a deep record cost nothing', () => {
    const deep = (prefix: string, aliases: string[]): ProposedField[] => {
      let fields: ProposedField[] = [];
      for (let level = 60; level > 0; level--) {
        const path = Array.from({ length: level }, () => prefix).join('.');
        const type: ProposedType = fields.length === 0 ? 'int' : { type: 'struct', fields };
        fields = [{ name: prefix, path, type, aliases }];
      }
      return fields;
    };
    const first = step(deep('a', []));
    const second = next(first, deep('b', ['x', 'y', 'z', 'a']));
    expect(second.lastColumnId).toBe(first.lastColumnId);
    expect(findField(second.schema, Array.from({ length: 60 }, () => 'b').join('.'))?.id).toBe(60);
  });

  test('what an adopted table requires inside is made optional once a source may leave it out', () => {
    const schema: Schema = {
      ...empty,
      fields: [
        {
          id: 1,
          name: 's',
          required: false,
          type: { type: 'struct', fields: [{ id: 2, name: 'x', required: true, type: 'int' }] },
        },
      ],
    };
    const adopted = step([field('s', { type: 'struct', fields: [field('s.y', 'int')] })], {
      schema,
      lastColumnId: 2,
    });
    expect(findField(adopted.schema, 's.x')?.required).toBe(false);
  });
});
