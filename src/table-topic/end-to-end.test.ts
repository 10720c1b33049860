// From records to rows that DuckDB reads, with the real formats, catalog and metadata on a local folder.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import avsc from 'avsc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { seededIds, seededPrng } from '../base/prng.ts';
import { manifestsOf, readManifests } from '../formats/iceberg/index.ts';
import { LocalObjectStore } from '../storage/objects/index.ts';
import { Bench, framed } from './testing/bench.ts';

let folder: string;
let bench: Bench;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'floe-table-'));
  const ids = seededIds(seededPrng(7));
  bench = await Bench.open({
    store: await LocalObjectStore.open(folder, { clock: systemClock, ids }),
  });
  bench.start();
});

afterEach(async () => {
  await bench.stop();
  await rm(folder, { recursive: true });
});

/** Rows of the table's current snapshot through DuckDB's own Parquet reader. */
async function rows(table: string, sql: string): Promise<unknown[][]> {
  const metadata = await bench.load(table);
  const io = bench.warehouse;
  const snapshot = metadata.snapshots?.find(
    (one) => one['snapshot-id'] === metadata['current-snapshot-id'],
  );
  const manifests = await readManifests(io, metadata, await manifestsOf(io, snapshot));
  const files = manifests.flat().map((entry) => entry.file.filePath.replace('file://', ''));
  const list = files.map((file) => `'${file}'`).join(', ');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  await connection.run("SET TimeZone = 'UTC'");
  const reader = await connection.runAndReadAll(
    sql.replaceAll('TABLE', `read_parquet([${list}], union_by_name = true, filename = true)`),
  );
  connection.closeSync();
  return reader.getRowsJS() as unknown[][];
}

const flightSchema = {
  type: 'record',
  name: 'Flight',
  fields: [
    { name: 'delay', type: 'int' },
    { name: 'distance', type: ['null', 'double'] },
    { name: 'origin', type: 'string' },
    { name: 'at', type: { type: 'long', logicalType: 'timestamp-millis' } },
  ],
} as const;
const flight = avsc.Type.forSchema(flightSchema as unknown as avsc.Schema);

function flights(count: number, schemaId: number) {
  return Array.from({ length: count }, (_, n) => ({
    key: `k${n}`,
    timestamp: 1_700_000_000_000 + n * 60_000,
    headers: n % 3 === 0 ? [['h', null] as const] : [],
    value: framed(
      schemaId,
      flight.toBuffer({
        delay: n - 5,
        distance: n % 4 === 0 ? null : n / 2,
        origin: `A${n % 3}`,
        at: 1_600_000_000_000 + n,
      }),
    ),
  }));
}

test('Avro records become rows, every one once, with their coordinates', async () => {
  const id = await bench.schemas.register('flights-value', JSON.stringify(flightSchema));
  const topic = await bench.topic('flights', {}, 2);
  bench.produce(topic, flights(100, id), 0);
  bench.produce(topic, flights(50, id), 1);
  await bench.tables.commit('flights');
  expect(await bench.tables.status('flights')).toMatchObject({
    state: 'running',
    lagRecords: 0,
    counters: { rows: 150, commits: 1 },
  });
  const all = await rows(
    'flights',
    `SELECT delay, distance, origin, epoch_ms("at"), _kafka_partition, _kafka_offset,
      epoch_ms(_kafka_timestamp), decode(_kafka_key), len(_kafka_headers)
      FROM TABLE ORDER BY _kafka_partition, _kafka_offset`,
  );
  expect(all).toHaveLength(150);
  for (const [at, row] of all.entries()) {
    const n = at % 100;
    expect(row).toEqual([
      n - 5,
      n % 4 === 0 ? null : n / 2,
      `A${n % 3}`,
      BigInt(1_600_000_000_000 + n),
      at < 100 ? 0 : 1,
      BigInt(n),
      BigInt(1_700_000_000_000 + n * 60_000),
      `k${n}`,
      n % 3 === 0 ? 1n : 0n,
    ]);
  }
});

test('a table partitioned by hour and bucket holds the same rows, one file per partition', async () => {
  const id = await bench.schemas.register('flights-value', JSON.stringify(flightSchema));
  const topic = await bench.topic('flights', {
    'table.topic.partition.by': '[hour(_kafka_timestamp), bucket(origin, 4)]',
  });
  bench.produce(topic, flights(300, id));
  await bench.tables.commit('flights');
  const counted = await rows(
    'flights',
    'SELECT count(*), count(DISTINCT _kafka_offset), sum(delay) FROM TABLE',
  );
  expect(counted).toEqual([[300n, 300n, BigInt((299 * 300) / 2 - 5 * 300)]]);
  const perFile = await rows(
    'flights',
    `SELECT filename, count(DISTINCT date_trunc('hour', _kafka_timestamp)) FROM TABLE GROUP BY 1`,
  );
  expect(perFile.map((row) => row[1])).toEqual(perFile.map(() => 1n));
  expect(perFile.length).toBeGreaterThan(5);
});

test('rows appear by themselves within the interval, and again after a restart', async () => {
  const topic = await bench.topic('lines', { 'table.topic.convert.value.type': 'string' });
  bench.produce(topic, [{ value: 'a' }, { value: null }, { value: '' }]);
  await expect.poll(async () => (await bench.tables.status('lines')).counters.commits).toBe(1);
  await bench.tables.stop();
  bench.produce(topic, [{ value: 'b' }]);
  bench.start();
  await expect.poll(async () => (await bench.tables.status('lines')).counters.commits).toBe(2);
  const all = await rows('lines', 'SELECT _kafka_offset, _kafka_value FROM TABLE ORDER BY 1');
  expect(all).toEqual([
    [0n, 'a'],
    [1n, null],
    [2n, ''],
    [3n, 'b'],
  ]);
});

test('JSON becomes columns; what changes its type takes a column of its own, nothing is lost', async () => {
  const topic = await bench.topic('events', { 'table.topic.convert.value.type': 'json' }, 2);
  const json = (value: unknown) => ({ value: JSON.stringify(value) });
  bench.produce(topic, [json({ id: 1, price: 2, tags: ['a'], at: { x: 1 } })], 0);
  bench.produce(topic, [json({ id: 2, price: 2.5, extra: null, empty: {} })], 1);
  await bench.tables.commit('events');
  bench.produce(topic, [
    json({ id: 'three', price: 1, at: { x: 2, y: true }, later: 'new' }),
    json([1, 2]),
    { value: '{"id":' },
    { value: null },
    json({ id: 4 }),
  ]);
  await bench.tables.commit('events');
  expect(
    await rows(
      'events',
      `SELECT id, id__string, price, tags, "at".x, "at".y, later, _kafka_value
       FROM TABLE ORDER BY _kafka_partition, _kafka_offset`,
    ),
  ).toEqual([
    [1n, null, 2, ['a'], 1n, null, null, null],
    [null, 'three', 1, null, 2n, true, 'new', null],
    [null, null, null, null, null, null, null, '[1,2]'],
    [4n, null, null, null, null, null, null, null],
    [2n, null, 2.5, null, null, null, null, null],
  ]);
  expect(
    await rows('events_dlq', 'SELECT "offset", reason, stage, decode(value) FROM TABLE ORDER BY 1'),
  ).toEqual([
    [3n, 'not_json', 'value', '{"id":'],
    [4n, 'null_value', 'value', null],
  ]);
});
