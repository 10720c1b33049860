// One form of a key for every path: from column buffers, from the same rows read back from a Parquet file, and from
// record keys cast to the id columns' types.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BytesColumn, FixedColumn } from '../../formats/arrow/byte-columns.ts';
import type { Column } from '../../formats/arrow/column.ts';
import type {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../../formats/arrow/scalar-columns.ts';
import { createColumn, TableColumns } from '../../formats/arrow/table-columns.ts';
import { WHOLE_FILE } from '../../formats/iceberg/projection.ts';
import type { PrimitiveTypeName, Schema } from '../../formats/iceberg/types.ts';
import { ParquetWriter } from '../../formats/parquet/writer.ts';
import { KeyHasher } from './canonical-key.ts';
import { castColumn, castInto, type KeyValue } from './cast-key.ts';
import { readKeyColumns } from './read-keys.ts';

const TYPES = [
  'int',
  'long',
  'string',
  'binary',
  'boolean',
  'double',
  'date',
  'timestamptz',
  'decimal(20,3)',
  'uuid',
] as const satisfies readonly PrimitiveTypeName[];

const SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: TYPES.map((type, n) => ({ id: n + 1, name: `c${n}`, required: false, type })),
};

const KEY = [1, 2, 3, 4] as const;

const row = fc.tuple(
  fc.option(fc.integer()),
  fc.option(fc.maxSafeInteger()),
  fc.option(fc.string({ maxLength: 40 })),
  fc.option(fc.uint8Array({ maxLength: 40 })),
  fc.option(fc.boolean()),
  fc.option(fc.double()),
  fc.option(fc.integer({ min: -100_000, max: 100_000 })),
  fc.option(fc.maxSafeInteger()),
  fc.option(fc.bigInt(-(10n ** 19n), 10n ** 19n)),
  fc.option(fc.uint8Array({ minLength: 16, maxLength: 16 })),
);

function append(column: Column, value: unknown): void {
  if (value === null) column.appendNull();
  else if (typeof value === 'bigint') (column as FixedColumn).appendBigInt(value);
  else if (typeof value === 'boolean') (column as BooleanColumn).append(value);
  else if (typeof value === 'string') (column as BytesColumn).appendText(value);
  else if (typeof value === 'number')
    (column as Int32Column | Int64Column | FloatColumn).append(value);
  else if (column.type === 'uuid') (column as FixedColumn).append(value as Uint8Array, 0);
  else (column as BytesColumn).append(value as Uint8Array, 0, (value as Uint8Array).length);
}

function hashes(columns: readonly Column[], count: number): string[] {
  const hasher = new KeyHasher(columns, KEY);
  return Array.from({ length: count }, (_, n) => {
    hasher.row(n);
    return [hasher.hash.h0, hasher.hash.h1, hasher.hash.h2, hasher.hash.h3].join();
  });
}

test('rows read back from a file have the keys they were written with', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 20 }), async (rows) => {
      const columns = new TableColumns(SCHEMA);
      for (const values of rows) {
        values.forEach((value, n) => {
          append(columns.columns[n]!, value);
        });
        columns.endRow();
      }
      const writer = new ParquetWriter({ schema: SCHEMA });
      writer.writeRowGroup(columns);
      const bytes = new Uint8Array(Buffer.concat(writer.finish().parts));
      const wanted = TYPES.map((type, n) => ({ fieldId: n + 1, type }));
      const request = { schema: SCHEMA, wanted, projection: WHOLE_FILE };
      for await (const group of readKeyColumns(bytes, 'f', request))
        expect(hashes(group.columns, group.rowCount)).toEqual(hashes(columns.columns, rows.length));
    }),
    { numRuns: 60, seed: 5 },
  );
});

test('different keys differ, also where their parts run together', () => {
  const of = (...values: (string | null)[]) => {
    const columns = values.map((value) => {
      const column = createColumn('string');
      append(column, value);
      return column;
    });
    return hashes(columns, 1)[0];
  };
  const all = [of('ab', 'c'), of('a', 'bc'), of('abc', ''), of('abc', null), of(null, 'abc')];
  expect(new Set(all).size).toBe(all.length);
});

test('a wider type keeps its keys; one zero, one NaN', () => {
  const of = (type: PrimitiveTypeName, value: unknown) => {
    const column = createColumn(type);
    append(column, value);
    return hashes([column], 1)[0];
  };
  expect(of('int', -5)).toBe(of('long', -5));
  expect(of('float', 0.5)).toBe(of('double', 0.5));
  expect(of('double', -0)).toBe(of('double', 0));
  expect(of('decimal(9,2)', 12_345n)).toBe(of('decimal(30,2)', 12_345n));
});

test.each<[PrimitiveTypeName, KeyValue, KeyValue | undefined]>([
  ['long', '42', 42n],
  ['long', 42, 42n],
  ['long', new TextEncoder().encode('-7'), -7n],
  ['long', '4.5', undefined],
  ['long', '99999999999999999999', undefined],
  ['int', 3_000_000_000, undefined],
  ['string', new TextEncoder().encode('é'), 'é'],
  ['string', Uint8Array.of(0xff), undefined],
  ['string', 42n, '42'],
  ['boolean', 'true', true],
  ['boolean', 'yes', undefined],
  ['double', '1e3', 1_000],
  ['double', '', undefined],
  ['date', '1970-01-11', 10],
  ['timestamptz', '1970-01-01T00:00:01.000002+00:00', 1_000_002n],
])('a record key %s from %s', (type, value, expected) => {
  const column = castColumn(type);
  expect(castInto(column, value)).toBe(expected !== undefined);
  if (expected !== undefined) expect(column.valueAt(0)).toEqual(expected);
});

test('record keys: decimals and UUIDs by text or bytes', () => {
  const of = (type: PrimitiveTypeName, value: KeyValue) => {
    const column = castColumn(type);
    return castInto(column, value) ? hashes([column], 1)[0] : undefined;
  };
  const uuid = Uint8Array.from({ length: 16 }, (_, n) => n);
  expect(of('uuid', '00010203-0405-0607-0809-0a0b0c0d0e0f')).toBe(of('uuid', uuid));
  expect(of('decimal(10,2)', '-1.5')).toBe(of('decimal(10,2)', '-1.50'));
  expect(of('decimal(10,2)', '1.505')).toBeUndefined();
});
