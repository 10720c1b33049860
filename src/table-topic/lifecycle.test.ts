// The life of a topic and of its table: deleted, recreated, disabled, enabled again, moved, dropped and replaced by
// somebody; each with its setting.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Topic } from '../metadata/topics.ts';
import { Bench } from './testing/bench.ts';
import { coordinates, readRows } from './testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const JSON_VALUES = { 'table.topic.convert.value.type': 'json' };
const topicOf = (name: string, config: Readonly<Record<string, string>> = {}) =>
  bench.topic(name, { ...JSON_VALUES, ...config });
const produce = (topic: Topic, ...values: readonly unknown[]) =>
  bench.produce(
    topic,
    values.map((value) => ({ value: typeof value === 'string' ? value : JSON.stringify(value) })),
  );
const alter = (topic: Topic, changes: Readonly<Record<string, string | null>>) =>
  bench.directory.alterConfig(topic.topicId, changes);

const offsets = async (table: string, namespace = 'kafka') =>
  (await coordinates(bench.warehouse, await bench.load(table, namespace))).map((one) =>
    Number(one.split('/')[1]),
  );
const exists = async (table: string) => {
  const all = await bench.catalog.listTables(['kafka']);
  return all.some(({ name }) => name === table);
};
async function until(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) await bench.clock.sleep(5);
}

test('moved, rename: the table goes along with its rows, dead letters and history', async () => {
  const topic = await topicOf('t');
  produce(topic, { a: 1 }, 'no json');
  await bench.tables.commit('t');
  const uuid = (await bench.load('t'))['table-uuid'];
  await alter(topic, { 'table.topic.namespace': 'lake.gold', 'table.topic.name': 'moved' });
  produce(topic, { a: 2 }, 'nor this');
  await bench.tables.commit('t');
  const moved = (await bench.catalog.loadTable({ namespace: ['lake', 'gold'], name: 'moved' }))
    .metadata;
  expect(moved['table-uuid']).toBe(uuid);
  expect(await coordinates(bench.warehouse, moved)).toEqual(['0/0', '0/2']);
  const dead = await bench.catalog.loadTable({ namespace: ['lake', 'gold'], name: 'moved_dlq' });
  expect(await readRows(bench.warehouse, dead.metadata)).toHaveLength(2);
  expect(await exists('t')).toBe(false);
  expect(await exists('t_dlq')).toBe(false);
  expect(await bench.tables.status('t')).toMatchObject({ table: 'moved', state: 'running' });
});

test('moved, rename: a name that is taken suspends, and a free one cures', async () => {
  const topic = await topicOf('t');
  produce(topic, { a: 1 });
  await bench.tables.commit('t');
  const other = await topicOf('other');
  produce(other, { a: 1 });
  await bench.tables.commit('other');
  await alter(topic, { 'table.topic.name': 'other' });
  await expect(bench.tables.commit('t')).rejects.toThrow(/table kafka.other exists already/);
  await alter(topic, { 'table.topic.name': 'free' });
  produce(topic, { a: 2 });
  await bench.tables.commit('t');
  expect(await offsets('free')).toEqual([0, 1]);
  expect(await offsets('other')).toEqual([0]);
});

test('moved, continue: the old table stays, the new one has what comes after; staged rows are not lost', async () => {
  const topic = await topicOf('t', { 'table.topic.moved': 'continue' });
  produce(topic, { a: 1 }, { a: 2 });
  await bench.tables.commit('t');
  await alter(topic, { 'table.topic.commit.interval.ms': '900000' });
  produce(topic, { a: 3 });
  await alter(topic, { 'table.topic.name': 'next' });
  produce(topic, { a: 4 });
  await bench.tables.commit('t');
  expect(await offsets('t')).toEqual([0, 1]);
  expect(await offsets('next')).toEqual([2, 3]);
});

test('moved, restart: the new table is filled by the backfill setting', async () => {
  const topic = await topicOf('t', { 'table.topic.moved': 'restart' });
  produce(topic, { a: 1 }, { a: 2 });
  await bench.tables.commit('t');
  await alter(topic, { 'table.topic.name': 'again' });
  produce(topic, { a: 3 });
  await bench.tables.commit('t');
  expect(await offsets('t')).toEqual([0, 1]);
  expect(await offsets('again')).toEqual([0, 1, 2]);
});

test('disabled: rows wait in the topic; enabled again, the table has them all, once', async () => {
  const topic = await topicOf('t');
  produce(topic, { a: 1 });
  await bench.tables.commit('t');
  await alter(topic, { 'table.topic.enable': 'false' });
  await until(async () => (await bench.tables.list()).length === 0);
  // Nothing of the log is held for a table that isn't wanted.
  expect(bench.tables.retentionPin(topic.partitions[0]!)).toBeUndefined();
  produce(topic, { a: 2 });
  await alter(topic, { 'table.topic.enable': 'true' });
  produce(topic, { a: 3 });
  await bench.tables.commit('t');
  expect(await offsets('t')).toEqual([0, 1, 2]);
});

test('deleted: the table is kept, dropped, or purged with its dead letters', async () => {
  for (const policy of ['keep', 'drop', 'purge'] as const) {
    const topic = await topicOf(policy, { 'table.topic.deleted': policy });
    produce(topic, { a: 1 }, 'no json');
    await bench.tables.commit(policy);
    const { location } = await bench.load(policy);
    await bench.directory.delete(topic.topicId);
    await until(async () => (await exists(policy)) === (policy === 'keep'));
    await until(async () => (await exists(`${policy}_dlq`)) === (policy === 'keep'));
    const left: string[] = [];
    const key = location.replace(/^[a-z]+:\/\/[^/]*\//, '');
    for await (const object of bench.store.list(key)) left.push(object.key);
    expect(left.length > 0, policy).toBe(policy !== 'purge');
  }
});

test('recreated: suspended until told; append goes on in the table, replace begins it anew', async () => {
  const fill = async (name: string, over: Readonly<Record<string, string>> = {}) => {
    const topic = await topicOf(name, over);
    produce(topic, { a: 1 });
    return topic;
  };
  const first = await fill('t');
  await bench.tables.commit('t');
  await bench.directory.delete(first.topicId);
  const second = await fill('t');
  await expect(bench.tables.commit('t')).rejects.toThrow(/deleted topic of the same name/);
  await alter(second, { 'table.topic.recreated': 'append' });
  await bench.tables.commit('t');
  expect(await offsets('t')).toEqual([0, 0]);
  await bench.directory.delete(second.topicId);
  await fill('t', { 'table.topic.recreated': 'replace' });
  await bench.tables.commit('t');
  expect(await offsets('t')).toEqual([0]);
});

test('dropped by somebody: suspended until told, or filled anew where the config says so', async () => {
  const topic = await topicOf('t');
  produce(topic, { a: 1 });
  await bench.tables.commit('t');
  await bench.catalog.dropTable({ namespace: ['kafka'], name: 't' }, { purge: false });
  produce(topic, { a: 2 });
  await bench.tables.commit('t').catch(() => {});
  await until(async () => /was dropped/.test((await bench.tables.status('t')).reason));
  await alter(topic, { 'table.topic.dropped': 'restart' });
  await bench.tables.commit('t');
  expect(await offsets('t')).toEqual([0, 1]);
  // Another table in its place isn't ours to fill, unless it may be adopted.
  await bench.catalog.dropTable({ namespace: ['kafka'], name: 't' }, { purge: false });
  await bench.catalog.createTable(['kafka'], {
    name: 't',
    schema: {
      type: 'struct',
      'schema-id': 0,
      fields: [{ id: 1, name: 'a', required: false, type: 'long' }],
    },
  });
  produce(topic, { a: 3 });
  await bench.tables.commit('t').catch(() => {});
  await until(async () => /isn't this topic's/.test((await bench.tables.status('t')).reason));
  await alter(topic, { 'table.topic.adopt': 'true' });
  await bench.tables.commit('t');
  expect(await offsets('t')).toEqual([0, 1, 2]);
});
