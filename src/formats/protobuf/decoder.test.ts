// Decoding against protobufjs and against the rules of the format, hostile bytes included.
import fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, test } from 'vitest';
import type { ProposedStruct } from '../arrow/proposed-schema.ts';
import { TableColumns } from '../arrow/table-columns.ts';
import { commitForTest } from '../arrow/testing.ts';
import { compileProtobufDecoder } from './decoder.ts';
import { parseProtobuf } from './schema.ts';
import { protobufToProposed } from './to-iceberg.ts';

/** A decoder with its table, rows as plain data. */
function tableOf(text: string, name: string, nanos = false) {
  const schema = parseProtobuf(text);
  const message = schema.find(name)!;
  const proposed = protobufToProposed(message, { nanos });
  const committed = commitForTest(proposed);
  const columns = new TableColumns(committed.schema);
  const source = { message, find: schema.find };
  const decoder = compileProtobufDecoder(source, columns, committed.bindings);
  return {
    columns,
    proposed,
    take(bytes: Uint8Array): unknown {
      const reason = decoder.decode(bytes, 0, bytes.length);
      if (reason !== undefined) return reason;
      columns.endRow();
      return rowAt(columns, columns.rowCount - 1);
    },
  };
}

function rowAt(columns: TableColumns, row: number): Record<string, unknown> {
  columns.align();
  return Object.fromEntries(
    columns.schema.fields.map((field, i) => [
      field.name,
      plain(columns.columns[i]!.valueAt(row), String(field.type)),
    ]),
  );
}

/** Decimals of uint64 as bigint, bytes as hex, maps and lists as they are. */
function plain(value: unknown, type = ''): unknown {
  if (value instanceof Uint8Array) {
    const hex = Buffer.from(value).toString('hex');
    return type.startsWith('decimal') ? BigInt(`0x${hex}`) : hex;
  }
  if (Array.isArray(value)) return value.map((item) => plain(item));
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
  }
  return value;
}

const encoder = (text: string, name: string) =>
  protobuf.parse(text, { keepCase: true }).root.lookupType(name);

/** protobufjs's 64-bit integers. */
const Long = protobuf.util.Long as unknown as {
  fromString(text: string, unsigned: boolean): unknown;
};

const bytes = (...parts: (number | readonly number[])[]) => Uint8Array.from(parts.flat());

const SCALARS = `syntax = "proto3"; message S {
  double d = 1; float f = 2; int32 i = 3; int64 l = 4; uint32 u = 5; uint64 ul = 6; sint32 si = 7; sint64 sl = 8;
  fixed32 x = 9; fixed64 xl = 10; sfixed32 sx = 11; sfixed64 sxl = 12; bool b = 13; string s = 14; bytes y = 15;
  E e = 16; optional int32 oi = 17; enum E { ZERO = 0; ONE = 1; FAR = 1000; MINUS = -1; } }`;

describe('scalars', () => {
  test('absent fields are their default; optional ones are null', () => {
    const table = tableOf(SCALARS, 'S');
    expect(table.take(bytes())).toEqual({
      d: 0,
      f: 0,
      i: 0,
      l: 0n,
      u: 0n,
      ul: 0n,
      si: 0,
      sl: 0n,
      x: 0n,
      xl: 0n,
      sx: 0,
      sxl: 0n,
      b: false,
      s: '',
      y: '',
      e: 'ZERO',
      oi: null,
    });
    expect(table.take(bytes(0x88, 1, 0))).toMatchObject({ oi: 0 });
  });

  test('every value as protobufjs writes it, many rows after one another', () => {
    const type = encoder(SCALARS, 'S');
    const table = tableOf(SCALARS, 'S');
    const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
    const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
    const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    const record = fc.record({
      d: fc.double({ noNaN: true }),
      f: fc.float({ noNaN: true }),
      i: int32,
      l: int64,
      u: uint32,
      ul: uint64,
      si: int32,
      sl: int64,
      x: uint32,
      xl: uint64,
      sx: int32,
      sxl: int64,
      b: fc.boolean(),
      s: fc.string({ unit: 'binary' }),
      y: fc.uint8Array({ maxLength: 40 }),
      e: fc.constantFrom(0, 1, 1000, -1, 77),
      oi: fc.option(int32),
    });
    const symbols = new Map([
      [0, 'ZERO'],
      [1, 'ONE'],
      [1000, 'FAR'],
      [-1, 'MINUS'],
      [77, '77'],
    ]);
    fc.assert(
      fc.property(record, (value) => {
        const longs = Object.fromEntries(
          Object.entries(value).map(([key, item]) => [
            key,
            typeof item === 'bigint'
              ? Long.fromString(item.toString(), key.startsWith('u') || key === 'xl')
              : item,
          ]),
        );
        const row = table.take(type.encode(type.create(longs)).finish());
        expect(row).toEqual({
          ...value,
          u: BigInt(value.u),
          x: BigInt(value.x),
          y: Buffer.from(value.y).toString('hex'),
          e: symbols.get(value.e),
        });
      }),
      { numRuns: 300, seed: 7 },
    );
  });

  test('fields in any order, the last of several wins, unknown ones and groups are skipped', () => {
    const text = 'syntax="proto3"; message M { int32 a = 1; string s = 2; repeated int32 r = 3; }';
    const table = tableOf(text, 'M');
    const group = [0x43, 0x08, 1, 0x4b, 0x4c, 0x44];
    expect(
      table.take(
        bytes(0x12, 1, 0x78, 8, 5, 0x18, 1, group, 0x12, 1, 0x79, 8, 6, 0x1a, 2, 2, 3, 0x18, 4),
      ),
    ).toEqual({ a: 6, s: 'y', r: [1, 2, 3, 4] });
    // A known number with another wire type is unknown.
    expect(table.take(bytes(0x0a, 1, 1))).toEqual({ a: 0, s: '', r: [] });
  });
});

describe('presence', () => {
  const TEXT = `syntax = "proto2"; message P { required int32 id = 1; optional int32 n = 2 [default = 5];
    optional string s = 3 [default = "hi"]; optional E e = 4 [default = B]; optional int64 none = 5;
    optional bool b = 6 [default = true]; optional uint64 u = 7 [default = 18446744073709551615];
    enum E { A = 1; B = 2; } }`;

  test('declared defaults land, undeclared ones are null, a missing required field is named', () => {
    const table = tableOf(TEXT, 'P');
    expect(table.take(bytes(8, 1))).toEqual({
      id: 1,
      n: 5,
      s: 'hi',
      e: 'B',
      none: null,
      b: true,
      u: 18446744073709551615n,
    });
    expect(table.take(bytes(16, 9))).toMatch(/required field "id" is missing/);
    expect(table.take(bytes(8, 2, 16, 9))).toMatchObject({ id: 2, n: 9 });
  });

  test('editions say presence per field', () => {
    const text = `edition = "2023"; option features.field_presence = IMPLICIT;
      message E { int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT]; }`;
    expect(tableOf(text, 'E').take(bytes())).toEqual({ a: 0, b: null });
  });

  test('groups are refused by name', () => {
    const text =
      'syntax="proto2"; message G { optional group Inner = 1 { optional int32 a = 1; } }';
    expect(() => tableOf(text, 'G')).toThrow(/is a group .* use a message field/);
  });
});

const NESTED = `syntax = "proto3"; package n; message N {
  message In { int32 a = 1; repeated string t = 2; In2 deep = 3; }
  message In2 { int32 z = 1; repeated int32 y = 2; }
  In one = 1; repeated In many = 2; map<string, In> named = 3; map<int32, string> numbered = 4;
  oneof choice { int32 ci = 5; string cs = 6; In cm = 7; }
  Nothing nothing = 8; repeated Nothing nothings = 9; repeated E es = 10; map<bool, int64> flags = 11; }
  message Nothing {} enum E { A = 0; B = 1; }`;

describe('nested', () => {
  const fresh = () => tableOf(NESTED, 'n.N');
  const empty = {
    one: null,
    many: [],
    named: [],
    numbered: [],
    ci: null,
    cs: null,
    cm: null,
    nothing: null,
    nothings: [],
    es: [],
    flags: [],
  };

  test('messages, lists, maps and oneofs as protobufjs writes them', () => {
    const type = encoder(NESTED, 'n.N');
    const table = fresh();
    const inner = fc.record({
      a: fc.integer({ min: 0, max: 1000 }),
      t: fc.array(fc.string({ maxLength: 5 }), { maxLength: 3 }),
      deep: fc.option(fc.record({ z: fc.nat(9), y: fc.array(fc.nat(300), { maxLength: 3 }) })),
    });
    const key = fc.string({ maxLength: 3 });
    const record = fc.record({
      one: fc.option(inner),
      many: fc.array(inner, { maxLength: 3 }),
      named: fc.uniqueArray(fc.tuple(key, inner), { selector: ([name]) => name, maxLength: 12 }),
      es: fc.array(fc.constantFrom(0, 1), { maxLength: 4 }),
      ci: fc.option(fc.nat(5)),
    });
    fc.assert(
      fc.property(record, (value) => {
        const named = Object.fromEntries(value.named.filter(([name]) => name !== '__proto__'));
        const written = type.create({ ...value, named, ci: value.ci ?? undefined });
        const row = table.take(type.encode(written).finish());
        expect(row).toEqual({
          ...empty,
          one: value.one,
          many: value.many,
          named: Object.entries(named),
          es: value.es.map((e) => 'AB'[e]),
          ci: value.ci,
        });
      }),
      { numRuns: 200, seed: 11 },
    );
  });

  test('parts of a message are merged, at every level', () => {
    const table = fresh();
    // one {a 1, t "x", deep {z 1, y 1}} then one {t "y", deep {y 2}} then one {deep {z 7}}
    const row = table.take(
      bytes(
        [0x0a, 12, 8, 1, 0x12, 1, 0x78, 0x1a, 5, 8, 1, 0x12, 1, 1],
        [0x0a, 8, 0x12, 1, 0x79, 0x1a, 3, 0x12, 1, 2],
        [0x0a, 4, 0x1a, 2, 8, 7],
      ),
    );
    expect(row).toEqual({ ...empty, one: { a: 1, t: ['x', 'y'], deep: { z: 7, y: [1, 2] } } });
  });

  test('members of a oneof replace each other; a message begins anew after another member', () => {
    const table = fresh();
    const cm = (a: number) => [0x3a, 2, 8, a];
    const ct = (text: number) => [0x3a, 3, 0x12, 1, text];
    expect(table.take(bytes(0x28, 4, 0x32, 1, 0x7a))).toEqual({ ...empty, cs: 'z' });
    expect(table.take(bytes(cm(1), ct(0x78), 0x28, 4, ct(0x79), cm(3)))).toEqual({
      ...empty,
      cm: { a: 3, t: ['y'], deep: null },
    });
    expect(table.take(bytes(cm(1), ct(0x78), 0x28, 4))).toEqual({ ...empty, ci: 4 });
  });

  test('of map entries with one key the last wins; absent keys and values are defaults', () => {
    const table = fresh();
    const entry = (...inside: number[]) => [0x1a, inside.length, ...inside];
    const k = (c: number) => [0x0a, 1, c];
    const row = table.take(
      bytes(
        entry(...k(0x61), 0x12, 2, 8, 1),
        entry(...k(0x62), 0x12, 2, 8, 2),
        entry(0x12, 2, 8, 9, ...k(0x61)),
        entry(),
        [0x22, 5, 8, 1, 0x12, 1, 0x78],
        [0x22, 5, 8, 1, 0x12, 1, 0x79],
      ),
    );
    const inn = (a: number) => ({ a, t: [], deep: null });
    expect(row).toEqual({
      ...empty,
      named: [
        ['a', inn(9)],
        ['b', inn(2)],
        ['', inn(0)],
      ],
      numbered: [[1, 'y']],
    });
    expect(table.take(bytes())).toEqual(empty);
  });

  test('messages without fields tell presence', () => {
    const table = fresh();
    expect(table.take(bytes(0x42, 0, 0x4a, 0, 0x4a, 0))).toEqual({
      ...empty,
      nothing: { _present: true },
      nothings: [{ _present: true }, { _present: true }],
    });
  });
});

describe('well-known types', () => {
  const TEXT = `syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
    import "google/protobuf/wrappers.proto"; import "google/protobuf/struct.proto"; import "google/protobuf/any.proto";
    import "google/protobuf/field_mask.proto"; import "google/type/date.proto";
    message W { google.protobuf.Timestamp ts = 1; google.protobuf.Duration d = 2; google.protobuf.Int64Value l = 3;
      google.protobuf.StringValue s = 4; google.protobuf.Struct st = 5; google.protobuf.Value v = 6;
      google.protobuf.Any any = 7; repeated google.protobuf.Timestamp times = 8; google.protobuf.FieldMask m = 9;
      google.type.Date day = 10; repeated google.protobuf.UInt64Value us = 11; }
    message Known { int32 a = 1; string b = 2; }`;
  const type = protobuf.parse(TEXT, { keepCase: true });
  for (const name of ['any', 'duration', 'field_mask', 'struct', 'timestamp', 'wrappers']) {
    type.root.addJSON(protobuf.common.get(`google/protobuf/${name}.proto`)!.nested!);
  }
  protobuf.parse(
    'syntax="proto3"; package google.type; message Date { int32 year = 1; }',
    type.root,
  );
  const W = type.root.lookupType('W');

  test('columns', () => {
    const { proposed } = tableOf(TEXT, 'W');
    expect(proposed.fields.map((field) => [field.name, short(field.type)])).toEqual([
      ['ts', 'timestamptz'],
      ['d', 'struct<seconds: long, nanos: int>'],
      ['l', 'long'],
      ['s', 'string'],
      ['st', 'string'],
      ['v', 'string'],
      ['any', 'string'],
      ['times', 'list<timestamptz>'],
      ['m', 'struct<paths: list<string>>'],
      ['day', 'struct<year: int, month: int, day: int>'],
      ['us', 'list<decimal(20, 0)>'],
    ]);
    expect(tableOf(TEXT, 'W', true).proposed.fields[0]!.type).toBe('timestamptz_ns');
  });

  test('values', () => {
    const table = tableOf(TEXT, 'W');
    const known = type.root.lookupType('Known').encode({ a: 1, b: 'x' }).finish();
    const list = { listValue: { values: [{ numberValue: 1 }, { nullValue: 0 }] } };
    const written = W.encode({
      ts: { seconds: 1_700_000_000, nanos: 123_456_789 },
      d: { seconds: -5, nanos: -1 },
      l: {},
      s: { value: 'ß' },
      st: { fields: { a: { numberValue: 1.5 }, b: list, c: { stringValue: 'q"' } } },
      v: { boolValue: true },
      any: { type_url: 'type.googleapis.com/Known', value: known },
      times: [{ seconds: -1, nanos: 999_999_999 }, {}, { seconds: 253402300799 }],
    }).finish();
    expect(table.take(written)).toEqual({
      ts: 1_700_000_000_123_456n,
      d: { seconds: -5n, nanos: -1 },
      l: 0n,
      s: 'ß',
      st: '{"a":1.5,"b":[1,null],"c":"q\\""}',
      v: 'true',
      any: '{"@type":"type.googleapis.com/Known","a":1,"b":"x"}',
      times: [-1n, 0n, 253402300799000000n],
      m: null,
      day: null,
      us: [],
    });
    expect(table.take(W.encode({ ts: { seconds: 1e15 } }).finish())).toMatch(/out of range/);
    const unknown = { type_url: 'x/Un', value: Uint8Array.of(1) };
    expect(table.take(W.encode({ any: unknown }).finish())).toMatchObject({
      any: '{"@type":"x/Un","value":"AQ=="}',
    });
  });

  test('nanoseconds on v3', () => {
    const table = tableOf(TEXT, 'W', true);
    const at = W.encode({ ts: { seconds: 1, nanos: 5 } }).finish();
    expect(table.take(at)).toMatchObject({ ts: 1_000_000_005n });
    const far = W.encode({ ts: { seconds: 253402300799 } }).finish();
    expect(table.take(far)).toMatch(/beyond what nanoseconds can hold/);
  });
});

test('recursion becomes JSON text, merged like messages', () => {
  const text = `syntax = "proto3"; message Tree { int64 id = 1; Tree left = 2; repeated Tree more = 3;
    map<string, int32> m = 4; bytes y = 5; repeated double ds = 6; Kind k = 7; enum Kind { NONE = 0; LEAF = 1; } }`;
  const type = encoder(text, 'Tree');
  const table = tableOf(text, 'Tree');
  const left = { id: 2, more: [{ id: 3 }, {}], m: { a: 1 }, y: Uint8Array.of(255), k: 1 };
  const written = type
    .encode(type.create({ id: 1, left: { ...left, ds: [1, Infinity] } }))
    .finish();
  const again = type.encode(type.create({ left: { id: 9, ds: [2] } })).finish();
  expect(table.take(Buffer.concat([written, again]))).toMatchObject({
    id: 1n,
    left: '{"id":9,"more":[{"id":3},{}],"m":{"a":1},"y":"/w==","ds":[1,"Infinity",2],"k":"LEAF"}',
    more: [],
  });
  // A thousand levels: refused, not overflowed.
  let deep = new Uint8Array(0);
  for (let i = 0; i < 1000; i++) {
    const writer = protobuf.Writer.create();
    deep = Uint8Array.from(writer.uint32(0x12).bytes(deep).finish());
  }
  expect(table.take(deep)).toMatch(/deeper than 100 levels/);
});

describe('hostile bytes', () => {
  test('are a reason, never an error; the rows around them stay', () => {
    const type = encoder(NESTED, 'n.N');
    const table = tableOf(NESTED, 'n.N');
    const good = type
      .encode({
        one: { a: 3, t: ['x'] },
        named: { k: { a: 1 } },
        es: [1],
        cm: { deep: { y: [4] } },
      })
      .finish();
    const expected = table.take(good);
    const mutation = fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(mutation, fc.nat(good.length), (changes, cut) => {
        const bad = Uint8Array.from(good.subarray(0, Math.max(1, cut)));
        for (const [at, byte] of changes) if (at < bad.length) bad[at] = byte;
        const before = table.columns.rowCount;
        const result = table.take(bad);
        if (typeof result === 'string') expect(table.columns.rowCount).toBe(before);
        expect(table.take(good)).toEqual(expected);
      }),
      { numRuns: 1500, seed: 3 },
    );
  });

  test('random bytes and every truncation', () => {
    const table = tableOf(SCALARS, 'S');
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (noise) => {
        table.take(noise);
        expect(table.take(bytes(0x18, 4))).toMatchObject({ i: 4 });
      }),
      { numRuns: 1500, seed: 5 },
    );
  });

  test.each([
    ['field number 0', bytes(0)],
    ['truncated', bytes(0x18)],
    ['length beyond the end', bytes(0x72, 0xff, 0xff, 0xff, 0xff, 0x0f)],
    ['varint longer than 10 bytes', bytes(0x18, Array(11).fill(0xff))],
    ['invalid UTF-8', bytes(0x72, 1, 0xff)],
    ['group without end', bytes(0xa3, 6)],
    ['end of another group', bytes(0xa3, 6, 0xac, 6)],
    ['wire type 6', bytes(0xa6, 6)],
    ['wire type 4', bytes(0xa4, 6)],
    ['deeper than 100', bytes(Array(200).fill([0xa3, 6]).flat())],
  ])('%s', (reason, hostile) => {
    expect(tableOf(SCALARS, 'S').take(hostile)).toContain(reason);
  });

  test('two bytes that cost a row of defaults are counted', () => {
    const fields = Array.from({ length: 60 }, (_, i) => `int64 f${i} = ${i + 1};`).join(' ');
    const text = `syntax="proto3"; message B { repeated R rows = 1; } message R { ${fields} }`;
    const many = Buffer.alloc(400_000);
    for (let i = 0; i < many.length; i += 2) many[i] = 0x0a;
    expect(tableOf(text, 'B').take(many)).toMatch(/cells in lists of one record/);
  });

  test('many parts of one message cost no more than a few', () => {
    const table = tableOf(NESTED, 'n.N');
    const parts = Buffer.alloc(400_000);
    for (let i = 0; i < parts.length; i += 2) parts[i] = 0x0a;
    expect(table.take(parts)).toMatchObject({ one: { a: 0 } });
    const rivals = Buffer.concat(Array(3_000).fill(bytes(0x3a, 0, 0x3a, 0, 0x28, 1)));
    expect(table.take(rivals)).toMatchObject({ ci: 1, cm: null });
  });
});

test('messages that multiply are refused before they make a million columns', () => {
  const levels = Array.from(
    { length: 30 },
    (_, i) => `message M${i} { M${i + 1} a = 1; M${i + 1} b = 2; }`,
  );
  const text = `syntax="proto3"; ${levels.join(' ')} message M30 { int32 x = 1; }`;
  expect(() => tableOf(text, 'M0')).toThrow(/more than 10000 columns/);
});

/** A type in one line. */
function short(type: ProposedStruct['fields'][number]['type']): string {
  if (typeof type === 'string') return type;
  if (type.type === 'list') return `list<${short(type.element)}>`;
  if (type.type === 'map') return `map<${short(type.key)}, ${short(type.value)}>`;
  return `struct<${type.fields.map((field) => `${field.name}: ${short(field.type)}`).join(', ')}>`;
}
