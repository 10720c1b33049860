// Keys out of files that other writers made: what the reader of our own files leaves alone is read all the same, or the
// index would not know of rows that are there.
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { parquetMetadata } from 'hyparquet';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { WHOLE_FILE } from '../../formats/iceberg/projection.ts';
import type { Schema } from '../../formats/iceberg/types.ts';
import { type KeyRequest, readKeyColumns } from './read-keys.ts';

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
    { id: 1, name: 'now_called', required: true, type: 'long' },
    { id: 2, name: 'name', required: false, type: 'string' },
  ],
};
const WANTED = [
  { fieldId: 1, type: 'long' },
  { fieldId: 2, type: 'string' },
] as const;
/** Columns were called otherwise when files came without ids. */
const MAPPING = [
  { 'field-id': 1, names: ['key', 'id'] },
  { 'field-id': 2, names: ['name'] },
];
const ROWS = 5_000;
/** Few distinct values in the first row group, which takes a dictionary; none alike in the others. */
const idOf = (row: number) => BigInt(row < 2048 ? row % 10 : row);

async function rowsOf(bytes: Uint8Array, request: KeyRequest): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const { firstRow, rowCount, columns } of readKeyColumns(bytes, 'f', request)) {
    expect(firstRow).toBe(rows.length);
    for (let row = 0; row < rowCount; row += 1)
      rows.push(columns.map((column) => column.valueAt(row)));
  }
  return rows;
}

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
  const projection = { ...WHOLE_FILE, mapping: MAPPING };
  const rows = await rowsOf(bytes, { schema: SCHEMA, wanted: WANTED, projection });
  expect(rows).toEqual(Array.from({ length: ROWS }, (_, row) => [idOf(row), `n${idOf(row)}`]));
});

it('takes what a file lacks from its partition, then from the default', async () => {
  const bytes = await written(IDS);
  const schema: Schema = {
    ...SCHEMA,
    fields: [
      { id: 3, name: 'day', required: false, type: 'date' },
      { id: 4, name: 'region', required: false, type: 'string', 'initial-default': 'eu' },
      { id: 5, name: 'note', required: false, type: 'string' },
    ],
  };
  const wanted = [
    { fieldId: 3, type: 'date' },
    { fieldId: 4, type: 'string' },
    { fieldId: 5, type: 'string' },
  ] as const;
  const of = async (partition: readonly (readonly [number, number | string | null])[]) =>
    (
      await rowsOf(bytes, {
        schema,
        wanted,
        projection: { ...WHOLE_FILE, partition: new Map(partition) },
      })
    )[ROWS - 1];
  expect(await of([[3, 20_000]])).toEqual([20_000, 'eu', null]);
  expect(
    await of([
      [3, null],
      [4, 'us'],
    ]),
  ).toEqual([null, 'us', null]);
});

it('gives null for all of a file without ids where no name is known', async () => {
  const rows = await rowsOf(await written(''), {
    schema: SCHEMA,
    wanted: WANTED,
    projection: WHOLE_FILE,
  });
  expect(rows[0]).toEqual([null, null]);
});
