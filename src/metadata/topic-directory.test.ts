import { expect, test } from 'vitest';
import { openSqliteMetadata } from './sqlite/index.ts';
import { TopicDirectory } from './topic-directory.ts';
import { TRACED_VERSIONS } from './versions.ts';

const topic = (name: string, n: number) => ({
  topicId: `00000000-0000-0000-0000-00000000000${n}`,
  name,
  partitionCount: 2,
  config: {},
  nowMs: 1,
});

/** Two nodes on one store, and what the second one's listeners hear. */
async function nodes() {
  const metadata = openSqliteMetadata(':memory:');
  const [one, two] = [await TopicDirectory.load(metadata), await TopicDirectory.load(metadata)];
  const heard: string[] = [];
  two.onChange((change) => heard.push(`${change.kind} ${change.topic.name}`));
  return { one, two, heard, metadata };
}

test('a refresh brings what another node created, changed and deleted', async () => {
  const { one, two, heard } = await nodes();
  const created = await one.create(topic('a', 1));
  await two.refresh();
  expect(two.byName('a')).toEqual(created);
  expect(two.byPartition(created.partitions[1]!)?.index).toBe(1);
  await one.addPartitions(created.topicId, 3);
  await one.alterConfig(created.topicId, { 'retention.ms': '5' });
  await two.refresh();
  expect(two.byName('a')).toEqual(one.byName('a'));
  await two.refresh();
  await one.delete(created.topicId);
  await one.create(topic('a', 2));
  await two.refresh();
  expect(two.byId(created.topicId)).toBeUndefined();
  expect(two.byPartition(created.partitions[0]!)).toBeUndefined();
  expect(two.byName('a')?.topicId).toBe(topic('a', 2).topicId);
  expect(heard).toEqual(['created a', 'changed a', 'deleted a', 'created a']);
});

test('what changes here while topics are read again is not undone', async () => {
  const { two, heard, metadata } = await nodes();
  const old = await two.create(topic('a', 1));
  const list = metadata.topics.list.bind(metadata.topics);
  let meanwhile = async () => {};
  metadata.topics.list = async (ids) => {
    const rows = await list(ids);
    await meanwhile();
    return rows;
  };
  await metadata.topics.alterConfig(old.topicId, { 'retention.ms': '1' });
  meanwhile = async () => {
    await two.delete(old.topicId);
    await two.create(topic('b', 2));
  };
  await two.refresh();
  expect(two.all().map(({ name }) => name)).toEqual(['b']);
  await metadata.topics.addPartitions(topic('b', 2).topicId, 3);
  meanwhile = async () => {
    await two.alterConfig(topic('b', 2).topicId, { 'retention.ms': '5' });
  };
  await two.refresh();
  expect(two.byName('b')?.config).toEqual({ 'retention.ms': '5' });
  expect(heard).toEqual(['created a', 'deleted a', 'created b', 'changed b']);
});

test('where other nodes change topics, who misses one can catch up', async () => {
  const { one, two } = await nodes();
  expect(one.isShared).toBe(false);
  expect(one.catchUp()).toBeUndefined();
  two.followOthers(() => two.refresh());
  expect(two.isShared).toBe(true);
  const created = await one.create(topic('a', 1));
  expect(two.byName('a')).toBeUndefined();
  await two.catchUp();
  expect(two.byName('a')).toEqual(created);
});

test('a refresh sees what was there before it was asked for, even while another one reads', async () => {
  const { one, two } = await nodes();
  const first = two.refresh();
  await one.create(topic('a', 1));
  const both = [two.refresh(), two.refresh()];
  await Promise.all([first, ...both]);
  expect(two.byName('a')).toBeDefined();
});

test('a refresh reads the topics that have changed, and all of them when that is not known', async () => {
  const { one, two, metadata } = await nodes();
  const read: (readonly string[] | undefined)[] = [];
  const list = metadata.topics.list.bind(metadata.topics);
  metadata.topics.list = (ids) => {
    read.push(ids);
    return list(ids);
  };
  const [a, b] = [await one.create(topic('a', 1)), await one.create(topic('b', 2))];
  await two.refresh();
  await two.refresh();
  await one.alterConfig(a.topicId, { 'retention.ms': '5' });
  await one.alterConfig(a.topicId, { 'retention.ms': '6' });
  await two.refresh();
  await one.delete(b.topicId);
  await two.refresh();
  expect(read).toEqual([[a.topicId, b.topicId], [a.topicId], [b.topicId]]);
  for (let n = 0; n <= TRACED_VERSIONS; n += 1)
    await one.alterConfig(a.topicId, { 'retention.ms': String(n) });
  await two.refresh();
  expect(read.at(-1)).toBeUndefined();
  expect(two.all()).toEqual(one.all());
});
