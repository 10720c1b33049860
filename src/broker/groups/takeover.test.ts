// Groups move between coordinators: two nodes over one store, leases that move by fair means and behind a holder's back.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { shardOf } from '../../metadata/shards.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import type { OffsetFetchReply } from '../../protocol/messages/09-offset-fetch.ts';
import type { RequestContext } from '../handler.ts';
import { anybody } from '../testing/access.ts';
import { leaseOf } from '../testing/leases.ts';
import { openNodes, stopNodes, type TestNode } from '../testing/nodes.ts';
import type { GroupCoordinator, OffsetToCommit } from './coordinator.ts';
import { stateOf } from './entry.ts';
import { groupHandlers } from './index.ts';
import { joinRequest } from './testing/join-request.ts';

const { NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS } = ErrorCode;
const OUTSIDE = { generation: -1, memberId: '', instanceId: null };
const LEASE = leaseOf('groups', 'g');

let clock: ManualClock;
let metadata: SqliteMetadata;
let nodes: readonly TestNode[];
let a: TestNode;
let b: TestNode;
let partition: number;

beforeEach(async () => {
  clock = new ManualClock();
  metadata = openSqliteMetadata(':memory:', { clock });
  const topicId = '11111111-1111-4111-8111-111111111111';
  const topic = { topicId, name: 'orders', partitionCount: 2, config: {}, nowMs: 0 };
  partition = (await metadata.topics.create(topic)).partitions[0]!;
  const set = {
    'offsets.retention.minutes': '1',
    'offsets.retention.check.interval.ms': '1000',
  };
  nodes = await openNodes({ metadata, clock, set });
  [a, b] = nodes as [TestNode, TestNode];
  await a.leases.take(LEASE);
});

afterEach(async () => {
  await stopNodes(nodes);
  metadata.close();
});

const syncRequest = (memberId: string, generation: number) => ({
  memberId,
  instanceId: null,
  generation,
  protocolType: null,
  protocol: null,
  assignments: [{ memberId, assignment: Buffer.from('all') }],
});

const at = (offset: number): OffsetToCommit[] => [
  { partitionId: partition, offset, leaderEpoch: 0, metadata: '' },
];

/** Of an OffsetFetch of the last version. */
const context = ({ directory }: TestNode) =>
  ({
    apiVersion: 10,
    services: { directory },
    access: anybody(),
    countError() {},
  }) as unknown as RequestContext;

/** One member in a stable group. */
async function single(groups: GroupCoordinator) {
  const { memberId, generation } = await groups.join('g', joinRequest());
  expect((await groups.sync('g', syncRequest(memberId, generation))).errorCode).toBe(0);
  return { memberId, generation, instanceId: null };
}

const beat = (groups: GroupCoordinator, memberEpoch: number) =>
  groups.consumerHeartbeat('g', {
    type: 'heartbeat',
    memberId: 'm',
    memberEpoch,
    instanceId: null,
    rackId: null,
    clientId: 'client',
    clientHost: '/127.0.0.1',
    rebalanceTimeoutMs: 30_000,
    topicNames: ['orders'],
    topicRegex: null,
    assignor: null,
    mayDescribe: undefined,
    owned: memberEpoch === 0 ? [] : null,
  });

/** Offset in the store. */
const stored = async (groupId = 'g') => (await metadata.groups.offsets([groupId]))[0]?.[0]?.offset;

describe('handed over', () => {
  test('members go on in their generation, at the new coordinator only', async () => {
    const member = await single(a.groups);
    await a.groups.commit('g', member, { offsets: at(5) });
    await a.leases.lose(LEASE);
    await b.leases.take(LEASE);
    expect(await a.groups.heartbeat('g', member)).toBe(NOT_COORDINATOR);
    expect(a.groups.view('g')).toBeUndefined();
    expect(await b.groups.heartbeat('g', member)).toBe(0);
    expect(b.groups.view('g')?.offsets.get(partition)?.offset).toBe(5);
    expect(await b.groups.commit('g', member, { offsets: at(6) })).toEqual([0]);
    expect(await stored()).toBe(6);
  });

  test('in the middle of a rebalance: who waits hears of it at once and joins at the new one', async () => {
    const member = await single(a.groups);
    const newcomer = a.groups.join('g', joinRequest());
    const again = a.groups.join('g', joinRequest({ memberId: member.memberId }));
    const { memberId, generation } = await again;
    // Both are in the next generation; its leader has not brought an assignment yet.
    const waiting = a.groups.sync('g', {
      ...syncRequest('x', generation),
      ...(await newcomer),
      assignments: [],
    });
    await a.leases.lose(LEASE);
    expect((await waiting).errorCode).toBe(NOT_COORDINATOR);
    await b.leases.take(LEASE);
    // The new one knows the last generation that was stored: its member, and not the newcomer.
    const late = syncRequest(memberId, generation);
    expect((await b.groups.sync('g', late)).errorCode).toBe(ErrorCode.ILLEGAL_GENERATION);
    const [first, second] = await Promise.all([
      b.groups.join('g', joinRequest()),
      b.groups.join('g', joinRequest({ memberId: member.memberId })),
    ]);
    expect(first).toMatchObject({ errorCode: 0, generation: member.generation + 1 });
    expect(second).toMatchObject({ errorCode: 0, generation: member.generation + 1 });
  });

  test('joins that wait for others, and commits on their way, are answered at once', async () => {
    const member = await single(a.groups);
    const join = a.groups.join('g', joinRequest());
    a.way.close();
    const commit = a.groups.commit('g', OUTSIDE, { offsets: at(7) });
    const own = a.groups.commit('g', member, { offsets: at(8) });
    await clock.advance(0);
    const lost = a.leases.lose(LEASE);
    expect((await join).errorCode).toBe(NOT_COORDINATOR);
    expect(await own).toEqual([NOT_COORDINATOR]);
    expect((await commit)[0]).not.toBe(0);
    a.way.open();
    await lost;
    // Timers of what was dropped do nothing.
    await clock.advance(60_000);
    expect(a.groups.views()).toEqual([]);
  });

  test('of the consumer protocol: epochs and assignments go on', async () => {
    expect(await beat(a.groups, 0)).toMatchObject({ errorCode: 0, memberEpoch: 2 });
    await a.leases.lose(LEASE);
    await b.leases.take(LEASE);
    expect(await beat(a.groups, 2)).toMatchObject({ errorCode: NOT_COORDINATOR });
    expect(await beat(b.groups, 2)).toMatchObject({ errorCode: 0, memberEpoch: 2 });
    expect(b.groups.view('g')?.group.members.size).toBe(1);
  });

  test('and back: nothing of the first time is left', async () => {
    const member = await single(a.groups);
    await a.leases.lose(LEASE);
    await b.leases.take(LEASE);
    expect(await b.groups.leave('g', [member])).toEqual([0]);
    await b.groups.commit('g', OUTSIDE, { offsets: at(9) });
    await b.leases.lose(LEASE);
    await a.leases.take(LEASE);
    expect(await a.groups.heartbeat('g', member)).toBe(ErrorCode.UNKNOWN_MEMBER_ID);
    expect(stateOf(a.groups.view('g')!.group)).toBe('Empty');
    expect(a.groups.view('g')?.offsets.get(partition)?.offset).toBe(9);
  });

  test('while it is loaded: COORDINATOR_LOAD_IN_PROGRESS', async () => {
    await single(a.groups);
    await a.leases.lose(LEASE);
    b.way.close();
    const taking = b.leases.take(LEASE);
    await clock.advance(0);
    expect(b.groups.faultOf('g')).toBe(COORDINATOR_LOAD_IN_PROGRESS);
    expect(b.groups.listFault).toBe(COORDINATOR_LOAD_IN_PROGRESS);
    expect((await b.groups.join('g', joinRequest())).errorCode).toBe(COORDINATOR_LOAD_IN_PROGRESS);
    b.way.open();
    await taking;
    expect(b.groups.faultOf('g')).toBe(0);
    expect(b.groups.listFault).toBe(0);
  });

  test('a request for several groups waits for all that are loaded; each has an error of its own', async () => {
    const member = await single(a.groups);
    await a.groups.commit('g', member, { offsets: at(5) });
    await a.leases.lose(LEASE);
    const elsewhere = 'another';
    const loadedLater = leaseOf('groups', elsewhere);
    expect(loadedLater).not.toBe(LEASE);
    await b.leases.take(LEASE);
    const fetch = groupHandlers(b.groups).find(({ api }) => api.key === 9)!;
    const groupIds = ['g', elsewhere, 'nowhere'];
    const request = {
      groupId: '',
      topics: null,
      requireStable: true,
      groups: groupIds.map((groupId) => ({
        groupId,
        memberId: null,
        memberEpoch: -1,
        topics: null,
      })),
    } as never;
    b.way.close();
    const taking = b.leases.take(loadedLater);
    await clock.advance(0);
    const loads = fetch.prepare?.(request, context(b));
    expect(loads).toBeInstanceOf(Promise);
    const errors = async () => {
      const { groups } = (await fetch.handle(request, context(b))) as OffsetFetchReply;
      return groups.map(({ errorCode, topics }) => [errorCode, topics.length]);
    };
    expect(await errors()).toEqual([
      [0, 1],
      [COORDINATOR_LOAD_IN_PROGRESS, 0],
      [NOT_COORDINATOR, 0],
    ]);
    b.way.open();
    await loads;
    expect(await errors()).toEqual([
      [0, 1],
      [0, 0],
      [NOT_COORDINATOR, 0],
    ]);
    await taking;
    expect(fetch.prepare?.(request, context(b))).toBeUndefined();
  });

  test('a shard lost again while it is loaded is not kept', async () => {
    await single(a.groups);
    await a.leases.lose(LEASE);
    b.way.close();
    const taking = b.leases.take(LEASE);
    await clock.advance(0);
    const losing = b.leases.lose(LEASE);
    b.way.open();
    await Promise.all([taking, losing]);
    expect(b.groups.views()).toEqual([]);
    expect(b.groups.faultOf('g')).toBe(NOT_COORDINATOR);
  });
});

describe('a zombie', () => {
  test('past its deadline answers nothing, heartbeats included', async () => {
    const member = await single(a.groups);
    a.leases.isLate = true;
    expect(await a.groups.heartbeat('g', member)).toBe(NOT_COORDINATOR);
    expect(await a.groups.commit('g', member, { offsets: at(1) })).toEqual([NOT_COORDINATOR]);
    expect(await beat(a.groups, 0)).toMatchObject({ errorCode: NOT_COORDINATOR });
    expect(a.groups.fetchFault('g', null, -1)).toBe(NOT_COORDINATOR);
    expect(a.groups.stageFault('g', member)).toBe(NOT_COORDINATOR);
    expect(await a.groups.delete('g')).toBe(NOT_COORDINATOR);
    expect(a.groups.views()).toEqual([]);
  });

  test('that believes to hold the lease writes nothing, and then knows', async () => {
    const member = await single(a.groups);
    await a.groups.commit('g', member, { offsets: at(5) });
    await b.leases.take(LEASE);
    expect(await b.groups.commit('g', member, { offsets: at(6) })).toEqual([0]);
    expect(await a.groups.commit('g', member, { offsets: at(7) })).toEqual([NOT_COORDINATOR]);
    expect(await stored()).toBe(6);
    expect(await a.groups.heartbeat('g', member)).toBe(NOT_COORDINATOR);
    expect(await b.groups.heartbeat('g', member)).toBe(0);
  });

  test('whose write was on its way when the lease went is refused by the store', async () => {
    const member = await single(a.groups);
    a.way.close();
    const late = a.groups.commit('g', member, { offsets: at(7) });
    await clock.advance(0);
    expect(a.way.waiting).toBe(1);
    await b.leases.take(LEASE);
    expect(await b.groups.commit('g', member, { offsets: at(6) })).toEqual([0]);
    a.way.open();
    expect(await late).toEqual([NOT_COORDINATOR]);
    expect(await stored()).toBe(6);
  });

  test('of one shard writes for its others, in the same transaction', async () => {
    const other = leaseOf('groups', 'h');
    expect(shardOf('h')).not.toBe(shardOf('g'));
    await a.leases.take(other);
    await b.leases.take(LEASE);
    const [lost, kept] = await Promise.all([
      a.groups.commit('g', OUTSIDE, { offsets: at(1) }),
      a.groups.commit('h', OUTSIDE, { offsets: at(2) }),
    ]);
    expect(lost).toEqual([NOT_COORDINATOR]);
    expect(kept).toEqual([0]);
    expect([await stored('g'), await stored('h')]).toEqual([undefined, 2]);
  });
});

test('a topic deleted by another node is out of its groups', async () => {
  await a.groups.commit('g', OUTSIDE, { offsets: at(5) });
  await b.directory.delete(b.directory.byName('orders')!.topicId);
  await a.directory.refresh();
  expect(a.groups.view('g')?.offsets.size).toBe(0);
});

test('offsets expire where their group is coordinated, and nowhere else', async () => {
  await a.groups.commit('g', OUTSIDE, { offsets: at(5) });
  await a.leases.lose(LEASE);
  await clock.advance(70_000);
  expect(await stored()).toBe(5);
  await b.leases.take(LEASE);
  await clock.advance(1_000);
  expect(await stored()).toBeUndefined();
});
