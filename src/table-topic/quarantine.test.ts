// A table one of whose partitions is quarantined: the others' records become rows, the status says what is left out, and
// afterwards each record is a row once. A topic of dead letters that takes no records: the table waits, nothing is skipped.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { noMetrics } from '../base/metrics.ts';
import { QUARANTINE_CONFIG } from '../metadata/quarantine.ts';
import type { Topic } from '../metadata/topics.ts';
import type { TableTopicsDeps } from './index.ts';
import { Bench } from './testing/bench.ts';
import { liveRows } from './testing/live-rows.ts';
import { FakeCluster, startNode } from './testing/nodes.ts';

const TEXT = { 'table.topic.convert.value.type': 'string' };

let bench: Bench;
const gauges = new Map<string, () => number>();
const metrics: TableTopicsDeps['metrics'] = {
  ...noMetrics,
  observeGauge: (name, _help, read) => void gauges.set(name, read as () => number),
};

beforeEach(async () => {
  bench = await Bench.open({
    settings: { 'table.lanes.poll.ms': '10', 'table.lanes.wait.ms': '500' },
  });
  gauges.clear();
});

afterEach(() => bench.stop());

const quarantine = (topic: Topic, partitions: string | null) =>
  bench.directory.alterConfig(topic.topicId, { [QUARANTINE_CONFIG]: partitions });

/** Live rows as `partition/offset`. */
async function rows(table: string): Promise<string[]> {
  const live = await liveRows(bench.warehouse, await bench.load(table));
  return live
    .map(({ values }) => `${values['_kafka_partition']}/${values['_kafka_offset']}`)
    .toSorted();
}

const status = (name: string) => bench.tables.status(name);

test('its neighbours are committed, the status says so; lifted, every record is a row once', async () => {
  bench.start({ metrics });
  const topic = await bench.topic('o', TEXT, 3);
  for (const partition of [0, 1, 2]) bench.produce(topic, [{ value: 'a' }], partition);
  await bench.tables.commit('o');
  await quarantine(topic, '1');
  const reads: number[] = [];
  const { read } = bench.log;
  bench.log.read = (request) => {
    reads.push(...request.partitions.map(({ partitionId }) => partitionId));
    return read.call(bench.log, request);
  };
  for (const partition of [0, 1, 2]) bench.produce(topic, [{ value: 'b' }], partition);
  await bench.tables.commit('o');
  expect(await rows('o')).toEqual(['0/0', '0/1', '1/0', '2/0', '2/1']);
  expect(reads).not.toContain(topic.partitions[1]);
  expect(await status('o')).toMatchObject({
    state: 'running',
    reason: 'partition is quarantined and left out: 1 (floe.quarantined.partitions of the topic)',
    quarantinedPartitions: [1],
    lagRecords: 1,
  });
  expect(gauges.get('floe_table_quarantined_partitions')!()).toBe(1);
  await quarantine(topic, null);
  await bench.tables.commit('o');
  expect(await rows('o')).toEqual(['0/0', '0/1', '1/0', '1/1', '2/0', '2/1']);
  expect(await status('o')).toMatchObject({ state: 'running', reason: '', lagRecords: 0 });
  expect(await status('o')).not.toHaveProperty('quarantinedPartitions');
  expect(gauges.get('floe_table_quarantined_partitions')!()).toBe(0);
});

test('a damaged partition suspends the table; quarantined, it lets the others go on', async () => {
  bench.start();
  const topic = await bench.topic('o', TEXT, 2);
  const damaged = topic.partitions[1]!;
  const { read } = bench.log;
  bench.log.read = async (request) => {
    const result = await read.call(bench.log, request);
    const partitions = result.partitions.map((one) =>
      one.partitionId === damaged ? { ...one, errorCode: 56, runs: [] } : one,
    );
    return { ...result, partitions };
  };
  for (const partition of [0, 1]) bench.produce(topic, [{ value: 'a' }], partition);
  await expect(bench.tables.commit('o')).rejects.toThrow('reading partition 1 of o');
  await quarantine(topic, '1');
  await bench.tables.commit('o');
  expect(await rows('o')).toEqual(['0/0']);
});

test('a rebuild leaves its rows in the table, a rewind of it is refused', async () => {
  bench.start();
  const topic = await bench.topic('o', TEXT, 2);
  for (const partition of [0, 1]) bench.produce(topic, [{ value: 'a' }], partition);
  await bench.tables.commit('o');
  await quarantine(topic, '1');
  expect(await bench.tables.rewind('o', { kind: 'start' })).toMatchObject({ rows: 1 });
  expect(await rows('o')).toEqual(['1/0']);
  await bench.tables.commit('o');
  expect(await rows('o')).toEqual(['0/0', '1/0']);
  const offsets = new Map([[1, 0]]);
  await expect(bench.tables.rewind('o', { kind: 'offsets', offsets })).rejects.toThrow(
    'partition 1 is quarantined, so its rows can\'t be made again: take it off floe.quarantined.partitions of topic "o" first',
  );
  expect(await rows('o')).toEqual(['0/0', '1/0']);
});

test('its dead letters stay letters while those of its neighbours are tried again', async () => {
  bench.start();
  const json = { 'table.topic.convert.value.type': 'json' };
  const topic = await bench.topic('o', json, 2);
  for (const partition of [0, 1])
    bench.produce(topic, [{ value: '{"a":1}' }, { value: 'bad' }], partition);
  await bench.tables.commit('o');
  await quarantine(topic, '1');
  expect(await bench.tables.replay('o')).toMatchObject({ rows: 0, letters: 1 });
  await quarantine(topic, null);
  expect(await bench.tables.replay('o')).toMatchObject({ rows: 0, letters: 2 });
});

test('the wait of its records is the table’s lag, over restarts too', async () => {
  bench.start();
  const topic = await bench.topic('o', TEXT, 2);
  for (const partition of [0, 1]) bench.produce(topic, [{ value: 'a' }], partition);
  await quarantine(topic, '1');
  await bench.tables.commit('o');
  for (let round = 0; round < 3; round += 1) {
    const before = (await status('o')).lagSeconds;
    bench.produce(topic, [{ value: 'b' }], 0);
    await bench.tables.commit('o');
    expect((await status('o')).lagSeconds).toBeGreaterThan(before);
  }
  await bench.tables.stop();
  bench.start();
  await expect.poll(async () => (await status('o')).lagSeconds).toBeGreaterThan(0);
  expect(await status('o')).toMatchObject({ lagRecords: 1 });
});

test('lanes on other nodes leave it out as well', async () => {
  const fake = new FakeCluster();
  for (const nodeId of [1, 2]) fake.add(nodeId);
  const nodes = [1, 2].map((nodeId) => startNode(bench, fake, { nodeId }));
  const topic = await bench.topic('o', TEXT, 8);
  const all = [...topic.partitions.keys()];
  await quarantine(topic, '2,5');
  for (const partition of all) bench.produce(topic, [{ value: 'a' }], partition);
  const kept = all.filter((partition) => partition !== 2 && partition !== 5);
  const committed = async () => (await bench.catalog.tableExists(TABLE)) && rows('o');
  await expect.poll(committed).toEqual(kept.map((partition) => `${partition}/0`));
  for (const { tables } of nodes)
    expect(await tables.status('o')).toMatchObject({
      lagRecords: 2,
      quarantinedPartitions: [2, 5],
      reason: expect.stringContaining('partitions are quarantined and left out: 2, 5'),
    });
  await quarantine(topic, '');
  await expect.poll(committed).toEqual(all.map((partition) => `${partition}/0`));
  await Promise.all(nodes.map(({ tables }) => tables.stop()));
});

const TABLE = { namespace: ['kafka'], name: 'o' };

test('dead letters that can’t be appended make the table wait, and each is there once afterwards', async () => {
  let stop: string | undefined = 'topic "o-dlq" is read-only';
  const asked: string[] = [];
  bench.start({
    writeStop(topic, partition) {
      asked.push(`${topic.name}/${partition}`);
      return stop;
    },
  });
  const topic = await bench.topic('o', {
    'table.topic.convert.value.type': 'json',
    'table.topic.errors.tolerance': 'dlq_topic',
  });
  bench.produce(topic, [{ value: '{"a":1}' }, { value: 'bad' }, { value: '{"a":2}' }]);
  const why = `dead letters can't be appended: ${stop}`;
  await expect(bench.tables.commit('o')).rejects.toThrow(why);
  await expect.poll(() => asked.length).toBeGreaterThan(3);
  const letters = bench.directory.byName('o-dlq')!.partitions[0]!;
  expect(bench.log.batches(letters)).toEqual([]);
  expect((await status('o')).counters).toMatchObject({ rows: 0, deadLetters: 0, skipped: 0 });
  expect(new Set(asked)).toEqual(new Set(['o-dlq/0']));
  stop = undefined;
  await expect
    .poll(async () => (await status('o')).counters)
    .toMatchObject({ rows: 2, deadLetters: 1, skipped: 0 });
  expect(bench.log.batches(letters)).toHaveLength(1);
  await expect.poll(async () => (await status('o')).state).toBe('running');
});
