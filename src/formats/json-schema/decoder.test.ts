// Columns and rows of JSON Schemas: every keyword that decides on a column, every draft's way of referring.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ProposedType } from '../arrow/proposed-schema.ts';
import { TableColumns } from '../arrow/table-columns.ts';
import { commitForTest } from '../arrow/testing.ts';
import { compileJsonSchemaDecoder } from './decoder.ts';
import type { JsonDocument } from './documents.ts';
import { jsonSchemaShape } from './shape.ts';
import type { ShapeOptions } from './shapes.ts';
import { shapeToProposed, shapeType } from './to-iceberg.ts';

const OPTIONS: ShapeOptions = { time: 'string' };

function tableOf(schema: unknown, references: JsonDocument[] = [], options = OPTIONS) {
  const shape = jsonSchemaShape(JSON.stringify(schema), references, options);
  const struct = shape.kind === 'struct';
  const path = '_kafka_value';
  const proposed = struct
    ? shapeToProposed(shape)
    : {
        type: 'struct' as const,
        fields: [{ name: path, aliases: [], path, type: shapeType(shape, path) }],
      };
  const { schema: table, bindings } = commitForTest(proposed);
  const columns = new TableColumns(table);
  const source = struct ? { shape } : { shape, path };
  const decoder = compileJsonSchemaDecoder(source, columns, bindings);
  return {
    types: Object.fromEntries(proposed.fields.map((field) => [field.name, short(field.type)])),
    columns,
    take(value: unknown, text = JSON.stringify(value)): unknown {
      const bytes = Buffer.from(`x${text}y`);
      const reason = decoder.decode(bytes, 1, bytes.length - 1);
      if (reason !== undefined) return reason;
      columns.endRow();
      columns.align();
      const row = columns.rowCount - 1;
      return Object.fromEntries(
        table.fields.map((field, i) => [field.name, plain(columns.columns[i]!.valueAt(row))]),
      );
    },
  };
}

/** A type in one line. */
function short(type: ProposedType): string {
  if (typeof type === 'string') return type;
  if (type.type === 'list') return `list<${short(type.element)}>`;
  if (type.type === 'map') return `map<${short(type.value)}>`;
  return `{${type.fields.map((field) => `${field.name}: ${short(field.type)}`).join(', ')}}`;
}

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

const object = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...more,
});

describe('types', () => {
  test('scalars and their formats', () => {
    const table = tableOf(
      object({
        i: { type: 'integer' },
        n: { type: 'number' },
        whole: { type: 'number', multipleOf: 1 },
        b: { type: 'boolean' },
        s: { type: 'string' },
        at: { type: 'string', format: 'date-time' },
        d: { type: 'string', format: 'date' },
        t: { type: 'string', format: 'time' },
        u: { type: 'string', format: 'uuid' },
        y: { type: 'string', contentEncoding: 'base64' },
        mail: { type: 'string', format: 'email' },
        maybe: { type: ['null', 'integer'] },
        api: { type: 'integer', nullable: true },
        e: { enum: ['a', 'b', null] },
        c: { const: 5 },
        nothing: { type: 'null' },
        never: false,
        any: true,
      }),
    );
    expect(table.types).toEqual({
      i: 'long',
      n: 'double',
      whole: 'long',
      b: 'boolean',
      s: 'string',
      at: 'timestamptz',
      d: 'date',
      t: 'string',
      u: 'uuid',
      y: 'binary',
      mail: 'string',
      maybe: 'long',
      api: 'long',
      e: 'string',
      c: 'long',
      any: 'string',
    });
    const row = table.take({
      i: 9_007_199_254_740_000,
      n: 1,
      whole: 3,
      at: '2020-01-02T03:04:05.678901+02:00',
      d: '1970-01-02',
      t: '10:00:00Z',
      u: '00000000-0000-0000-0000-0000000000ff',
      y: '/w==',
      maybe: null,
      any: {},
    });
    expect(row).toMatchObject({
      n: 1,
      whole: 3n,
      b: null,
      at: 1577927045678901n,
      d: 1,
      t: '10:00:00Z',
      u: `${'0'.repeat(30)}ff`,
      y: 'ff',
      maybe: null,
      any: '{}',
    });
  });

  test('integers exactly up to 64 bits, also as 1.0; numbers as doubles round them', () => {
    const table = tableOf(object({ i: { type: 'integer' }, n: { type: 'number' } }));
    const take = (text: string) => table.take(null, text);
    expect(take('{"i":9223372036854775807}')).toMatchObject({ i: 2n ** 63n - 1n });
    expect(take('{"i":12.0,"n":12345678901234567890}')).toEqual({
      i: 12n,
      n: 12345678901234567000,
    });
    expect(take('{"i":1e3}')).toMatchObject({ i: 1000n });
    expect(take('{"i":1.5}')).toMatch(/"i" isn't a valid long/);
    expect(take('{"i":9223372036854775808}')).toMatch(/"i" isn't a valid long/);
    expect(take('{"i":"1"}')).toMatch(/"i" isn't a valid long .* \(found: string\)/);
  });

  test('nested: objects, lists, maps, tuples, anything', () => {
    const table = tableOf(
      object({
        o: object({ a: { type: 'integer' } }),
        l: { type: 'array', items: object({ b: { type: 'string' } }) },
        m: { type: 'object', additionalProperties: { type: 'number' } },
        pattern: { type: 'object', patternProperties: { '^x': { type: 'integer' } } },
        tuple: { type: 'array', items: [{ type: 'integer' }, { type: 'number' }] },
        mixed: { type: 'array', prefixItems: [{ type: 'integer' }, { type: 'string' }] },
        bare: { type: 'array' },
        empty: { type: 'object' },
      }),
    );
    expect(table.types).toEqual({
      o: '{a: long}',
      l: 'list<{b: string}>',
      m: 'map<double>',
      pattern: 'map<long>',
      tuple: 'list<double>',
      mixed: 'list<string>',
      bare: 'string',
      empty: 'string',
    });
    expect(
      table.take({
        o: { a: 1 },
        l: [{ b: 'x' }, {}],
        m: { p: 1.5, q: 2 },
        mixed: [1, 'two', null, []],
        bare: [1, 'x'],
        empty: { z: 1 },
      }),
    ).toEqual({
      o: { a: 1n },
      l: [{ b: 'x' }, { b: null }],
      m: [
        ['p', 1.5],
        ['q', 2],
      ],
      pattern: null,
      tuple: null,
      mixed: ['1', '"two"', null, '[]'],
      bare: '[1,"x"]',
      empty: '{"z":1}',
    });
  });

  test('Connect’s hints', () => {
    const connect = (name: string, type: string, more: object = {}) => ({
      type,
      title: `org.apache.kafka.connect.data.${name}`,
      ...more,
    });
    const parameters = { scale: '2', 'connect.decimal.precision': '10' };
    const table = tableOf(
      object({
        ts: connect('Timestamp', 'integer', { 'connect.type': 'int64' }),
        d: connect('Date', 'integer', { 'connect.type': 'int32' }),
        t: connect('Time', 'integer', { 'connect.type': 'int32' }),
        p: connect('Decimal', 'number', { 'connect.parameters': parameters }),
        b: connect('Decimal', 'string', { 'connect.parameters': parameters }),
        i: { type: 'integer', 'connect.type': 'int16' },
        f: { type: 'number', 'connect.type': 'float32' },
        y: { type: 'string', 'connect.type': 'bytes' },
      }),
    );
    expect(table.types).toEqual({
      ts: 'timestamptz',
      d: 'date',
      t: 'string',
      p: 'decimal(10, 2)',
      b: 'decimal(10, 2)',
      i: 'int',
      f: 'float',
      y: 'binary',
    });
    expect(
      table.take({ ts: 1500, d: 3, t: 3723004, p: 1.5, b: 'AJY=', i: 7, f: 0.5, y: 'AA==' }),
    ).toEqual({
      ts: 1500000n,
      d: 3,
      t: '01:02:03.004000',
      p: `${'0'.repeat(30)}96`,
      b: `${'0'.repeat(30)}96`,
      i: 7,
      f: 0.5,
      y: '00',
    });
    expect(table.take({ i: 2 ** 40 })).toMatch(/"i" isn't a valid int/);
  });

  test('a time of day as the topic wants it', () => {
    const schema = object({ t: { type: 'string', format: 'time' } });
    const long = tableOf(schema, [], { time: 'long' });
    expect(long.types).toEqual({ t: 'long' });
    expect(long.take({ t: '01:00:00.5Z' })).toEqual({ t: 3_600_500_000n });
    expect(long.take({ t: '25:00:00Z' })).toMatch(/"t" isn't a valid long/);
  });
});

describe('combinators', () => {
  test('oneOf and anyOf: the one that isn’t null, what all have in common, else JSON text', () => {
    const table = tableOf(
      object({
        a: { oneOf: [{ type: 'null' }, { type: 'integer' }] },
        b: { anyOf: [{ type: 'integer' }, { type: 'number' }] },
        c: { oneOf: [{ type: 'integer' }, { type: 'string' }] },
        d: { oneOf: [object({ x: { type: 'integer' } }), { type: 'null' }] },
        e: { type: ['string', 'integer', 'null'] },
        f: { oneOf: [object({ x: { type: 'integer' } }), object({ y: { type: 'integer' } })] },
      }),
    );
    expect(table.types).toEqual({
      a: 'long',
      b: 'double',
      c: 'string',
      d: '{x: long}',
      e: 'string',
      f: 'string',
    });
    expect(table.take({ a: 1, b: 2, c: 'x', d: null, e: 5, f: { y: 1 } })).toEqual({
      a: 1n,
      b: 2,
      c: '"x"',
      d: null,
      e: '5',
      f: '{"y":1}',
    });
  });

  test('allOf is merged; choices of an object add their properties; conditions too', () => {
    const { types } = tableOf({
      type: 'object',
      additionalProperties: false,
      allOf: [
        { properties: { a: { type: 'integer' } } },
        { properties: { b: { type: 'string' } } },
      ],
      properties: { kind: { type: 'string' }, a: { minimum: 0 } },
      oneOf: [
        { properties: { kind: { const: 'x' }, x: { type: 'integer' } } },
        { properties: { kind: { const: 'y' }, x: { type: 'string' }, y: { type: 'boolean' } } },
      ],
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { later: { type: 'number' } } },
    });
    expect(types).toEqual({
      a: 'long',
      b: 'string',
      kind: 'string',
      later: 'double',
      x: 'string',
      y: 'boolean',
    });
  });
});

describe('references', () => {
  const address = {
    type: 'object',
    additionalProperties: false,
    properties: { zip: { type: 'string' } },
  };

  test('within: definitions, $defs, anchors, ids, escaped pointers; of drafts 4 to 2020-12', () => {
    const { types } = tableOf({
      $id: 'https://e.com/root.json',
      ...object({
        a: { $ref: '#/definitions/address' },
        b: { $ref: '#/$defs/a~1b%20c' },
        c: { $ref: '#anchored' },
        d: { $ref: 'other.json' },
        e: { $ref: '#old' },
        f: { $ref: 'https://e.com/other.json#/properties/zip' },
      }),
      definitions: { address, old: { id: '#old', type: 'boolean' } },
      $defs: {
        'a/b c': { type: 'integer' },
        anchored: { $anchor: 'anchored', type: 'number' },
        other: { $id: 'other.json', ...address },
      },
    });
    expect(types).toEqual({
      a: '{zip: string}',
      b: 'long',
      c: 'double',
      d: '{zip: string}',
      e: 'boolean',
      f: 'string',
    });
  });

  test('to other documents, by the registry’s names, also from there on', () => {
    const references = [
      { name: 'zip.json', schema: JSON.stringify({ type: 'integer' }) },
      {
        name: 'https://e.com/address.json',
        schema: JSON.stringify({
          $id: 'https://e.com/address.json',
          ...object({ zip: { $ref: 'zip.json' } }),
        }),
      },
    ];
    const { types } = tableOf(
      object({ home: { $ref: 'https://e.com/address.json' }, zip: { $ref: 'zip.json#' } }),
      references,
    );
    expect(types).toEqual({ home: '{zip: long}', zip: 'long' });
    expect(() => tableOf(object({ x: { $ref: 'gone.json' } }))).toThrow(
      /"gone.json" leads nowhere/,
    );
    expect(() => tableOf(object({ x: { $ref: '#/$defs/gone' } }))).toThrow(/leads nowhere/);
  });

  test('recursion becomes JSON text; circles end', () => {
    const table = tableOf({
      ...object({
        v: { type: 'integer' },
        next: { $ref: '#' },
        kids: { type: 'array', items: { $ref: '#' } },
      }),
    });
    expect(table.types).toEqual({ v: 'long', next: 'string', kids: 'list<string>' });
    expect(table.take({ v: 1, next: { v: 2 }, kids: [{ v: 3 }] })).toEqual({
      v: 1n,
      next: '{"v":2}',
      kids: ['{"v":3}'],
    });
    expect(() => tableOf({ $ref: '#' })).not.toThrow();
    const defs = { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } };
    expect(tableOf({ ...object({ x: { $ref: '#/$defs/a' } }), $defs: defs }).types).toEqual({
      x: 'string',
    });
  });
});

describe('what isn’t declared', () => {
  test('goes to _rest where the schema is open, at any level', () => {
    const table = tableOf({
      type: 'object',
      properties: {
        a: { type: 'integer' },
        o: { type: 'object', properties: { b: { type: 'string' } } },
      },
    });
    expect(table.types).toEqual({ a: 'long', o: '{b: string}', _rest: 'string' });
    expect(table.take({ a: 1, z: [1], o: { b: 'x', 'w.v': true } })).toEqual({
      a: 1n,
      o: { b: 'x' },
      _rest: '{"z":[1],"o.w\\\\.v":true}',
    });
    expect(table.take({ a: 2 })).toEqual({ a: 2n, o: null, _rest: null });
    // Declared, and something else: never hidden there.
    expect(table.take({ a: 'x' })).toMatch(/"a" isn't a valid long/);
    expect(table.take({ a: {} })).toMatch(/"a" isn't a valid long/);
  });

  test('is refused where the schema is closed', () => {
    const table = tableOf(object({ a: { type: 'integer' } }));
    expect(table.take({ a: 1, z: 1 })).toMatch(/declared nowhere/);
    expect(table.take({ a: 2 })).toEqual({ a: 2n });
  });
});

test('a map with a key twice is refused, a property twice is its last', () => {
  const table = tableOf(
    object({
      m: { type: 'object', additionalProperties: { type: 'integer' } },
      i: { type: 'integer' },
    }),
  );
  expect(table.take(null, '{"m":{"a":1,"b":2,"a":3}}')).toMatch(/"m" isn't a map/);
  const many = Array.from({ length: 20 }, (_, i) => `"k${i % 19}":1`).join(',');
  expect(table.take(null, `{"m":{${many}}}`)).toMatch(/"m" isn't a map/);
  expect(table.take(null, '{"m":{"a":1,"b":2},"i":1,"i":2}')).toEqual({
    m: [
      ['a', 1n],
      ['b', 2n],
    ],
    i: 2n,
  });
});

test('roots that are no objects: one typed column', () => {
  expect(tableOf({ type: 'string' }).take('x')).toEqual({ _kafka_value: 'x' });
  expect(tableOf({ type: 'integer' }).take(5)).toEqual({ _kafka_value: 5n });
  expect(tableOf({ type: 'array', items: { type: 'integer' } }).take([1, 2])).toEqual({
    _kafka_value: [1n, 2n],
  });
  expect(tableOf(true).take({ a: 1 })).toEqual({ _kafka_value: '{"a":1}' });
  expect(tableOf({ type: 'integer' }).take(null)).toMatch(/null value/);
});

test('hostile schemas are refused or cut, never followed', () => {
  const wide = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [
      `d${i}`,
      {
        type: 'object',
        properties: { a: { $ref: `#/$defs/d${i + 1}` }, b: { $ref: `#/$defs/d${i + 1}` } },
      },
    ]),
  );
  const { types } = tableOf({
    ...object({ x: { $ref: '#/$defs/d0' } }),
    $defs: { ...wide, d40: true },
  });
  expect(types['x']!.length).toBeLessThan(2_000_000);
  let deep: object = {};
  for (let i = 0; i < 600; i++) deep = { items: deep };
  expect(() => tableOf(deep)).toThrow(/nested too deeply/);
  expect(() => jsonSchemaShape('{', [], OPTIONS)).toThrow(/not JSON/);
  expect(() => jsonSchemaShape('5', [], OPTIONS)).toThrow(/no JSON schema/);
});

test('any record of the schema reads as JSON.parse reads it', () => {
  const schema = object({
    s: { type: ['string', 'null'] },
    n: { type: 'number' },
    i: { type: 'integer' },
    b: { type: 'boolean' },
    l: { type: 'array', items: { type: 'integer' } },
    o: object({ x: { type: 'string' }, m: { additionalProperties: { type: 'integer' } } }),
  });
  const table = tableOf(schema);
  const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
  const text = fc.string({ unit: 'grapheme' });
  const int = fc.maxSafeInteger();
  const record = fc.record({
    s: fc.option(text),
    n: maybe(fc.double({ noNaN: true, noDefaultInfinity: true })),
    i: maybe(int),
    b: maybe(fc.boolean()),
    l: maybe(fc.array(fc.option(int))),
    o: maybe(
      fc.record({
        x: maybe(text),
        m: maybe(
          fc.dictionary(
            text.filter((k) => k !== '__proto__'),
            int,
          ),
        ),
      }),
    ),
  });
  fc.assert(
    fc.property(record, fc.nat(4), (value, indent) => {
      const row = table.take(null, JSON.stringify(value, null, indent)) as Record<string, unknown>;
      const parsed = JSON.parse(JSON.stringify(value)) as typeof value;
      const big = (item: number | null) => (item === null ? null : BigInt(item));
      expect(row).toEqual({
        s: parsed.s,
        n: parsed.n ?? null,
        i: parsed.i === undefined ? null : BigInt(parsed.i),
        b: parsed.b ?? null,
        l: parsed.l?.map(big) ?? null,
        o:
          parsed.o === undefined
            ? null
            : {
                x: parsed.o.x ?? null,
                m: parsed.o.m ? Object.entries(parsed.o.m).map(([k, v]) => [k, BigInt(v)]) : null,
              },
      });
    }),
    { numRuns: 300, seed: 17, endOnFailure: true },
  );
});
