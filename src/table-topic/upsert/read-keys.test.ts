// Keys out of files that other writers made: what the reader of our own files leaves alone is read all the same, or the
// index would not know of rows that are there.
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { parquetMetadata } from 'hyparquet';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Schema } from '../../formats/iceberg/types.ts';
import { readKeyColumns } from './read-keys.ts';

let folder: string;
let duckdb: DuckDBInstance;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'floe-keys-'));
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
    { id: 1, name: 'id', required: true, type: 'long' },
    { id: 2, name: 'name', required: false, type: 'string' },
  ],
};
const WANTED = [
  { fieldId: 1, path: ['id'], type: 'long' },
  { fieldId: 2, path: ['name'], type: 'string' },
] as const;
const ROWS = 5_000;
/** Few distinct values in the first row group, which takes a dictionary; none alike in the others. */
const idOf = (row: number) => BigInt(row < 2048 ? row % 10 : row);

async function written(options: string): Promise<Uint8Array> {
  const path = join(folder, `${options.length}.parquet`);
  const connection = await duckdb.connect();
  await connection.run(
    `COPY (SELECT CASE WHEN i < 2048 THEN i % 10 ELSE i END AS id, 'n' || id AS name FROM range(${ROWS}) t(i))
     TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 2048${options})`,
  );
  connection.closeSync();
  return new Uint8Array(readFileSync(path));
}

const IDS = ', FIELD_IDS {id: 1, name: 2}';

it.each([
  ['as this product writes them', IDS],
  ['without field ids', ''],
  ['in DELTA encodings from the second row group on', `${IDS}, PARQUET_VERSION 'V2'`],
])('reads keys of files %s', async (_, options) => {
  const bytes = await written(options);
  const encodings = parquetMetadata(bytes.slice().buffer).row_groups.map((group) =>
    group.columns[0]!.meta_data!.encodings.some((one) => one.startsWith('DELTA')),
  );
  expect(encodings).toEqual(options.includes('V2') ? [false, true, true] : [false, false, false]);
  const rows: unknown[] = [];
  const request = { schema: SCHEMA, wanted: WANTED };
  for await (const { firstRow, rowCount, columns } of readKeyColumns(bytes, 'f', request)) {
    expect(firstRow).toBe(rows.length);
    for (let row = 0; row < rowCount; row += 1)
      rows.push(columns.map((column) => column.valueAt(row)));
  }
  expect(rows).toEqual(Array.from({ length: ROWS }, (_, row) => [idOf(row), `n${idOf(row)}`]));
});
