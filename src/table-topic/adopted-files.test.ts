// A table that is adopted together with files of another engine that have no field ids: its columns are found by the names they
// had then, whatever they are called later. Who reads such files must agree: the key index, compaction, rewinding.
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { dataFolder, newSnapshotId, prepareCommit } from '../formats/iceberg/index.ts';
import { NO_METRICS } from '../formats/iceberg/test-table.ts';
import { Bench } from './testing/bench.ts';
import { liveRows } from './testing/live-rows.ts';

const IDENTIFIER = { namespace: ['kafka'], name: 't' };

let folder: string;
let bytes: Uint8Array;
let bench: Bench;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'floe-adopted-'));
  const duckdb = await DuckDBInstance.create(':memory:', { threads: '1' });
  const path = join(folder, 'old.parquet');
  await (await duckdb.connect()).run(
    `COPY (SELECT i::BIGINT AS id, 'old' || i AS text FROM range(1, 5) t(i)) TO '${path}' (FORMAT parquet)`,
  );
  duckdb.closeSync();
  bytes = readFileSync(path);
});
afterAll(() => rm(folder, { recursive: true }));

beforeEach(async () => {
  bench = await Bench.open();
  await bench.catalog.ensureNamespace(['kafka']);
  await bench.catalog.createTable(['kafka'], {
    name: 't',
    schema: {
      type: 'struct',
      'schema-id': 0,
      fields: [
        { id: 1, name: 'id', required: false, type: 'long' },
        { id: 2, name: 'text', required: false, type: 'string' },
      ],
    },
  });
  await addOldFile();
  bench.start();
  return () => bench.stop();
});

async function addOldFile(): Promise<void> {
  const metadata = await bench.load('t');
  const ids = bench.seeded();
  const filePath = `${dataFolder(metadata)}/old-${ids.uuid()}.parquet`;
  await bench.warehouse.write(filePath, [bytes]);
  const prepared = await prepareCommit({
    metadata,
    io: bench.warehouse,
    snapshotId: newSnapshotId(ids, metadata),
    commitUuid: ids.uuid(),
    nowMs: bench.clock.now(),
    added: [
      {
        content: 0,
        filePath,
        fileFormat: 'PARQUET',
        specId: 0,
        partition: [],
        recordCount: 4,
        fileSizeInBytes: bytes.length,
        metrics: NO_METRICS,
      },
    ],
  });
  for (const { path, bytes: part } of prepared.objects) await bench.warehouse.write(path, part);
  await bench.catalog.commitTable(IDENTIFIER, prepared);
}

const CONFIG = {
  'table.topic.adopt': 'true',
  'table.topic.convert.value.type': 'json',
  'table.topic.convert.key.type': 'json',
};
const UPSERT = { 'table.topic.upsert.enable': 'true', 'table.topic.id.columns': '[id]' };
const RENAMED = {
  'table.topic.id.columns': '[number]',
  'table.topic.columns.rename': '[id: number]',
};

const put = (id: number, text: string) => ({
  key: JSON.stringify({ number: id }),
  value: JSON.stringify({ id, text }),
});

/** As `id=text`; files have the column by its old name or by its new one. */
const rows = async () =>
  (await liveRows(bench.warehouse, await bench.load('t')))
    .map(({ values }) => `${values['number'] ?? values['id']}=${values['text']}`)
    .toSorted();

test('keys of such files are found, before a rename and after it, by a lost index too', async () => {
  const topic = await bench.topic('t', { ...CONFIG, ...UPSERT });
  bench.produce(topic, [put(1, 'a')]);
  await bench.tables.commit('t');
  expect(await rows()).toEqual(['1=a', '2=old2', '3=old3', '4=old4']);
  await bench.directory.alterConfig(topic.topicId, RENAMED);
  bench.produce(topic, [put(2, 'b')]);
  await bench.tables.commit('t');
  expect(await rows()).toEqual(['1=a', '2=b', '3=old3', '4=old4']);
  const { schemas, properties } = await bench.load('t');
  expect(schemas.at(-1)!.fields[0]).toMatchObject({ id: 1, name: 'number' });
  expect(JSON.parse(properties!['schema.name-mapping.default']!)[0]).toEqual({
    'field-id': 1,
    names: ['number', 'id'],
  });
  // The index is built anew from the files.
  await bench.tables.stop();
  bench.start();
  bench.produce(topic, [put(3, 'c'), { key: JSON.stringify({ number: 4 }), value: null }]);
  await bench.tables.commit('t');
  expect(await rows()).toEqual(['1=a', '2=b', '3=c']);
});

test('compaction rewrites such files with their values', async () => {
  const topic = await bench.topic('t', CONFIG);
  await addOldFile();
  bench.produce(topic, [put(9, 'i')]);
  await bench.tables.commit('t');
  await bench.directory.alterConfig(topic.topicId, {
    'table.topic.columns.rename': '[id: number]',
  });
  bench.produce(topic, [put(10, 'k')]);
  await bench.tables.commit('t');
  const before = await rows();
  await bench.tables.maintain('t', 'compact');
  const live = await liveRows(bench.warehouse, await bench.load('t'));
  expect(new Set(live.map(({ filePath }) => filePath)).size).toBe(1);
  expect(live.every(({ values }) => values['number'] !== null)).toBe(true);
  expect(await rows()).toEqual(before);
  expect(before).toHaveLength(10);
});

test('rewinding leaves such files alone', async () => {
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [put(9, 'i')]);
  await bench.tables.commit('t');
  expect(await bench.tables.rewind('t', { kind: 'start' })).toMatchObject({ rows: 1 });
  await bench.tables.commit('t');
  expect(await rows()).toHaveLength(5);
});
