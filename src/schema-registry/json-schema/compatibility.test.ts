// Changes of JSON Schemas beyond the recorded verdicts (levels.test.ts).
import { describe, expect, test } from 'vitest';
import { jsonDifferences } from './compatibility.ts';
import { parseJsonSchema } from './parse.ts';

const parse = (schema: unknown) => parseJsonSchema(JSON.stringify(schema), new Map()).root;
const changes = (before: unknown, after: unknown) =>
  jsonDifferences(parse(after), parse(before)).map(
    ({ type, path }) => `${type} #/${path.join('/')}`,
  );
const closed = (properties: object, others: object = {}) => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...others,
});
const MODERN = { $schema: 'https://json-schema.org/draft/2020-12/schema' };
const I = { type: 'integer' };
const S = { type: 'string' };

describe('breaks', () => {
  test.each<[unknown, unknown, string[]]>([
    [true, S, ['TYPE_CHANGED #/']],
    [
      closed({ a: closed({}) }),
      closed({ a: closed({ b: I }, { required: ['b'] }) }),
      ['REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a/properties/b'],
    ],
    [
      closed({ a: I }),
      closed({ a: I }, { required: ['a'] }),
      ['REQUIRED_ATTRIBUTE_ADDED #/required/a'],
    ],
    [
      { type: 'object', patternProperties: { '^x': I } },
      closed({ xa: S }, { patternProperties: { '^x': I } }),
      [
        'TYPE_CHANGED #/properties/xa',
        'PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/xa',
        'ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties',
      ],
    ],
    [
      { type: 'array', items: [S, I], additionalItems: false },
      { type: 'array', items: [S], additionalItems: false },
      ['ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1'],
    ],
    [
      { ...MODERN, prefixItems: [S], items: I },
      { ...MODERN, prefixItems: [S], items: S },
      ['TYPE_CHANGED #/additionalItems'],
    ],
    [
      { ...MODERN, type: 'object', unevaluatedProperties: true },
      { ...MODERN, type: 'object', unevaluatedProperties: false },
      ['UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties'],
    ],
    [
      { ...MODERN, dependentRequired: { a: ['b'] } },
      { ...MODERN, dependentRequired: { a: ['b', 'c'] } },
      ['DEPENDENCY_ARRAY_EXTENDED #/dependencies/a'],
    ],
    [
      { minimum: 1, exclusiveMinimum: false },
      { minimum: 1, exclusiveMinimum: true },
      ['EXCLUSIVE_MINIMUM_ADDED #/exclusiveMinimum'],
    ],
    [{ type: ['string', 'null'] }, S, ['TYPE_CHANGED #/']],
    [{ not: I }, { not: { type: ['integer', 'string'] } }, ['NOT_TYPE_EXTENDED #/not']],
    [{ enum: [1, { a: 1, b: 2 }] }, { enum: [1] }, ['ENUM_ARRAY_NARROWED #/enum']],
    [
      { oneOf: [S, I] },
      { oneOf: [{ type: 'boolean' }, I] },
      ['COMBINED_TYPE_SUBSCHEMAS_CHANGED #/'],
    ],
    [{ oneOf: [S, I] }, { allOf: [S, I] }, ['COMBINED_TYPE_CHANGED #/']],
    [
      { type: 'number', multipleOf: 0.1 },
      { type: 'number', multipleOf: 0.3 },
      ['MULTIPLE_OF_EXPANDED #/multipleOf'],
    ],
  ])('%j → %j', (before, after, found) => {
    expect(changes(before, after)).toEqual(found);
  });
});

test.each<[string, unknown, unknown]>([
  ['anything goes', S, {}],
  ['a type among several', S, { type: ['string', 'null'] }],
  ['values in another order', { enum: [1, { a: 1, b: 2 }] }, { enum: [{ b: 2, a: 1 }, 1.0] }],
  [
    'covered by a pattern',
    closed({}, { patternProperties: { '^x': S } }),
    closed({ xa: S }, { patternProperties: { '^x': S } }),
  ],
  ['with a default', closed({}), closed({ a: { ...I, default: 1 } }, { required: ['a'] })],
  ['annotations', { type: 'object', title: 'A' }, { type: 'object', description: 'B', $id: 'x' }],
  [
    'bytes of Kafka Connect',
    { type: 'number', 'connect.type': 'bytes' },
    { type: 'string', 'connect.type': 'bytes' },
  ],
  [
    'a pattern that RE2 has not',
    { type: 'object', patternProperties: { '(?=x)': S } },
    { type: 'object', patternProperties: { '(?=x)': S } },
  ],
])('%s is no break', (_name, before, after) => {
  expect(changes(before, after)).toEqual([]);
});

describe('recursion', () => {
  const list = (value: object, others: object = {}) => ({
    $ref: '#/definitions/list',
    definitions: {
      list: closed(
        { value, next: { oneOf: [{ type: 'null' }, { $ref: '#/definitions/list' }] } },
        others,
      ),
    },
  });

  test('ends, and sees what changed inside', () => {
    expect(changes(list(I), list({ type: 'number' }))).toEqual([]);
    expect(changes(list(I), list(S))).toContain('TYPE_CHANGED #/properties/value');
  });

  test('a $ref to itself is refused, as is what is nested too deeply', () => {
    const loop = { $ref: '#/definitions/a', definitions: { a: { $ref: '#/definitions/a' } } };
    expect(() => changes(loop, loop)).toThrow('leads back to itself');
    const deep = (end: object) =>
      Array.from({ length: 240 }).reduce<object>((inner) => ({ type: 'array', items: inner }), end);
    expect(changes(deep(I), deep(S))).toHaveLength(1);
    const chain = (end: object) => ({
      $ref: '#/definitions/a0',
      definitions: Object.fromEntries(
        Array.from({ length: 500 }, (_, at) => [
          `a${at}`,
          at === 499 ? end : { type: 'array', items: { $ref: `#/definitions/a${at + 1}` } },
        ]),
      ),
    });
    expect(() => changes(chain(I), chain(S))).toThrow('nested deeper');
  });

  test('unions of unions take no exponential time', () => {
    const tower = (end: object) =>
      Array.from({ length: 5 }).reduce<object>(
        (inner) => ({ oneOf: [closed({ a: inner }), closed({ b: inner }), closed({ c: inner })] }),
        end,
      );
    expect(changes(tower(I), tower(S)).length).toBeGreaterThan(0);
  });
});
