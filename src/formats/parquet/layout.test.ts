// Layouts by table properties, and the files they make, read by DuckDB and hyparquet as independent readers.
import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import { parquetMetadata } from 'hyparquet';
import { xxhash64 } from 'hyparquet/src/xxhash.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import type { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type { FloatColumn, Int32Column, Int64Column } from '../arrow/scalar-columns.ts';
import { TableColumns } from '../arrow/table-columns.ts';
import type { Schema } from '../iceberg/types.ts';
import { decodeSingleValue } from '../iceberg/value.ts';
import { bloomBytes } from './bloom.ts';
import { CODEC_NAMES, checkLayoutProperty, DEFAULT_LAYOUT, fileLayout } from './layout.ts';
import { ParquetWriter } from './writer.ts';
import { type Hash64, hashBytes, hashPair, hashWord } from './xxhash64.ts';

let folder: string;
let duckdb: DuckDBInstance;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'floe-layout-'));
  duckdb = await DuckDBInstance.create(':memory:', { threads: '1' });
});
afterAll(async () => {
  duckdb.closeSync();
  await rm(folder, { recursive: true });
});

const SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'id', required: false, type: 'long' },
    { id: 2, name: 'name', required: false, type: 'string' },
    { id: 3, name: 'number', required: false, type: 'int' },
    { id: 4, name: 'share', required: false, type: 'double' },
    { id: 5, name: 'uid', required: false, type: 'uuid' },
  ],
};
const ROWS = 5_000;

function rows(): TableColumns {
  const columns = new TableColumns(SCHEMA);
  const [id, name, number, share, uid] = columns.columns as [
    Int64Column,
    BytesColumn,
    Int32Column,
    FloatColumn,
    FixedColumn,
  ];
  const prng = seededPrng(3);
  for (let row = 0; row < ROWS; row++) {
    id.append(row * 7);
    if (row % 10 === 9) name.appendNull();
    else name.appendText(`customer number ${row % 100} of a name long enough for stripes`);
    number.append(row * 3);
    share.append(row / 8);
    uid.append(prng.bytes(16), 0);
    columns.endRow();
  }
  return columns;
}

function write(properties: Record<string, string>) {
  const columns = rows();
  const layout = fileLayout(properties, SCHEMA);
  const writer = new ParquetWriter({ schema: SCHEMA, layout });
  writer.writeRowGroup(columns);
  const file = writer.finish();
  const path = join(
    folder,
    `${Math.abs(JSON.stringify(properties).length)}-${file.byteLength}.parquet`,
  );
  const bytes = Buffer.concat(file.parts);
  expect(bytes.length).toBe(file.byteLength);
  writeFileSync(path, bytes);
  return { file, path, footer: parquetMetadata(new Uint8Array(bytes).buffer) };
}

async function query(sql: string): Promise<unknown[][]> {
  const connection = await duckdb.connect();
  try {
    return (await connection.runAndReadAll(sql)).getRowsJson() as unknown[][];
  } finally {
    connection.closeSync();
  }
}

test('xxHash64 agrees with another implementation on any bytes', () => {
  const into: Hash64 = { high: 0, low: 0 };
  const value = () => (BigInt(into.high >>> 0) << 32n) | BigInt(into.low >>> 0);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      hashBytes(bytes, 0, bytes.length, into);
      expect(value()).toBe(xxhash64(bytes));
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      if (bytes.length >= 8) {
        hashPair(view.getInt32(0, true), view.getInt32(4, true), into);
        expect(value()).toBe(xxhash64(bytes.subarray(0, 8)));
        hashWord(view.getInt32(0, true), into);
        expect(value()).toBe(xxhash64(bytes.subarray(0, 4)));
      }
    }),
    { seed: 5, numRuns: 500 },
  );
});

test('every codec, its level where it has one, is read back by DuckDB', async () => {
  for (const codec of CODEC_NAMES) {
    const { path, footer } = write({
      'write.parquet.compression-codec': codec,
      'write.parquet.compression-level': '4',
    });
    const codecs = new Set(footer.row_groups[0]!.columns.map((chunk) => chunk.meta_data!.codec));
    // Random uuids don't shrink and are stored as they are.
    codecs.delete('UNCOMPRESSED');
    const names = { lz4: 'LZ4_RAW', uncompressed: undefined } as Record<string, string | undefined>;
    const name = codec in names ? names[codec] : codec.toUpperCase();
    expect([...codecs]).toEqual(name === undefined ? [] : [name]);
    const [sums] = await query(
      `SELECT count(*), count(name), sum(id), max(name), sum(share) FROM '${path}'`,
    );
    expect(sums).toEqual([
      '5000',
      '4500',
      String((7 * ROWS * (ROWS - 1)) / 2),
      'customer number 98 of a name long enough for stripes',
      (ROWS * (ROWS - 1)) / 16,
    ]);
  }
});

test('bloom filters: what is there is never denied, what is not mostly is', async () => {
  const columns = ['id', 'name', 'number', 'share', 'uid'];
  const { path, footer } = write(
    Object.fromEntries([
      ...columns.map((name) => [`write.parquet.bloom-filter-enabled.column.${name}`, 'true']),
      ['write.parquet.bloom-filter-fpp.column.id', '0.001'],
      ['write.parquet.bloom-filter-enabled.column.gone', 'true'],
    ]),
  );
  for (const { meta_data: chunk } of footer.row_groups[0]!.columns) {
    expect(chunk!.bloom_filter_offset).toBeGreaterThan(0n);
    expect(chunk!.bloom_filter_length).toBeGreaterThan(32);
  }
  const denied = async (column: string, values: readonly string[]) => {
    let count = 0;
    for (const value of values) {
      const [row] = await query(
        `SELECT bloom_filter_excludes FROM parquet_bloom_probe('${path}', '${column}', ${value})`,
      );
      count += row![0] === true ? 1 : 0;
    }
    return count;
  };
  const numbers = (at: (n: number) => number | string) =>
    Array.from({ length: 60 }, (_, n) => String(at(n)));
  expect(
    await denied(
      'id',
      numbers((n) => `${n * 7 * 80}::BIGINT`),
    ),
  ).toBe(0);
  expect(
    await denied(
      'id',
      numbers((n) => `${n * 7 + 1}::BIGINT`),
    ),
  ).toBe(60);
  expect(
    await denied(
      'number',
      numbers((n) => `${n * 30}::INT`),
    ),
  ).toBe(0);
  expect(
    await denied(
      'number',
      numbers((n) => `${n * 3 + 1}::INT`),
    ),
  ).toBeGreaterThan(50);
  expect(
    await denied(
      'share',
      numbers((n) => `${n * 5}::DOUBLE`),
    ),
  ).toBe(0);
  const name = (n: number | string) => `'customer number ${n} of a name long enough for stripes'`;
  expect(
    await denied(
      'name',
      numbers((n) => name(n)),
    ),
  ).toBe(n9s(60));
  expect(
    await denied(
      'name',
      numbers((n) => name(`x${n}`)),
    ),
  ).toBeGreaterThan(50);
  const [found] = await query(`SELECT id FROM '${path}' WHERE id = 700 AND name IS NOT NULL`);
  expect(found).toEqual(['700']);
});

/** Numbers that end in 9 have null names. */
const n9s = (count: number) => Math.floor(count / 10);

test('a filter is as large as its values ask for, within its bounds', () => {
  expect(bloomBytes(0, { falsePositives: 0.01, maxBytes: 2 ** 20 })).toBe(32);
  const many = bloomBytes(100_000, { falsePositives: 0.01, maxBytes: 2 ** 20 });
  expect(many).toBe(2 ** 17);
  expect(bloomBytes(10 ** 7, { falsePositives: 0.01, maxBytes: 100_000 })).toBe(65_536);
});

test('metrics modes: none, counts, longer and whole bounds; what leads the sort order keeps its bounds', () => {
  const { file } = write({
    'write.metadata.metrics.default': 'counts',
    'write.metadata.metrics.column.id': 'none',
    'write.metadata.metrics.column.name': 'full',
    'write.metadata.metrics.column.number': 'truncate(4)',
  });
  const { valueCounts, lowerBounds, upperBounds, columnSizes } = file.metrics;
  expect([...columnSizes.keys()]).toEqual([1, 2, 3, 4, 5]);
  expect([...valueCounts.keys()]).toEqual([2, 3, 4, 5]);
  expect([...lowerBounds.keys()]).toEqual([2, 3]);
  expect(decodeSingleValue('string', upperBounds.get(2)!)).toBe(
    'customer number 98 of a name long enough for stripes',
  );
  const sorted = fileLayout({ 'write.metadata.metrics.default': 'none' }, SCHEMA, {
    'order-id': 1,
    fields: [
      { 'source-id': 4, transform: 'identity', direction: 'asc', 'null-order': 'nulls-first' },
    ],
  });
  expect(sorted.metrics.byField.get(4)).toBe(16);
  const few = fileLayout({ 'write.metadata.metrics.max-inferred-column-defaults': '2' }, SCHEMA);
  expect(few.metrics.maxColumns).toBe(2);
});

test('pages and dictionaries follow their properties', () => {
  const pages = (properties: Record<string, string>) => {
    const { footer } = write(properties);
    return footer.row_groups[0]!.columns.map(({ meta_data: chunk }) => ({
      dictionary: chunk!.dictionary_page_offset !== undefined,
      pages: chunk!.encoding_stats!.find((one) => one.page_type === 'DATA_PAGE')!.count,
    }));
  };
  expect(pages({})[1]).toEqual({ dictionary: true, pages: 1 });
  expect(pages({ 'write.parquet.dict-size-bytes': '0' })[1]).toEqual({
    dictionary: false,
    pages: 1,
  });
  expect(pages({ 'write.parquet.page-row-limit': '1000' })[0]!.pages).toBe(5);
  expect(pages({ 'write.parquet.page-size-bytes': '8000' })[0]!.pages).toBe(5);
});

test('a property that can’t be read is refused by name, and on a stranger’s table passed over', () => {
  const bad: Record<string, string> = {
    'write.parquet.compression-codec': 'lzo',
    'write.target-file-size-bytes': '0',
    'write.parquet.bloom-filter-fpp.column.id': '1.5',
    'write.parquet.bloom-filter-enabled.column.id': 'yes',
    'write.metadata.metrics.default': 'truncate(0)',
  };
  for (const [name, value] of Object.entries(bad)) {
    expect(() => checkLayoutProperty(name, value), name).toThrow(/is not/);
  }
  checkLayoutProperty('anything.else', 'x');
  expect(fileLayout(bad, SCHEMA)).toEqual({
    ...DEFAULT_LAYOUT,
    metrics: { ...DEFAULT_LAYOUT.metrics, maxColumns: Number.POSITIVE_INFINITY },
  });
});
