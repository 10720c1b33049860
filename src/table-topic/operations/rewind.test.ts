// Sending a table back: each row there exactly once afterwards, whatever was staged, in v2 and v3.
import { fastify } from 'fastify';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import { manifestSource, planScan } from '../../formats/iceberg/index.ts';
import { ParquetReader } from '../../formats/parquet/read/reader.ts';
import type { Topic } from '../../metadata/topics.ts';
import { DeleteFiles } from '../maintenance/deletes.ts';
import { tableRoutes } from '../routes.ts';
import { Bench } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';
import { BEFORE_TAG } from './rewind.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const json = { 'table.topic.convert.value.type': 'json' };

/** `partition:offset` of every live row, sorted: deletes applied. */
async function places(name = 't'): Promise<string[]> {
  const metadata = await bench.load(name);
  const plan = await planScan({ metadata, source: manifestSource(bench.warehouse) });
  const deletes = new DeleteFiles(bench.warehouse);
  const found: string[] = [];
  for (const { file, positionDeletes } of plan.files) {
    const gone = (await deletes.positions(file, positionDeletes)).flatMap((one) => [...one]);
    const reader = new ParquetReader(await bench.warehouse.read(file.filePath));
    const columns = new TableColumns(plan.schema);
    for (const group of reader.rowGroups.keys()) reader.readRowGroup(group, columns);
    columns.align();
    const [partitions, offsets] = ['_kafka_partition', '_kafka_offset'].map((column) => {
      const field = plan.schema.fields.find((one) => one.name === column)!;
      return columns.byId(field.id)!;
    });
    for (let row = 0; row < columns.rowCount; row += 1) {
      if (gone.includes(row)) continue;
      found.push(`${partitions!.valueAt(row)}:${offsets!.valueAt(row)}`);
    }
  }
  return found.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

const expected = (...ends: number[]) =>
  ends.flatMap((end, partition) => Array.from({ length: end }, (_, n) => `${partition}:${n}`));

async function fill(topic: Topic, rounds = 3): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (const partition of topic.partitions.keys()) {
      bench.produce(
        topic,
        [1, 2, 3].map((n) => ({ value: `{"n":${n}}` })),
        partition,
      );
    }
    await bench.tables.commit('t');
  }
}

describe.each(['2', '3'])('format version %s', (version) => {
  const config = { ...json, 'table.topic.format.version': version };

  test('rows from the offsets on go and come again, once', async () => {
    const topic = await bench.topic('t', config, 2);
    await fill(topic);
    expect(await places()).toEqual(expected(9, 9));
    const before = (await bench.load('t'))['current-snapshot-id'];
    const offsets = new Map([[0, 4]]);
    const rewound = await bench.tables.rewind('t', { kind: 'offsets', offsets });
    expect(rewound).toEqual({
      rows: 5,
      offsets: new Map([
        [0, 4],
        [1, 9],
      ]),
    });
    await bench.tables.commit('t');
    expect(await places()).toEqual(expected(9, 9));
    const { refs } = await bench.load('t');
    expect(refs?.[BEFORE_TAG]).toMatchObject({ 'snapshot-id': before });
    expect(await bench.tables.status('t')).toMatchObject({ state: 'running', lagRecords: 0 });
    // Again, over rows that were deleted once.
    await bench.tables.rewind('t', {
      kind: 'offsets',
      offsets: new Map([
        [0, 2],
        [1, 8],
      ]),
    });
    await bench.tables.commit('t');
    expect(await places()).toEqual(expected(9, 9));
  });

  test('a rebuild makes all that the log has again; what it has no more stays', async () => {
    const topic = await bench.topic('t', config);
    await fill(topic);
    bench.log.expire(topic.partitions[0]!, 3);
    const { rows, offsets } = await bench.tables.rewind('t', { kind: 'start' });
    expect([rows, offsets.get(0)]).toEqual([6, 3]);
    expect(await places()).toEqual(expected(3));
    await bench.tables.commit('t');
    expect(await places()).toEqual(expected(9));
  });
});

test('by time, paused and running', async () => {
  const topic = await bench.topic('t', json);
  const records = [0, 1, 2, 3].map((n) => ({ value: `{"n":${n}}`, timestamp: 1_000 + n }));
  for (const record of records) bench.produce(topic, [record]);
  await bench.tables.commit('t');
  await bench.tables.pause('t');
  const to = { kind: 'time', timestampMs: 1_002 } as const;
  expect(await bench.tables.rewind('t', to)).toMatchObject({ rows: 2 });
  expect((await bench.tables.status('t')).state).toBe('paused');
  expect(await places()).toEqual(expected(2));
  await bench.tables.resume('t');
  await bench.tables.commit('t');
  expect(await places()).toEqual(expected(4));
});

test('dead letters come once, and a record that became one since comes too', async () => {
  const topic = await bench.topic('t', json);
  bench.produce(topic, [{ value: '{"n":1}' }, { value: 'bad' }, { value: '{"n":2}' }]);
  await bench.tables.commit('t');
  const [letter] = await readRows(bench.warehouse, await bench.load('t_dlq'));
  expect(Number(letter!['offset'])).toBe(1);
  await bench.directory.alterConfig(topic.topicId, {
    'table.topic.convert.value.type': 'json',
    'table.topic.evolution.incompatible': 'dlq',
  });
  bench.produce(topic, [{ value: 'worse' }]);
  await bench.tables.commit('t');
  await bench.tables.rewind('t', { kind: 'start' });
  await bench.tables.commit('t');
  const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
  expect(letters.map((row) => Number(row['offset'])).toSorted()).toEqual([1, 3]);
  expect(await places()).toEqual(['0:0', '0:2']);
});

test('what can’t be is refused with the reason, and changes nothing', async () => {
  const topic = await bench.topic('t', json);
  await fill(topic, 1);
  const rewind = (offsets: [number, number][]) =>
    bench.tables.rewind('t', { kind: 'offsets', offsets: new Map(offsets) });
  await expect(rewind([[7, 0]])).rejects.toThrow(/no partition 7/);
  await expect(rewind([[0, 99]])).rejects.toThrow(/offset 99 .* last stable offset/);
  expect(await rewind([[0, 3]])).toMatchObject({ rows: 0 });
  await bench.topic('bare', { ...json, 'table.topic.system.columns': '[]' });
  const bare = bench.directory.byName('bare')!;
  bench.produce(bare, [{ value: '{"n":1}' }]);
  await bench.tables.commit('bare');
  await expect(bench.tables.rewind('bare', { kind: 'start' })).rejects.toThrow(
    /no column _kafka_partition/,
  );
  await bench.tables.commit('bare');
  expect(await bench.tables.status('bare')).toMatchObject({ state: 'running', lagRecords: 0 });
  expect(await readRows(bench.warehouse, await bench.load('bare'))).toHaveLength(1);
});

test('over HTTP', async () => {
  const topic = await bench.topic('t', json);
  await fill(topic);
  const app = fastify();
  tableRoutes(app, { tables: bench.tables });
  const post = async (path: string, payload?: object) => {
    const response = await app.inject({
      method: 'POST',
      url: `/v1/tables/t/${path}`,
      ...(payload && { payload }),
    });
    return [response.statusCode, response.json()];
  };
  expect(await post('rewind', { offsets: { 0: 7 } })).toEqual([
    200,
    { rows: 2, offsets: { 0: 7 } },
  ]);
  await bench.tables.commit('t');
  expect(await post('rebuild')).toEqual([200, { rows: 9, offsets: { 0: 0 } }]);
  expect(await post('rewind', { offset: 3 })).toMatchObject([400, { error: { code: 'invalid' } }]);
  expect(await post('rewind', { offsets: { 0: '3' } })).toMatchObject([400, {}]);
  expect(await post('rewind', { timestamp: 'soon' })).toMatchObject([400, {}]);
});
