import { existsSync, readdirSync, readFileSync } from 'node:fs';
import avsc from 'avsc';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TableColumns } from '../arrow/table-columns.ts';
import { type CommittedForTest, commitForTest } from '../arrow/testing.ts';
import { compileAvroDecoder } from './decoder.ts';
import { parseAvroSchema } from './schema.ts';
import { avroToProposed, type TypeOptions } from './to-iceberg.ts';

const record = (...fields: unknown[]) => ({ type: 'record', name: 'R', fields });
const field = (name: string, type: unknown, more: object = {}) => ({ name, type, ...more });
const logical = (type: string, logicalType: string) => ({ type, logicalType });

/** A table made from one schema, decoding values that avsc encoded. */
class TestTable {
  committed: CommittedForTest;
  columns: TableColumns;

  constructor(schema: unknown, options?: TypeOptions) {
    const ast = parseAvroSchema(JSON.stringify(schema));
    this.committed = commitForTest(avroToProposed(ast, options));
    this.columns = new TableColumns(this.committed.schema);
  }

  decode(schema: unknown, ...values: Uint8Array[]): (string | undefined)[] {
    const ast = parseAvroSchema(JSON.stringify(schema));
    const decoder = compileAvroDecoder(ast, this.columns, this.committed.bindings);
    return values.map((bytes) => {
      const padded = new Uint8Array([0xff, ...bytes, 0x02, 0x02]);
      const reason = decoder.decode(padded, 1, 1 + bytes.length);
      if (reason === undefined) this.columns.endRow();
      return reason;
    });
  }

  rows(): Record<string, unknown>[] {
    this.columns.align();
    return Array.from({ length: this.columns.rowCount }, (_, row) => {
      const result: Record<string, unknown> = {};
      this.committed.schema.fields.forEach((f, i) => {
        result[f.name] = this.columns.columns[i]!.valueAt(row);
      });
      return result;
    });
  }

  types(): Record<string, unknown> {
    return Object.fromEntries(this.committed.schema.fields.map((f) => [f.name, f.type]));
  }
}

const encode = (schema: unknown, value: unknown): Uint8Array =>
  avsc.Type.forSchema(schema as avsc.Schema, { wrapUnions: true }).toBuffer(value);

/** Writes values of one schema into a table of that schema and reads them back. */
function roundTrip(schema: unknown, values: unknown[], options?: TypeOptions) {
  const table = new TestTable(schema, options);
  const reasons = table.decode(schema, ...values.map((value) => encode(schema, value)));
  expect(reasons).toEqual(values.map(() => undefined));
  return table.rows();
}

/** A zig-zag varint. */
function long(value: bigint): number[] {
  let rest = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
  const bytes: number[] = [];
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return [...bytes, Number(rest)];
}

describe('Avro decoder', () => {
  it('decodes every primitive exactly', () => {
    const schema = record(
      field('b', 'boolean'),
      field('i', 'int'),
      field('f', 'float'),
      field('d', 'double'),
      field('s', 'string'),
      field('y', 'bytes'),
      field('x', { type: 'fixed', name: 'F3', size: 3 }),
      field('e', { type: 'enum', name: 'E', symbols: ['A', 'B'] }),
      field('n', 'null'),
    );
    fc.assert(
      fc.property(
        fc.record({
          b: fc.boolean(),
          i: fc.integer(),
          f: fc.float(),
          d: fc.double(),
          s: fc.string({ unit: 'grapheme' }),
          y: fc.uint8Array(),
          x: fc.uint8Array({ minLength: 3, maxLength: 3 }),
          e: fc.constantFrom('A', 'B'),
        }),
        (value) => {
          const avroValue = { ...value, y: Buffer.from(value.y), x: Buffer.from(value.x), n: null };
          expect(roundTrip(schema, [avroValue])).toEqual([value]);
        },
      ),
      { numRuns: 100, seed: 3 },
    );
  });

  it('decodes longs of all 64 bits', () => {
    const schema = record(field('l', 'long'));
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })), (values) => {
        const table = new TestTable(schema);
        const reasons = table.decode(schema, ...values.map((v) => Uint8Array.from(long(v))));
        expect(reasons.every((reason) => reason === undefined)).toBe(true);
        expect(table.rows().map((row) => row['l'])).toEqual(values);
      }),
      { numRuns: 200, seed: 4 },
    );
    const edges = [0n, -1n, 2n ** 27n, -(2n ** 27n) - 1n, 2n ** 55n, 2n ** 63n - 1n, -(2n ** 63n)];
    const table = new TestTable(schema);
    table.decode(schema, ...edges.map((v) => Uint8Array.from(long(v))));
    expect(table.rows().map((row) => row['l'])).toEqual(edges);
  });

  it('maps logical types as the type table says', () => {
    const schema = record(
      field('dec', { type: 'bytes', logicalType: 'decimal', precision: 9, scale: 2 }),
      field('wide', { type: 'bytes', logicalType: 'decimal', precision: 40, scale: 1 }),
      field('uuid', logical('string', 'uuid')),
      field('date', logical('int', 'date')),
      field('tm', logical('int', 'time-millis')),
      field('tu', logical('long', 'time-micros')),
      field('ts', logical('long', 'timestamp-millis')),
      field('tsu', logical('long', 'timestamp-micros')),
      field('tsn', logical('long', 'timestamp-nanos')),
      field('lt', logical('long', 'local-timestamp-millis')),
      field('dur', { type: 'fixed', name: 'D', size: 12, logicalType: 'duration' }),
    );
    const table = new TestTable(schema);
    expect(table.types()).toEqual({
      dec: 'decimal(9, 2)',
      wide: 'string',
      uuid: 'uuid',
      date: 'date',
      tm: 'string',
      tu: 'string',
      ts: 'timestamptz',
      tsu: 'timestamptz',
      tsn: 'timestamptz',
      lt: 'timestamp',
      dur: 'fixed[12]',
    });
    const uuid = [...new TextEncoder().encode('00112233-4455-6677-8899-AABBCCDDEEFF')];
    const bytes = [
      ...[4, 0xff, 0x38], // −200
      ...[2, 0x0f],
      ...[72, ...uuid],
      ...long(-1n),
      ...long(3_723_004n),
      ...long(86_399_999_999n),
      ...long(-1n),
      ...long(1n),
      ...long(-1n),
      ...long(2n ** 52n),
      ...Array.from({ length: 12 }, (_, i) => i),
    ];
    expect(table.decode(schema, Uint8Array.from(bytes))).toEqual([undefined]);
    expect(table.rows()).toEqual([
      {
        dec: new Uint8Array(16).fill(255, 0, 15).fill(0x38, 15),
        wide: '1.5',
        uuid: Uint8Array.from({ length: 16 }, (_, i) => i * 17),
        date: -1,
        tm: '01:02:03.004000',
        tu: '23:59:59.999999',
        ts: -1000n,
        tsu: 1n,
        tsn: -1n,
        lt: 2n ** 52n * 1000n,
        dur: Uint8Array.from({ length: 12 }, (_, i) => i),
      },
    ]);
  });

  it('writes times and nanoseconds as set', () => {
    const schema = record(
      field('t', logical('int', 'time-millis')),
      field('n', logical('long', 'timestamp-nanos')),
    );
    const value = Uint8Array.from([...long(1n), ...long(-1n)]);
    const table = new TestTable(schema, { time: 'time', nanos: true });
    expect(table.types()).toEqual({ t: 'time', n: 'timestamptz_ns' });
    table.decode(schema, value);
    expect(table.rows()).toEqual([{ t: 1000n, n: -1n }]);
  });

  it('decodes nested types: optional, arrays, maps, records, unions of several', () => {
    const schema = record(
      field('o', ['null', 'long']),
      field('a', {
        type: 'array',
        items: ['null', record(field('x', 'int'))].map((t, i) =>
          i === 0 ? t : { ...(t as object), name: 'Item' },
        ),
      }),
      field('m', { type: 'map', values: { type: 'array', items: 'string' } }),
      field('u', [
        'null',
        'string',
        'int',
        { type: 'record', name: 'a.Foo', fields: [field('q', 'int')] },
      ]),
      field('e', { type: 'record', name: 'Empty', fields: [] }),
    );
    const rows = roundTrip(schema, [
      {
        o: { long: 5 },
        a: [null, { Item: { x: 1 } }],
        m: { k: ['a', 'b'], l: [] },
        u: { 'a.Foo': { q: 7 } },
        e: {},
      },
      { o: null, a: [], m: {}, u: null, e: {} },
      { o: { long: -1 }, a: [{ Item: { x: 2 } }], m: { z: [''] }, u: { string: 's' }, e: {} },
    ]);
    const u = (set: object) => ({ string: null, int: null, Foo: null, ...set });
    expect(rows).toEqual([
      {
        o: 5n,
        a: [null, { x: 1 }],
        m: [
          ['k', ['a', 'b']],
          ['l', []],
        ],
        u: u({ Foo: { q: 7 } }),
        e: { _present: true },
      },
      { o: null, a: [], m: [], u: null, e: { _present: true } },
      { o: -1n, a: [{ x: 2 }], m: [['z', ['']]], u: u({ string: 's' }), e: { _present: true } },
    ]);
  });

  it('names union branches by their full names where short ones clash', () => {
    const branch = (name: string) => ({ type: 'record', name, fields: [field('x', 'int')] });
    const table = new TestTable(record(field('u', [branch('a.Foo'), branch('b.Foo'), 'int'])));
    const { fields } = table.types()['u'] as { fields: { name: string }[] };
    expect(fields.map((f) => f.name)).toEqual(['a_Foo', 'b_Foo', 'int']);
  });

  it('renders recursive types as JSON text from the point of recursion', () => {
    const schema = {
      type: 'record',
      name: 'Node',
      fields: [
        field('v', 'long'),
        field('t', logical('long', 'timestamp-millis')),
        field('next', ['null', 'Node']),
        field('kids', { type: 'array', items: 'Node' }),
      ],
    };
    const leaf = { v: 2 ** 52, t: 0, next: null, kids: [] };
    const rows = roundTrip(schema, [
      { v: 1, t: 0, next: { Node: { ...leaf, kids: [leaf] } }, kids: [leaf] },
    ]);
    const text =
      '{"v":4503599627370496,"t":"1970-01-01T00:00:00.000000+00:00","next":null,"kids":[]}';
    expect(rows).toEqual([
      { v: 1n, t: 0n, next: text.replace('"kids":[]', `"kids":[${text}]`), kids: [text] },
    ]);
    // A chain far deeper than any real one is a bad record, not a crash.
    const link = [2, 0, 2];
    const table = new TestTable(schema);
    const [reason] = table.decode(
      schema,
      Uint8Array.from(Array.from({ length: 5000 }, () => link).flat()),
    );
    expect(reason).toContain('nested deeper');
  });

  it('lands roots that are no records in _kafka_value', () => {
    expect(roundTrip('string', ['a', 'b'])).toEqual([{ _kafka_value: 'a' }, { _kafka_value: 'b' }]);
    expect(roundTrip({ type: 'array', items: 'int' }, [[1, 2]])).toEqual([
      { _kafka_value: [1, 2] },
    ]);
    expect(roundTrip(['null', record(field('x', 'int'))], [{ R: { x: 1 } }])).toEqual([{ x: 1 }]);
    const union = ['null', record(field('x', 'int'))];
    expect(new TestTable(union).decode(union, Uint8Array.of(0))[0]).toContain('null value');
  });
});

describe('evolution', () => {
  const before = record(field('a', 'int'), field('s', record(field('x', 'float'))));
  const first = {
    ...before,
    fields: [before.fields[0], field('s', { ...record(field('x', 'float')), name: 'S' })],
  };

  it('promotes at write and fills what a schema lacks with null', () => {
    const later = record(
      field('a', 'long'),
      field('s', { ...record(field('x', 'double'), field('y', 'string')), name: 'S' }),
      field('b', 'string'),
    );
    const table = new TestTable(later);
    table.decode(first, encode(first, { a: 5, s: { x: 0.5 } }));
    table.decode(later, encode(later, { a: 6, s: { x: 1, y: 'y' }, b: 'b' }));
    table.decode(first, encode(first, { a: -7, s: { x: 2 } }));
    expect(table.rows()).toEqual([
      { a: 5n, s: { x: 0.5, y: null }, b: null },
      { a: 6n, s: { x: 1, y: 'y' }, b: 'b' },
      { a: -7n, s: { x: 2, y: null }, b: null },
    ]);
  });

  it('skips what is not bound, whatever it is', () => {
    const wide = record(
      field('skip', { type: 'map', values: ['null', { type: 'array', items: 'double' }] }),
      field('a', 'int'),
      field('more', ['null', { type: 'fixed', name: 'X', size: 2 }, 'bytes', 'boolean', 'float']),
    );
    const table = new TestTable(record(field('a', 'int')));
    const reasons = table.decode(
      wide,
      encode(wide, {
        skip: { k: { array: [1, 2] }, n: null },
        a: 1,
        more: { X: Buffer.from('ab') },
      }),
      encode(wide, { skip: {}, a: 2, more: { float: 1 } }),
    );
    expect(reasons).toEqual([undefined, undefined]);
    expect(table.rows()).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it('refuses to compile into a column that can not take the type', () => {
    const table = new TestTable(record(field('a', 'int')));
    expect(() => table.decode(record(field('a', 'string')))).toThrow(
      'a int column can\'t take Avro string at "a": evolve the table first',
    );
  });
});

describe('bad values', () => {
  const schema = record(
    field('s', 'string'),
    field('e', { type: 'enum', name: 'E', symbols: ['A'] }),
    field('u', ['null', 'int']),
    field('a', { type: 'array', items: 'null' }),
    field('b', 'boolean'),
  );
  const good = encode(schema, { s: 'text', e: 'A', u: { int: 3 }, a: [null], b: true });

  it('returns a reason for every truncation and leaves the columns alone', () => {
    const table = new TestTable(schema);
    table.decode(schema, good);
    for (let length = 0; length < good.length; length++) {
      const [reason] = table.decode(schema, good.slice(0, length));
      expect(reason, `cut at ${length}`).toBeTypeOf('string');
    }
    table.decode(schema, good);
    expect(table.rows()).toHaveLength(2);
    expect(table.rows()[1]).toEqual({ s: 'text', e: 'A', u: 3, b: true });
  });

  it.each([
    ['trailing bytes', [...good, 0], 'trailing bytes: 1 after the value'],
    ['a length beyond the end', [0x7e, ...good.slice(1)], 'length beyond the end'],
    ['a negative length', [0x01], 'length beyond the end'],
    ['invalid UTF-8', [2, 0xff, 0, 0, 0, 1], 'invalid UTF-8'],
    ['a symbol out of range', [0, 2, 0, 0, 1], 'symbol 1 of enum E'],
    ['a branch out of range', [0, 0, 4, 0, 1], 'union branch 2 of 2'],
    ['a negative branch', [0, 0, 1, 0, 1], 'union branch -1 of 2'],
    ['an int too long', [0, 0, 2, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 1], 'int out of range'],
    ['a bomb of nulls', [0, 0, 0, ...long(2n ** 40n), 0, 1], 'more than 1000000 items'],
    ['a length of 65 bits', Array(10).fill(0xff), 'long out of range'],
    ['a boolean of 2', [0, 0, 0, 0, 2], 'boolean is neither 0 nor 1'],
  ])('names %s', (_, bytes, expected) => {
    const table = new TestTable(schema);
    expect(table.decode(schema, Uint8Array.from(bytes as number[]))[0]).toContain(expected);
    expect(table.columns.columns.every((column) => column.length === 0)).toBe(true);
  });

  it('never throws and never loses step on arbitrary bytes', () => {
    const table = new TestTable(schema);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        const [reason] = table.decode(schema, bytes);
        for (const column of table.columns.columns) {
          expect(column.length <= table.columns.rowCount).toBe(true);
        }
        return reason === undefined || reason.length > 0;
      }),
      { numRuns: 1500, seed: 5 },
    );
  });

  it('refuses decimals, uuids, times and timestamps out of range', () => {
    const one = (type: unknown, bytes: number[]) => {
      const wrapped = record(field('x', type));
      return new TestTable(wrapped).decode(wrapped, Uint8Array.from(bytes))[0];
    };
    const decimal = { type: 'bytes', logicalType: 'decimal', precision: 3, scale: 0 };
    expect(one(decimal, [4, 0x03, 0xe8])).toContain('decimal exceeds decimal(3, 0)');
    expect(one(decimal, [4, 0x03, 0xe7])).toBeUndefined();
    expect(one(logical('string', 'uuid'), [4, 65, 66])).toContain('not a uuid');
    expect(one(logical('int', 'time-millis'), long(86_400_000n))).toContain('time outside the day');
    expect(one(logical('long', 'timestamp-millis'), long(2n ** 62n))).toContain(
      'timestamp out of range',
    );
  });
});

const data = new URL('../../../../shared/data/', import.meta.url);

describe('real schemas and data', () => {
  const datagen = new URL('datagen/', data);
  it.skipIf(!existsSync(datagen))('decodes random values of business schemas', () => {
    for (const file of readdirSync(datagen).filter((name) => name.endsWith('.avsc'))) {
      const text = readFileSync(new URL(file, datagen), 'utf8');
      if (text.includes('decimal')) continue; // random bytes are no decimals
      const schema = JSON.parse(text.replace(/(^|\s)\/\/.*$/gm, ''));
      const type = avsc.Type.forSchema(schema, { wrapUnions: true });
      const values = Array.from({ length: 5 }, () => type.toBuffer(type.random()));
      const table = new TestTable(schema);
      const reasons = table.decode(schema, ...values);
      expect(reasons, file).toEqual(values.map(() => undefined));
      expect(table.rows()).toHaveLength(5);
    }
  });

  const airline = new URL('airline-stats/airline-stats.avro', data);
  it.skipIf(!existsSync(airline))(
    'decodes 79 columns of airline statistics as avsc does',
    async () => {
      const decoder = avsc.createFileDecoder(airline.pathname);
      const schema = JSON.parse(
        readFileSync(new URL('airline-stats/airline-stats.avsc', data), 'utf8'),
      );
      const values: Record<string, unknown>[] = [];
      for await (const value of decoder) values.push(value as Record<string, unknown>);
      const type = avsc.Type.forSchema(schema);
      const table = new TestTable(schema);
      const sample = values.slice(0, 300);
      const reasons = table.decode(schema, ...sample.map((value) => type.toBuffer(value)));
      expect(reasons.every((reason) => reason === undefined)).toBe(true);
      const plain = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value);
      table.rows().forEach((row, i) => {
        for (const [name, value] of Object.entries(sample[i]!)) {
          expect(plain(row[name]), name).toEqual(value);
        }
      });
    },
  );
});
