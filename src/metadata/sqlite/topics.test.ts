import { MessageChannel } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { connectMetadata, serveMetadata } from '../remote.ts';
import { TopicDirectory } from '../topic-directory.ts';
import { openSqliteMetadata } from './index.ts';

const orders = {
  topicId: '11111111-1111-4111-8111-111111111111',
  name: 'orders',
  partitionCount: 2,
  config: {},
  nowMs: 5,
};

test('topics survive in order, ids are never reused', async () => {
  const metadata = openSqliteMetadata(':memory:');
  const created = await metadata.topics.create(orders);
  expect(created.partitions).toHaveLength(2);
  await expect(metadata.topics.create(orders)).rejects.toMatchObject({ code: 'conflict' });
  await metadata.topics.delete(created.topicId);
  const again = await metadata.topics.create(orders);
  expect(Math.min(...again.partitions)).toBeGreaterThan(Math.max(...created.partitions));
  metadata.close();
});

test('the directory follows changes made across a thread border', async () => {
  const metadata = openSqliteMetadata(':memory:');
  const { port1, port2 } = new MessageChannel();
  serveMetadata(metadata, port1);
  const directory = await TopicDirectory.load(connectMetadata(port2));
  const topic = await directory.create(orders);
  await directory.alterConfig(topic.topicId, { 'retention.ms': '1' });
  await directory.addPartitions(topic.topicId, 3);
  expect(directory.byName('orders')).toMatchObject({ config: { 'retention.ms': '1' }, version: 3 });
  const third = directory.byName('orders')!.partitions[2]!;
  expect(directory.byPartition(third)?.index).toBe(2);
  await expect(directory.addPartitions(topic.topicId, 3)).rejects.toMatchObject({
    code: 'invalid',
  });
  await directory.delete(topic.topicId);
  expect(directory.all()).toEqual([]);
  port2.close();
  metadata.close();
});
