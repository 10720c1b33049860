import { describe, expect, test } from 'vitest';
import { comparedVersions, incompatibilities } from '../levels.ts';
import { differences } from './compatibility.ts';
import { avroFormat } from './format.ts';
import { parseAvro } from './parse.ts';

const parse = (schema: unknown) => parseAvro(JSON.stringify(schema)).schema;
const compare = (reader: unknown, writer: unknown) => differences(parse(reader), parse(writer));
const record = (fields: unknown[], others: object = {}) => ({
  type: 'record',
  name: 'R',
  fields,
  ...others,
});
const field = (name: string, type: unknown, others: object = {}) => ({ name, type, ...others });
const enumeration = (symbols: string[], others: object = {}) => ({
  type: 'enum',
  name: 'E',
  symbols,
  ...others,
});

describe('readable', () => {
  test.each([
    ['promotion', 'double', 'int'],
    ['bytes as string', 'string', 'bytes'],
    ['union reads one of its branches', ['null', 'long'], 'int'],
    ['a union of one is that one', 'long', ['int']],
    [
      'a field with a default may be missing',
      record([field('a', 'int', { default: 1 })]),
      record([]),
    ],
    ['a field that the reader drops', record([]), record([field('a', 'int')])],
    [
      'a field by alias',
      record([field('b', 'int', { aliases: ['a'] })]),
      record([field('a', 'int')]),
    ],
    ['an enum with a default', enumeration(['A'], { default: 'A' }), enumeration(['A', 'B'])],
    ['another namespace', record([], { namespace: 'x' }), record([])],
    ['a renamed record by alias', { ...record([]), name: 'S', aliases: ['R'] }, record([])],
    ['logical types are annotations', { type: 'long', logicalType: 'timestamp-millis' }, 'int'],
  ])('%s', (_name, reader, writer) => {
    expect(compare(reader, writer)).toEqual([]);
  });

  test('recursion ends', () => {
    const list = (type: string) => record([field('v', type), field('next', ['null', 'R'])]);
    expect(compare(list('long'), list('int'))).toEqual([]);
    expect(compare(list('int'), list('long'))).toMatchObject([{ type: 'TYPE_MISMATCH' }]);
  });
});

describe('not readable, and why', () => {
  test.each([
    ['int', 'long', { type: 'TYPE_MISMATCH', path: '/' }],
    [['null', 'int'], 'string', { type: 'MISSING_UNION_BRANCH', path: '/' }],
    [['null', 'int'], ['null', 'string'], { type: 'MISSING_UNION_BRANCH', path: '/1' }],
    [
      enumeration(['A']),
      enumeration(['A', 'B']),
      { type: 'MISSING_ENUM_SYMBOLS', path: '/symbols', detail: '[B]' },
    ],
    [
      { type: 'fixed', name: 'F', size: 4 },
      { type: 'fixed', name: 'F', size: 8 },
      { type: 'FIXED_SIZE_MISMATCH', path: '/size', detail: 'expected: 8, found: 4' },
    ],
    [
      { ...record([]), name: 'S' },
      record([]),
      { type: 'NAME_MISMATCH', path: '/name', detail: 'expected: R' },
    ],
    [
      record([field('a', 'int'), field('b', 'int')]),
      record([field('a', 'int')]),
      { type: 'READER_FIELD_MISSING_DEFAULT_VALUE', path: '/fields/1', detail: 'b' },
    ],
    [
      { type: 'array', items: record([field('a', { type: 'map', values: 'int' })]) },
      { type: 'array', items: record([field('a', { type: 'map', values: 'long' })]) },
      { type: 'TYPE_MISMATCH', path: '/items/fields/0/type/values' },
    ],
  ])('%j from %j', (reader, writer, reason) => {
    expect(compare(reader, writer)).toMatchObject([reason]);
  });

  test('a verdict that rested on a refuted assumption is forgotten', () => {
    // Reading A's writer as A fails only at its last field, after "next" was taken as readable; B must not inherit that.
    const reader = [
      record([field('next', ['null', 'A']), field('x', 'int')], { name: 'A' }),
      record([field('next', ['null', 'A'])], { name: 'B', aliases: ['A'] }),
    ];
    const writer = record([field('next', ['null', 'A']), field('x', 'string')], { name: 'A' });
    expect(compare(reader, writer)).toMatchObject([{ type: 'MISSING_UNION_BRANCH' }]);
  });

  test('what is too large or too deep to compare is refused, not a crash', () => {
    const union = Array.from({ length: 200 }, (_, index) => record([], { name: `R${index}` }));
    expect(() => compare(union, union)).not.toThrow();
    const larger = Array.from({ length: 400 }, (_, index) => record([], { name: `R${index}` }));
    expect(() => compare(larger, larger)).toThrow('steps');
    const chain = Array.from({ length: 1_200 }, (_, index) =>
      record(index === 0 ? [] : [field('a', `R${index - 1}`)], { name: `R${index}` }),
    );
    expect(() => differences(last(chain), last(chain))).toThrow('nested deeper');
  });

  test('lists of differences do not double level by level', () => {
    const levels = (leaf: string) =>
      Array.from({ length: 40 }, (_, index) => {
        const type = index === 0 ? leaf : `R${index - 1}`;
        return record([field('a', type), field('b', type)], { name: `R${index}` });
      });
    expect(differences(last(levels('int')), last(levels('string'))).length).toBeLessThan(200);
  });
});

/** The last branch of a union of records, which refer to those before them. */
function last(union: unknown[]) {
  const schema = parse(union);
  return schema.type === 'union' ? schema.branches.at(-1)! : schema;
}

test('levels choose versions and directions', () => {
  expect(comparedVersions('NONE', [1, 2])).toEqual([]);
  expect(comparedVersions('FORWARD', [1, 2])).toEqual([2]);
  expect(comparedVersions('FULL_TRANSITIVE', [1, 2])).toEqual([2, 1]);
  const read = (text: string) => avroFormat.parse(text, [], { validateDefaults: false });
  const earlier = { version: 3, text: '"int"', schema: read('"int"') };
  const pair = { schema: read('"long"'), earlier };
  expect(incompatibilities(avroFormat, 'BACKWARD', pair)).toEqual([]);
  expect(incompatibilities(avroFormat, 'FORWARD', pair)).toEqual([
    "{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the old schema does not match with the new schema', additionalInfo:'reader type: INT not compatible with writer type: LONG'}",
    '{oldSchemaVersion: 3}',
    `{oldSchema: '"int"'}`,
    "{compatibility: 'FORWARD'}",
  ]);
});
