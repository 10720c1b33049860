// After a roll-back, a drop and a policy each record of the log is a row or a dead letter, once: also where what was a row
// is none any more, below what the table of dead letters had reached.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Topic } from '../../metadata/topics.ts';
import { Bench } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const JSON_VALUES = { 'table.topic.convert.value.type': 'json' };
/** What is no framed value is no row then. */
const BY_SCHEMA = { 'table.topic.convert.value.type': 'by_schema_id' };

const offsets = async (name: string, column: string) =>
  (await readRows(bench.warehouse, await bench.load(name)))
    .map((row) => Number(row[column]))
    .toSorted((a, b) => a - b);

/** Rows, then letters. */
const found = async () => [await offsets('t', '_kafka_offset'), await offsets('t_dlq', 'offset')];

async function filled(config: Readonly<Record<string, string>> = {}): Promise<Topic> {
  const topic = await bench.topic('t', { ...JSON_VALUES, ...config });
  bench.produce(topic, [{ value: '{"n":0}' }]);
  await bench.tables.commit('t');
  bench.produce(topic, [{ value: 'bad' }, { value: '{"n":2}' }, { value: 'worse' }]);
  await bench.tables.commit('t');
  expect(await found()).toEqual([
    [0, 2],
    [1, 3],
  ]);
  return topic;
}

const identifier = { namespace: ['kafka'], name: 't' };

const caughtUp = async (state = 'running') => {
  await expect.poll(async () => (await bench.tables.status('t')).state).toBe(state);
  if (state === 'running') await bench.tables.commit('t');
};

test('rolled back, policy rewind: a row that fails now is a letter, a letter comes no second time', async () => {
  const topic = await filled();
  const first = (await bench.load('t')).snapshots![0]!['snapshot-id'];
  await bench.catalog.commitTable(identifier, {
    requirements: [],
    updates: [
      { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': first },
    ],
  });
  await bench.directory.alterConfig(topic.topicId, BY_SCHEMA_TABLE);
  await caughtUp('suspended');
  await bench.tables.resume('t', 'rewind');
  await caughtUp();
  expect(await found()).toEqual([[0], [1, 2, 3]]);
  // Known ones can still be replayed.
  await bench.directory.alterConfig(topic.topicId, { ...BY_SCHEMA_TABLE, ...JSON_VALUES });
  await caughtUp();
  expect(await bench.tables.replay('t')).toEqual({ rows: 1, letters: 2, gone: 0 });
  expect((await found())[0]).toEqual([0, 2]);
});

const BY_SCHEMA_TABLE = {
  'table.topic.enable': 'true',
  'table.topic.commit.interval.ms': '100',
  ...BY_SCHEMA,
};

test('dropped, policy restart: the letters’ table stays, and takes what fails now', async () => {
  const topic = await filled();
  await bench.catalog.dropTable(identifier, { purge: false });
  await bench.directory.alterConfig(topic.topicId, BY_SCHEMA_TABLE);
  await caughtUp('suspended');
  await bench.tables.resume('t', 'restart');
  await caughtUp();
  expect(await found()).toEqual([[], [0, 1, 2, 3]]);
});

test('dropped, table.topic.dropped=restart: by itself, the same', async () => {
  const topic = await filled();
  await bench.catalog.dropTable(identifier, { purge: false });
  await bench.directory.alterConfig(topic.topicId, {
    ...BY_SCHEMA_TABLE,
    'table.topic.dropped': 'restart',
  });
  await caughtUp();
  expect(await found()).toEqual([[], [0, 1, 2, 3]]);
});

test('both tables dropped: all letters come again', async () => {
  await filled();
  await bench.catalog.dropTable(identifier, { purge: false });
  await bench.catalog.dropTable({ ...identifier, name: 't_dlq' }, { purge: false });
  bench.produce(bench.directory.byName('t')!, [{ value: '{"n":4}' }]);
  await caughtUp('suspended');
  await bench.tables.resume('t', 'restart');
  await caughtUp();
  expect(await found()).toEqual([
    [0, 2, 4],
    [1, 3],
  ]);
});
