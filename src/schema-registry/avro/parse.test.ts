import { existsSync, readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { badDefault } from './defaults.ts';
import { parseAvro } from './parse.ts';
import { avroText } from './text.ts';

const canonical = (schema: unknown, normalize = false) =>
  avroText(parseAvro(typeof schema === 'string' ? schema : JSON.stringify(schema)).schema, {
    normalize,
  });

describe('canonical text', () => {
  test.each([
    ['{"type":"int"}', '"int"'],
    ['// c\n{"type": /* "x" */ "int", "u": "// \\" no"}', '{"type":"int","u":"// \\" no"}'],
    [
      { type: 'long', logicalType: 'timestamp-millis' },
      '{"type":"long","logicalType":"timestamp-millis"}',
    ],
    [
      { fields: [], namespace: 'a.b', name: 'R', type: 'record' },
      '{"type":"record","name":"R","namespace":"a.b","fields":[]}',
    ],
    [
      { type: 'fixed', name: 'x.F', size: 3, aliases: ['G', 'y.H'] },
      '{"type":"fixed","name":"F","namespace":"x","size":3,"aliases":["G","y.H"]}',
    ],
    [
      { type: 'enum', name: 'E', symbols: ['A'], default: 'A', doc: 'd' },
      '{"type":"enum","name":"E","doc":"d","symbols":["A"],"default":"A"}',
    ],
    [
      ['null', { type: 'map', values: { type: 'array', items: 'bytes' } }],
      '["null",{"type":"map","values":{"type":"array","items":"bytes"}}]',
    ],
  ])('%j', (schema, text) => {
    expect(canonical(schema)).toBe(text);
    expect(canonical(text)).toBe(text);
  });

  test('a second mention is a name, relative to its namespace', () => {
    const inner = {
      type: 'record',
      name: 'N',
      namespace: 'a',
      fields: [{ name: 'next', type: ['null', 'N'] }],
    };
    const outer = {
      type: 'record',
      name: 'R',
      namespace: 'b',
      fields: [
        { name: 'x', type: inner },
        { name: 'y', type: 'a.N', order: 'ignore', aliases: ['z'], default: null, own: 1 },
      ],
    };
    expect(canonical(outer)).toBe(
      '{"type":"record","name":"R","namespace":"b","fields":[{"name":"x","type":{"type":"record","name":"N","namespace":"a","fields":[{"name":"next","type":["null","N"]}]}},{"name":"y","type":"a.N","default":null,"order":"ignore","aliases":["z"],"own":1}]}',
    );
  });

  test('numbers keep their digits', () => {
    const text =
      '{"type":"record","name":"R","fields":[{"name":"a","type":"long","default":9223372036854775807},{"name":"b","type":"double","default":1.0}]}';
    expect(canonical(text)).toBe(text);
  });

  test('normalising sorts foreign properties', () => {
    const a = canonical({ type: 'int', b: 1, a: { z: 1 } }, true);
    expect(a).toBe(canonical({ a: { z: 1 }, b: 1, type: 'int' }, true));
  });

  test('known names stay names, and stand alone without them', () => {
    const { names } = parseAvro('{"type":"fixed","name":"n.F","size":1}');
    const { schema } = parseAvro('{"type":"array","items":"n.F"}', names);
    expect(avroText(schema, { known: names })).toBe('{"type":"array","items":"n.F"}');
    expect(avroText(schema)).toBe(
      '{"type":"array","items":{"type":"fixed","name":"F","namespace":"n","size":1}}',
    );
  });
});

describe('what is no schema', () => {
  const record = (...fields: unknown[]) => ({ type: 'record', name: 'R', fields });
  test.each([
    ['{', 'not JSON'],
    ['int', 'not JSON'],
    ['1', 'not 1'],
    [{}, 'no type'],
    [{ type: 'what' }, 'unknown type "what"'],
    ['"nope.Missing"', 'undefined name: "nope.Missing"'],
    [{ type: 'record', name: 'R' }, 'record R has no fields'],
    [{ type: 'record', fields: [] }, 'no name'],
    [record({ name: 'a', type: 'int' }, { name: 'a', type: 'int' }), 'duplicate field "a"'],
    [record({ name: 'a-b', type: 'int' }), 'illegal name "a-b"'],
    [record({ name: 'a' }), 'has no type'],
    [record({ name: 'a', type: 'int', order: 'up' }), 'order of field'],
    [record({ name: 'a', type: { type: 'fixed', name: 'R', size: 1 } }), "can't redefine R"],
    [{ type: 'enum', name: 'E', symbols: ['A', 'A'] }, 'duplicate symbol "A"'],
    [{ type: 'enum', name: 'E', symbols: ['A'], default: 'B' }, 'none of its symbols'],
    [{ type: 'fixed', name: 'F', size: -1 }, 'no valid size'],
    [{ type: 'array' }, 'no items'],
    [['int', ['int']], 'a union holds no union'],
    [['int', { type: 'int', logicalType: 'date' }], 'duplicate in union: int'],
    [`${'['.repeat(600)}${']'.repeat(600)}`, 'nested deeper'],
  ])('%j', (schema, reason) => {
    expect(() => canonical(schema)).toThrow(reason);
  });
});

test.each([
  ['int', 1, true],
  ['int', 2 ** 31, false],
  ['int', '1', false],
  ['long', 2 ** 40, true],
  ['double', 1, true],
  ['bytes', 'ÿ', true],
  ['bytes', 'Ā', false],
  [['null', 'int'], 5, true],
  [['null', 'int'], 'x', false],
  [{ type: 'array', items: 'int' }, [1, 2], true],
  [{ type: 'map', values: 'int' }, { a: 'b' }, false],
  [{ type: 'enum', name: 'E', symbols: ['A'] }, 'B', false],
])('default of %j: %j', (type, value, fits) => {
  const text = JSON.stringify({
    type: 'record',
    name: 'R',
    fields: [{ name: 'a', type, default: value }],
  });
  expect(badDefault(parseAvro(text).schema)).toBe(fits ? undefined : 'R.a');
});

describe('anything at all', () => {
  const words = fc.constantFrom(
    'type',
    'name',
    'fields',
    'items',
    'record',
    'array',
    'int',
    'R',
    'symbols',
    'enum',
    'union',
    'default',
    'size',
    'fixed',
    'aliases',
  );
  const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      words,
      fc.integer(),
      fc.constant(null),
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(words, tie('tree'), { maxKeys: 5 }),
    ),
  }));

  test('is a schema whose text is its own canonical text, or refused as invalid', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          tree.map((value) => JSON.stringify(value)),
          fc.string(),
        ),
        (text) => {
          let once: string;
          try {
            once = canonical(text);
          } catch (caught) {
            expect(caught).toMatchObject({ code: 'invalid' });
            return;
          }
          expect(canonical(once)).toBe(once);
        },
      ),
      { numRuns: 2_000, seed: 5 },
    );
  });
});

const SAMPLES = new URL('../../../../shared/data/datagen/', import.meta.url);

test.skipIf(!existsSync(SAMPLES))('real schemas keep every attribute', () => {
  for (const file of readdirSync(SAMPLES).filter((name) => name.endsWith('.avsc'))) {
    const source = readFileSync(new URL(file, SAMPLES), 'utf8');
    const text = canonical(source);
    const attributes = (schema: string) => schema.match(/"arg\.properties"/g)?.length;
    expect(canonical(text), file).toBe(text);
    expect(attributes(text), file).toBe(attributes(source.replaceAll(/\/\/.*/g, '')));
  }
});
