// Names, widths, clocks and partition counts that nobody would wish for: the table takes them, or says why not.
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Topic } from '../metadata/topics.ts';
import { Bench } from './testing/bench.ts';
import { liveFiles, readRows } from './testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const JSON_VALUES = { 'table.topic.convert.value.type': 'json' };

const produce = (topic: Topic, values: readonly unknown[], timestamps: readonly number[] = []) =>
  bench.produce(
    topic,
    values.map((value, n) => ({
      value: JSON.stringify(value),
      ...(timestamps[n] === undefined ? {} : { timestamp: timestamps[n] }),
    })),
  );

async function columnsOf(table: string): Promise<string[]> {
  const metadata = await bench.load(table);
  const current = metadata['current-schema-id'];
  return metadata.schemas
    .find((schema) => schema['schema-id'] === current)!
    .fields.map((field) => field.name);
}

test('thousands of partitions in one commit, where that is allowed; else commit by commit', async () => {
  const records = Array.from({ length: 1_500 }, (_, id) => ({ id }));
  const config = { ...JSON_VALUES, 'table.topic.partition.by': '[id]' };
  const wide = await bench.topic('wide', {
    ...config,
    'table.topic.max.partitions.per.commit': '20000',
  });
  produce(wide, records);
  await bench.tables.commit('wide');
  const metadata = await bench.load('wide');
  expect(metadata.snapshots).toHaveLength(1);
  const files = await liveFiles(bench.warehouse, metadata);
  expect(new Set(files.map((file) => file.partition[0])).size).toBe(1_500);
  const bound = await bench.topic('bound', {
    ...config,
    'table.topic.max.partitions.per.commit': '300',
  });
  produce(bound, records.slice(0, 700));
  await bench.tables.commit('bound');
  const later = await bench.load('bound');
  expect(later.snapshots!.length).toBeGreaterThanOrEqual(3);
  for (const { summary } of later.snapshots!) {
    expect(Number(summary!['changed-partition-count'])).toBeLessThanOrEqual(300);
  }
  expect((await bench.tables.status('bound')).counters.rows).toBe(700);
});

test('clocks gone wild: every row lands in a partition that its time can be found by', async () => {
  const times = [0, 1, -1, -2, 1e12, 9e15, Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER];
  for (const transform of ['hour', 'day', 'month', 'year', 'identity']) {
    const by = transform === 'identity' ? '_kafka_timestamp' : `${transform}(_kafka_timestamp)`;
    const topic = await bench.topic(transform, {
      ...JSON_VALUES,
      'table.topic.partition.by': `[${by}]`,
      'table.topic.sort.by': '[_kafka_timestamp]',
    });
    produce(
      topic,
      times.map((_, n) => ({ n })),
      times,
    );
    await bench.tables.commit(transform);
    const metadata = await bench.load(transform);
    const files = await liveFiles(bench.warehouse, metadata);
    expect(files.reduce((sum, file) => sum + file.recordCount, 0)).toBe(times.length);
    if (transform === 'identity') continue;
    for (const { partition } of files) {
      const [value] = partition;
      // 32 bits are what a partition of time may have.
      if (value !== null) expect(Math.abs(Number(value))).toBeLessThanOrEqual(2 ** 31);
    }
  }
});

test('names in any script, empty, dotted, long, reserved or differing in case: a column each', async () => {
  const names = [
    '',
    ' ',
    'a.b',
    'ключ',
    '列',
    '😀',
    '__proto__',
    'constructor',
    'id',
    'Id',
    'ID',
    '_kafka_offset',
    '_kafka_value',
    '_rest',
    '`tick`',
    'quo"te',
    "quo'te",
    'new\nline',
    '[x]',
    '{y}',
    ':colon',
    'back\\slash',
    'x'.repeat(3_000),
  ];
  const record = `{${names.map((name, n) => `${JSON.stringify(name)}:${n}`).join(',')},"a":{"b":"in a struct"}}`;
  const topic = await bench.topic('odd', JSON_VALUES);
  bench.produce(topic, [{ value: record }, { value: record }]);
  await bench.tables.commit('odd');
  const columns = await columnsOf('odd');
  expect(columns).toHaveLength(names.length + 1 + 5);
  expect(new Set(columns.map((name) => name.toLowerCase())).size).toBe(columns.length);
  expect(columns).toContain('_kafka_offset_');
  expect(columns).toEqual(expect.arrayContaining(['id', 'Id_2', 'ID_3', '_', '_rest_']));
  const status = await bench.tables.status('odd');
  expect(status.counters).toMatchObject({ rows: 2, deadLetters: 0 });
  // Another reader finds every value under the column's name.
  const [file] = await liveFiles(bench.warehouse, await bench.load('odd'));
  const bytes = await bench.warehouse.read(file!.filePath);
  const { writeFileSync, mkdtempSync, rmSync } = await import('node:fs');
  const { join } = await import('node:path');
  const { tmpdir } = await import('node:os');
  const folder = mkdtempSync(join(tmpdir(), 'floe-odd-'));
  try {
    writeFileSync(join(folder, 'odd.parquet'), bytes);
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const found = await connection.runAndReadAll(
      `SELECT * FROM '${join(folder, 'odd.parquet')}' LIMIT 1`,
    );
    expect(found.columnNames()).toEqual(columns);
    const values = found.getRowsJS()[0]!.filter((value) => typeof value === 'bigint');
    for (let n = 0; n < names.length; n += 1) expect(values).toContain(BigInt(n));
    connection.closeSync();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a thousand columns: metrics for the first hundred and for Floe’s own', async () => {
  const wide = Object.fromEntries(Array.from({ length: 990 }, (_, n) => [`c${n}`, n]));
  const topic = await bench.topic('wide', { ...JSON_VALUES, 'table.topic.sort.by': '[c500]' });
  // The sort column is known from the second commit on.
  produce(topic, [wide, wide]);
  await bench.tables.commit('wide');
  const metadata = await bench.load('wide');
  expect(await columnsOf('wide')).toHaveLength(995);
  const [file] = await liveFiles(bench.warehouse, metadata);
  expect(file!.metrics.columnSizes.size).toBeGreaterThan(990);
  expect(file!.metrics.lowerBounds.size).toBeLessThan(110);
  const sorted = metadata.schemas.at(-1)!.fields.find((field) => field.name === 'c500')!.id;
  expect(file!.metrics.lowerBounds.has(sorted)).toBe(true);
  const rows = await readRows(bench.warehouse, metadata);
  expect(Number(rows[1]!['c989'])).toBe(989);
});
