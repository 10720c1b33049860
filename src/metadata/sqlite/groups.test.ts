import { expect, test } from 'vitest';
import type { StoredGroup, StoredOffset } from '../groups.ts';
import { openSqliteMetadata } from './index.ts';

const topic = {
  topicId: '11111111-1111-4111-8111-111111111111',
  name: 'orders',
  partitionCount: 2,
  config: {},
  nowMs: 5,
};

const group: StoredGroup = {
  groupId: 'g',
  protocolType: 'consumer',
  generation: 3,
  protocol: 'range',
  leaderId: 'm1',
  members: [
    {
      memberId: 'm1',
      instanceId: null,
      clientId: 'c',
      clientHost: '/127.0.0.1',
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 60_000,
      protocols: [{ name: 'range', metadata: new Uint8Array([0, 255]) }],
      assignment: new Uint8Array([1, 2]),
    },
  ],
  stateSinceMs: 9,
};

function offset(partitionId: number, value: number): StoredOffset {
  return {
    partitionId,
    offset: value,
    leaderEpoch: 4,
    metadata: 'note',
    commitMs: 7,
    expireMs: -1,
  };
}

test('groups and offsets come back as they were written', async () => {
  const metadata = openSqliteMetadata(':memory:');
  const [first, second] = (await metadata.topics.create(topic)).partitions as [number, number];
  await metadata.groups.write([
    { kind: 'group', group },
    { kind: 'offsets', groupId: 'g', offsets: [offset(first, 1), offset(second, 2)] },
    { kind: 'offsets', groupId: 'simple', offsets: [offset(first, 5)] },
    { kind: 'offsets', groupId: 'g', offsets: [offset(first, 3)] },
    { kind: 'offsets-gone', groupId: 'g', partitionIds: [second] },
  ]);
  expect(await metadata.groups.load()).toEqual([
    { group, offsets: [offset(first, 3)] },
    {
      group: {
        groupId: 'simple',
        protocolType: '',
        generation: 0,
        protocol: null,
        leaderId: null,
        members: [],
        stateSinceMs: 7,
      },
      offsets: [offset(first, 5)],
    },
  ]);
  await metadata.groups.write([{ kind: 'group-gone', groupId: 'g' }]);
  expect((await metadata.groups.load()).map((row) => row.group.groupId)).toEqual(['simple']);
  metadata.close();
});

test('offsets end with their topic, and none lands after it', async () => {
  const metadata = openSqliteMetadata(':memory:');
  const [first] = (await metadata.topics.create(topic)).partitions as [number];
  await metadata.groups.write([{ kind: 'offsets', groupId: 'g', offsets: [offset(first, 1)] }]);
  await metadata.topics.delete(topic.topicId);
  expect((await metadata.groups.load())[0]?.offsets).toEqual([]);
  const left = await metadata.groups.write([
    { kind: 'offsets', groupId: 'g', offsets: [offset(first, 2)] },
  ]);
  expect(left).toEqual([first]);
  metadata.close();
});
