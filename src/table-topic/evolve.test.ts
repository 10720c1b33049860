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
});
