// Contract of `GroupsMetadata`, for every store. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GroupChange, StoredConsumerMember, StoredGroup, StoredOffset } from '../groups.ts';
import type { Metadata } from '../metadata.ts';
import { shardOf } from '../shards.ts';
import type { TransactionEvent } from '../transactions.ts';
import { type OpenStore, pendingOffsets, type StoreUnderTest } from './store.ts';

const topic = {
  topicId: '11111111-1111-4111-8111-111111111111',
  name: 'orders',
  partitionCount: 2,
  config: {},
  nowMs: 5,
};

const group: StoredGroup = {
  kind: 'classic',
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

const HOLDER = { nodeId: 1, session: 's' };

/** Writes as the holder of a lease taken for it. */
async function write({ groups, leases }: Metadata, changes: readonly GroupChange[]) {
  const tokens = await leases.acquire({ names: ['groups/0'], holder: HOLDER, durationMs: 60_000 });
  return groups.write(changes, tokens);
}

/** Runs the suite on stores that `open` makes. */
export function groupsContract(name: string, open: OpenStore): void {
  describe(`groups contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    test('groups and offsets come back as they were written', async () => {
      const metadata = store.metadata;
      const [first, second] = (await metadata.topics.create(topic)).partitions as [number, number];
      await write(metadata, [
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
            kind: 'classic',
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
      await write(metadata, [{ kind: 'group-gone', groupId: 'g', withStaged: true }]);
      expect((await metadata.groups.load()).map((row) => row.group.groupId)).toEqual(['simple']);
    });

    test.each([
      ['an operator deletes the group', true, []],
      ['the group is dropped for want of use', false, [7]],
    ])(
      'of staged offsets, when %s, those come in at the end: %s',
      async (_what, withStaged, left) => {
        const metadata = store.metadata;
        const [first] = (await metadata.topics.create(topic)).partitions as [number];
        const { transactions } = metadata;
        const apply = async (event: TransactionEvent) =>
          (await transactions.apply([{ transactionalId: 't', event }], 1))[0]!;
        const { producerId, producerEpoch } = (await apply({ type: 'init', timeoutMs: 60_000 }))
          .state!;
        const by = { producerId, producerEpoch };
        for (const groupId of ['g', 'other']) {
          const offsets = [offset(first, 7)];
          const staged = await apply({
            type: 'stage-offsets',
            groupId,
            offsets,
            mode: 'implicit',
            ...by,
          });
          expect(staged.errorCode).toBe(0);
        }
        await write(metadata, [{ kind: 'group-gone', groupId: 'g', withStaged }]);
        expect(await pendingOffsets(transactions, 'g')).toHaveLength(left.length);
        expect((await apply({ type: 'end', committed: true, bump: true, ...by })).errorCode).toBe(
          0,
        );
        const groups = new Map(
          (await metadata.groups.load()).map((row) => [row.group.groupId, row]),
        );
        expect(groups.get('g')?.offsets.map((row) => row.offset) ?? []).toEqual(left);
        expect(groups.get('other')?.offsets.map((row) => row.offset)).toEqual([7]);
      },
    );

    test('offsets end with their topic, and none lands after it', async () => {
      const metadata = store.metadata;
      const [first] = (await metadata.topics.create(topic)).partitions as [number];
      await write(metadata, [{ kind: 'offsets', groupId: 'g', offsets: [offset(first, 1)] }]);
      await metadata.topics.delete(topic.topicId);
      expect((await metadata.groups.load())[0]?.offsets).toEqual([]);
      const left = await write(metadata, [
        { kind: 'offsets', groupId: 'g', offsets: [offset(first, 2)] },
      ]);
      expect(left).toEqual([first]);
    });

    const consumer = (memberId: string, assigned: readonly number[]): StoredConsumerMember => ({
      memberId,
      instanceId: null,
      rackId: 'r',
      clientId: 'c',
      clientHost: '/127.0.0.1',
      rebalanceTimeoutMs: 60_000,
      topicNames: ['orders'],
      topicRegex: '',
      assignor: 'range',
      classic: {
        sessionTimeoutMs: 10_000,
        protocols: [{ name: 'range', metadata: new Uint8Array([0, 255]) }],
      },
      state: 'stable',
      epoch: 2,
      previousEpoch: 1,
      assigned,
      assignedSince: assigned.map(() => 2),
      revoking: [],
      target: assigned,
    });

    test('members of a consumer group change one by one, or all at once', async () => {
      const metadata = store.metadata;
      const header = { kind: 'consumer', groupId: 'g', epoch: 2, assignmentEpoch: 2 } as const;
      const change = (members: StoredConsumerMember[], gone: string[] = [], whole = false) =>
        ({
          kind: 'consumer-group',
          group: { ...header, stateSinceMs: 3, members },
          whole,
          gone,
        }) as const;
      const stored = async () => {
        const [first] = await metadata.groups.load();
        return first?.group;
      };
      await write(metadata, [change([consumer('a', [1]), consumer('b', [2])])]);
      await write(metadata, [change([consumer('b', [3])], ['a'])]);
      expect(await stored()).toEqual({ ...header, stateSinceMs: 3, members: [consumer('b', [3])] });
      await write(metadata, [change([consumer('c', [])], [], true)]);
      expect(await stored()).toMatchObject({ members: [{ memberId: 'c' }] });
      await write(metadata, [{ kind: 'group', group }]);
      expect(await stored()).toEqual(group);
      await write(metadata, [change([])]);
      expect(await stored()).toMatchObject({ kind: 'consumer', members: [] });
    });

    test('groups are loaded by shard; offsets are read by group, as they are now', async () => {
      const { metadata } = store;
      const [first] = (await metadata.topics.create(topic)).partitions as [number];
      const ids = Array.from({ length: 20 }, (_, n) => `group-${n}`);
      await write(
        metadata,
        ids.map((groupId, n) => ({ kind: 'offsets', groupId, offsets: [offset(first, n)] })),
      );
      const shards = [shardOf('group-3'), shardOf('group-4')];
      const found = (await metadata.groups.load(shards)).map((row) => row.group.groupId);
      expect(found).toEqual(ids.filter((id) => shards.includes(shardOf(id))).toSorted());
      expect(await metadata.groups.load([])).toEqual([]);
      expect(await metadata.groups.offsets(['group-4', 'none', 'group-3'])).toEqual([
        [offset(first, 4)],
        [],
        [offset(first, 3)],
      ]);
    });

    test('the last of several words about one offset holds', async () => {
      const { metadata } = store;
      const [first] = (await metadata.topics.create(topic)).partitions as [number];
      const offsets = (...values: number[]) =>
        ({
          kind: 'offsets',
          groupId: 'g',
          offsets: values.map((at) => offset(first, at)),
        }) as const;
      await write(metadata, [offsets(1, 2), offsets(3)]);
      expect(await metadata.groups.offsets(['g'])).toEqual([[offset(first, 3)]]);
      await write(metadata, [offsets(4), { kind: 'group', group }, offsets(5)]);
      expect(await metadata.groups.load()).toEqual([{ group, offsets: [offset(first, 5)] }]);
    });
  });
}
