// Consumer groups by their coordinator: store, lease, restarts, time, change of protocol, offsets.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { decodeAssignment, encodeAssignment } from '../../protocol/messages/consumer-protocol.ts';
import { allOf, leaseBoard, leaseOf, type TestLeases } from '../testing/leases.ts';
import type { ConsumerGroup } from './consumer/group.ts';
import type { ConsumerHeartbeat } from './consumer/heartbeat.ts';
import { GroupCoordinator } from './coordinator.ts';
import { stateOf } from './entry.ts';
import { groupSettings } from './settings.ts';
import { joinRequest } from './testing/join-request.ts';
import { SwitchedStore } from './testing/switched-store.ts';

const DAY_MS = 86_400_000;

let clock: ManualClock;
let metadata: SqliteMetadata;
let directory: TopicDirectory;
let store: SwitchedStore;
let groups: GroupCoordinator;
let partitions: readonly number[];
let configs: Record<string, Record<string, string>>;
let board: TestLeases;
let other: TestLeases;

async function start(set: Record<string, string> = {}): Promise<void> {
  groups = await GroupCoordinator.load({
    metadata: store,
    transactions: metadata.transactions,
    leases: board,
    directory,
    clock,
    settings: resolveSettings(groupSettings, {
      'group.initial.rebalance.delay.ms': '0',
      ...set,
    }),
    ids: seededIds(seededPrng(7)),
    logger: silentLogger,
    metrics: noMetrics,
    groupConfigs: (groupId) => configs[groupId],
  });
  await board.take(...allOf('groups'));
}

async function restart(set: Record<string, string> = {}): Promise<void> {
  await groups.stop();
  await start(set);
}

beforeEach(async () => {
  clock = new ManualClock();
  metadata = openSqliteMetadata(':memory:');
  directory = await TopicDirectory.load(metadata);
  const topicId = '11111111-1111-4111-8111-111111111111';
  const topic = { topicId, name: 'orders', partitionCount: 4, config: {}, nowMs: clock.now() };
  partitions = (await directory.create(topic)).partitions;
  store = new SwitchedStore(metadata.groups);
  configs = {};
  [board, other] = leaseBoard(metadata.leases, 2) as [TestLeases, TestLeases];
  await start();
});

afterEach(async () => {
  await groups.stop();
  metadata.close();
});

const beat = (
  memberId: string,
  memberEpoch: number,
  others: Partial<ConsumerHeartbeat> = {},
  groupId = 'g',
) =>
  groups.consumerHeartbeat(groupId, {
    type: 'heartbeat',
    memberId,
    memberEpoch,
    instanceId: null,
    rackId: null,
    clientId: 'c',
    clientHost: '/127.0.0.1',
    rebalanceTimeoutMs: memberEpoch === 0 ? 30_000 : -1,
    topicNames: memberEpoch === 0 ? ['orders'] : null,
    topicRegex: null,
    assignor: null,
    owned: memberEpoch === 0 ? [] : null,
    ...others,
  });

const leave = (memberId: string, forGood = true, instanceId: string | null = null) =>
  groups.consumerHeartbeat('g', { type: 'leave', memberId, instanceId, forGood });

const state = () => stateOf(groups.view('g')!.group);
const members = () => (groups.view('g')!.group as ConsumerGroup).members;

/** Two members that have divided the topic. */
async function pair() {
  await beat('a', 0);
  await beat('b', 0);
  const asked = await beat('a', 2);
  const given = await beat('a', 2, { owned: asked.assigned });
  const got = await beat('b', given.memberEpoch);
  expect([asked.assigned?.length, given.memberEpoch, got.assigned?.length]).toEqual([2, 3, 2]);
  expect(state()).toBe('Stable');
  return { epoch: 3, a: asked.assigned!, b: got.assigned! };
}

describe('the store', () => {
  test('idle heartbeats write nothing; a step of a rebalance writes what it changes', async () => {
    await beat('a', 0);
    expect(store.transactions.flat()).toMatchObject([
      { kind: 'consumer-group', group: { epoch: 2, members: [{ memberId: 'a' }] } },
    ]);
    for (let n = 0; n < 10; n += 1) await beat('a', 2);
    expect(store.transactions).toHaveLength(1);
    await beat('b', 0);
    expect(store.transactions).toHaveLength(2);
    await beat('a', 2);
    expect(store.transactions.at(-1)).toMatchObject([{ group: { members: [{ memberId: 'a' }] } }]);
  });

  test('what could not be stored is not told, and is told when it is', async () => {
    store.failing = true;
    expect(await beat('a', 0)).toMatchObject({ errorCode: ErrorCode.COORDINATOR_NOT_AVAILABLE });
    expect(await beat('a', 0)).toMatchObject({ errorCode: ErrorCode.COORDINATOR_NOT_AVAILABLE });
    store.failing = false;
    expect(await beat('a', 0)).toMatchObject({
      errorCode: 0,
      memberEpoch: 2,
      assigned: partitions,
    });
    const { epoch, a } = await pairWith('b');
    store.failing = true;
    await directory.addPartitions(directory.byName('orders')!.topicId, 6);
    expect((await beat('a', epoch)).errorCode).toBe(ErrorCode.COORDINATOR_NOT_AVAILABLE);
    store.failing = false;
    // An idle heartbeat, and yet it learns what it could not be told before.
    const told = await beat('a', epoch, { owned: a });
    expect(told).toMatchObject({ errorCode: 0, memberEpoch: epoch + 1 });
    expect(told.assigned).toHaveLength(3);
    await restart();
    expect(members().get('a')).toMatchObject({ epoch: epoch + 1, assigned: told.assigned });
  });

  async function pairWith(other: string) {
    await beat(other, 0);
    const asked = await beat('a', 2);
    const given = await beat('a', 2, { owned: asked.assigned });
    await beat(other, given.memberEpoch);
    return { epoch: given.memberEpoch, a: asked.assigned! };
  }

  test('after a restart members go on in their epochs, or their sessions end', async () => {
    const { epoch, a, b } = await pair();
    await restart();
    expect(await beat('a', epoch)).toMatchObject({
      errorCode: 0,
      memberEpoch: epoch,
      // Told once more: the answer before the restart may never have arrived.
      assigned: a,
    });
    expect(state()).toBe('Stable');
    await clock.advance(30_000);
    await beat('a', epoch);
    await clock.advance(20_000);
    // b was silent for its session.
    expect(await beat('b', epoch)).toMatchObject({ errorCode: ErrorCode.UNKNOWN_MEMBER_ID });
    const all = await beat('a', epoch);
    expect(all).toMatchObject({ memberEpoch: epoch + 1 });
    expect([...all.assigned!].sort()).toEqual([...a, ...b].sort());
  });

  test('a restart within a revocation forgets nothing', async () => {
    await beat('a', 0);
    await beat('b', 0);
    const asked = await beat('a', 2);
    await restart();
    expect(await beat('b', 3)).toMatchObject({ memberEpoch: 3, assigned: [] });
    expect(await beat('a', 2, { owned: asked.assigned })).toMatchObject({ memberEpoch: 3 });
    expect((await beat('b', 3)).assigned).toHaveLength(2);
  });

  test('topics that changed while nobody listened are noticed', async () => {
    await beat('a', 0);
    await groups.stop();
    await directory.addPartitions(directory.byName('orders')!.topicId, 5);
    await start();
    expect((await beat('a', 2)).assigned).toHaveLength(5);
  });
});

describe('the lease', () => {
  test('past its deadline nothing is answered, in either protocol', async () => {
    await restart();
    await beat('a', 0);
    board.isLate = true;
    const refused = { errorCode: ErrorCode.NOT_COORDINATOR };
    expect(await beat('a', 2)).toMatchObject(refused);
    expect(await groups.join('h', joinRequest())).toMatchObject(refused);
    expect(await groups.sync('h', syncRequest('x', 1))).toMatchObject(refused);
    const member = { memberId: 'x', instanceId: null, generation: 1 };
    expect(await groups.heartbeat('g', member)).toBe(ErrorCode.NOT_COORDINATOR);
    expect(await groups.leave('g', [member])).toEqual([ErrorCode.NOT_COORDINATOR]);
    expect(await groups.delete('g')).toBe(ErrorCode.NOT_COORDINATOR);
    expect(await groups.deleteOffsets('g', 'orders', partitions)).toBe(ErrorCode.NOT_COORDINATOR);
    expect(groups.fetchFault('g', null, -1)).toBe(ErrorCode.NOT_COORDINATOR);
    expect(groups.stageFault('g', member)).toBe(ErrorCode.NOT_COORDINATOR);
    board.isLate = false;
    expect(await beat('a', 2)).toMatchObject({ errorCode: 0 });
  });

  test('whoever lost it writes nothing', async () => {
    await beat('a', 0);
    await other.take(leaseOf('groups', 'g'));
    expect(await beat('b', 0)).toMatchObject({ errorCode: ErrorCode.NOT_COORDINATOR });
    expect(await beat('a', 2)).toMatchObject({ errorCode: ErrorCode.NOT_COORDINATOR });
    const [loaded] = await metadata.groups.load();
    expect(loaded?.group.members.map(({ memberId }) => memberId)).toEqual(['a']);
  });
});

describe('time', () => {
  test('who does not give up in its rebalance timeout is out', async () => {
    await beat('a', 0, { rebalanceTimeoutMs: 10_000 });
    await beat('b', 0);
    await beat('a', 2);
    for (let n = 0; n < 2; n += 1) {
      await clock.advance(4_000);
      expect(await beat('a', 2)).toMatchObject({ errorCode: 0, memberEpoch: 2 });
      await beat('b', 3);
    }
    await clock.advance(2_001);
    expect(await beat('a', 2)).toMatchObject({ errorCode: ErrorCode.UNKNOWN_MEMBER_ID });
    expect((await beat('b', 3)).assigned).toEqual(partitions);
  });

  test('a group may have its own session timeout and heartbeat interval', async () => {
    configs['g'] = {
      'consumer.session.timeout.ms': '50000',
      'consumer.heartbeat.interval.ms': '700',
    };
    expect(await beat('a', 0)).toMatchObject({ heartbeatIntervalMs: 700 });
    expect(await beat('a', 0, {}, 'h')).toMatchObject({ heartbeatIntervalMs: 5_000 });
    await clock.advance(46_000);
    expect(stateOf(groups.view('h')!.group)).toBe('Empty');
    expect(state()).toBe('Stable');
    await clock.advance(5_000);
    expect(state()).toBe('Empty');
  });

  test('a static member that is away keeps its part for a session', async () => {
    await beat('a', 0, { instanceId: 'i' });
    await beat('b', 0);
    const asked = await beat('a', 2, { instanceId: 'i' });
    await beat('a', 2, { instanceId: 'i', owned: asked.assigned });
    // Its answer was lost: it is told again. Another one is not.
    expect(await beat('a', 0, { instanceId: 'i' })).toMatchObject({ errorCode: 0, memberEpoch: 3 });
    expect(await beat('x', 0, { instanceId: 'i' })).toMatchObject({
      errorCode: ErrorCode.UNRELEASED_INSTANCE_ID,
    });
    await leave('a', false, 'i');
    expect(await beat('b', 3)).toMatchObject({ memberEpoch: 3 });
    const back = await beat('a2', 0, { instanceId: 'i' });
    expect(back).toMatchObject({ errorCode: 0, memberEpoch: 3, assigned: asked.assigned });
    await leave('a2', false, 'i');
    await clock.advance(30_000);
    await beat('b', 3);
    await clock.advance(16_000);
    expect((await beat('b', 3)).assigned).toEqual(partitions);
  });
});

describe('limits', () => {
  test('groups are counted in both protocols; a refused join leaves nothing', async () => {
    await restart({ 'group.max.count': '1' });
    await beat('x', 3, {}, 'none');
    expect(groups.views()).toEqual([]);
    await beat('a', 0);
    expect(await beat('a', 0, {}, 'h')).toMatchObject({
      errorCode: ErrorCode.GROUP_MAX_SIZE_REACHED,
    });
    expect(await groups.join('h', joinRequest())).toMatchObject({
      errorCode: ErrorCode.GROUP_MAX_SIZE_REACHED,
    });
    expect(groups.views()).toHaveLength(1);
  });

  test('a member that lies about what it owns gets and gives up what it really has', async () => {
    await beat('a', 0);
    await beat('b', 0);
    // It was never given anything; what it claims to own is another's.
    const liar = await beat('b', 3, { owned: partitions });
    expect(liar).toMatchObject({ errorCode: 0, memberEpoch: 3 });
    expect(members().get('b')!.assigned).toEqual([]);
    expect(await beat('b', 3, { owned: [-1] })).toMatchObject({ errorCode: 0 });
    const asked = await beat('a', 2);
    // What it claims beyond its own does not count; what it must give up does.
    expect(await beat('a', 2, { owned: partitions })).toMatchObject({ memberEpoch: 2 });
    expect(await beat('a', 2, { owned: [...asked.assigned!, -1] })).toMatchObject({
      memberEpoch: 3,
    });
  });
});

const syncRequest = (memberId: string, generation: number, owned: readonly number[] = []) => ({
  memberId,
  instanceId: null,
  generation,
  protocolType: null,
  protocol: null,
  assignments:
    owned.length === 0
      ? []
      : [
          {
            memberId,
            assignment: encodeAssignment({
              assignedPartitions: [{ topic: 'orders', partitions: [...owned] }],
            }),
          },
        ],
});

/** A classic group of one member that owns all. */
async function classicGroup(owned: readonly number[] = [0, 1, 2, 3]) {
  const joined = await groups.join('g', joinRequest());
  await groups.sync('g', syncRequest(joined.memberId, joined.generation, owned));
  return { memberId: joined.memberId, instanceId: null, generation: joined.generation };
}

describe('change of protocol', () => {
  test('up and down again, with what is committed', async () => {
    const member = await classicGroup();
    const offset = { offset: 5, leaderEpoch: 0, metadata: '' };
    await groups.commit('g', member, { offsets: [{ partitionId: partitions[0]!, ...offset }] });
    expect(await beat('new', 0)).toMatchObject({ errorCode: 0, memberEpoch: 2, assigned: [] });
    expect(await groups.heartbeat('g', member)).toBe(ErrorCode.REBALANCE_IN_PROGRESS);
    // It speaks version 0 of eager members: it gives up all before it joins.
    const joined = await groups.join('g', joinRequest({ memberId: member.memberId }));
    expect(joined).toMatchObject({ generation: 2, leaderId: '', members: [] });
    const synced = await groups.sync('g', syncRequest(member.memberId, 2));
    const [own] = decodeAssignment(synced.assignment).assignedPartitions;
    expect(own?.partitions).toHaveLength(2);
    expect((await beat('new', 2)).assigned).toHaveLength(2);
    expect(state()).toBe('Stable');
    // A restart in between changes nothing.
    await restart();
    expect(await groups.heartbeat('g', { ...member, generation: 2 })).toBe(0);
    await leave('new');
    expect(state()).toBe('PreparingRebalance');
    expect(await groups.heartbeat('g', { ...member, generation: 2 })).toBe(
      ErrorCode.REBALANCE_IN_PROGRESS,
    );
    const back = await groups.join('g', joinRequest({ memberId: member.memberId }));
    expect(back).toMatchObject({ errorCode: 0, generation: 3, leaderId: member.memberId });
    expect(groups.view('g')?.offsets.get(partitions[0]!)).toMatchObject({ offset: 5 });
    await groups.sync('g', syncRequest(member.memberId, 3, [0]));
    await restart();
    expect(groups.view('g')?.group.kind).toBe('classic');
  });

  test('a classic group whose rebalance is under way is asked to join anew', async () => {
    await classicGroup();
    const waiting = groups.join('g', joinRequest({ clientId: 'second' }));
    expect(state()).toBe('PreparingRebalance');
    expect(await beat('new', 0)).toMatchObject({ errorCode: 0 });
    expect(await waiting).toMatchObject({ errorCode: ErrorCode.REBALANCE_IN_PROGRESS });
  });

  test.each([
    ['downgrade', {}, 'does not allow it'],
    ['disabled', {}, 'does not allow it'],
    ['upgrade', { protocolType: 'connect' }, 'other type'],
    ['upgrade', { protocols: [{ name: 'range', metadata: new Uint8Array(1) }] }, 'unreadable'],
  ])('%s %j: %s', async (policy, request, _why) => {
    await restart({ 'group.consumer.migration.policy': policy });
    const joined = await groups.join('g', joinRequest(request));
    await groups.sync('g', syncRequest(joined.memberId, 1));
    expect(await beat('new', 0)).toMatchObject({ errorCode: ErrorCode.GROUP_ID_NOT_FOUND });
    expect(groups.view('g')?.group).toMatchObject({ kind: 'classic', state: 'Stable' });
  });

  test('where going back is not allowed, classic members stay in the consumer group', async () => {
    await restart({ 'group.consumer.migration.policy': 'upgrade' });
    const member = await classicGroup();
    await beat('new', 0);
    await leave('new');
    expect(groups.view('g')?.group.kind).toBe('consumer');
    const joined = await groups.join('g', joinRequest({ memberId: member.memberId }));
    expect(joined.errorCode).toBe(0);
  });

  test('an assignment that names a partition twice, or none that exists, counts once', async () => {
    const first = groups.join('g', joinRequest({ clientId: 'x' }));
    const { memberId } = await first;
    const twice = encodeAssignment({
      assignedPartitions: [
        { topic: 'orders', partitions: [0, 0, 9] },
        { topic: 'none', partitions: [0] },
      ],
    });
    const assignments = [{ memberId, assignment: twice }];
    await groups.sync('g', { ...syncRequest(memberId, 1), assignments });
    await beat('new', 0);
    expect(members().get(memberId)?.assigned).toEqual([partitions[0]]);
  });

  test('a classic member that never comes back is out after its rebalance timeout', async () => {
    const member = await classicGroup();
    await beat('new', 0);
    for (let n = 0; n < 6; n += 1) {
      expect(await groups.heartbeat('g', member)).toBe(ErrorCode.REBALANCE_IN_PROGRESS);
      await clock.advance(5_001);
      await beat('new', 2);
    }
    expect(await groups.heartbeat('g', member)).toBe(ErrorCode.UNKNOWN_MEMBER_ID);
    expect(members().get('new')?.assigned).toEqual(partitions);
  });
});

describe('offsets', () => {
  const outside = { generation: -1, memberId: '', instanceId: null };
  const offsets = (id: number) => [{ partitionId: id, offset: 1, leaderEpoch: 0, metadata: '' }];

  test('expire when nobody subscribes, or after the group is empty; the group goes with them', async () => {
    const other = '22222222-2222-4222-8222-222222222222';
    const topic = { topicId: other, name: 'other', partitionCount: 1, config: {}, nowMs: 0 };
    const [foreign] = (await directory.create(topic)).partitions as [number];
    await groups.commit('g', outside, {
      offsets: [...offsets(partitions[0]!), ...offsets(foreign)],
    });
    configs['g'] = { 'consumer.session.timeout.ms': String(30 * DAY_MS) };
    await beat('a', 0);
    await clock.advance(8 * DAY_MS);
    expect([...groups.view('g')!.offsets.keys()]).toEqual([partitions[0]]);
    await leave('a');
    await clock.advance(6 * DAY_MS);
    expect(groups.view('g')?.offsets.size).toBe(1);
    await clock.advance(2 * DAY_MS);
    expect(groups.view('g')).toBeUndefined();
    expect(await metadata.groups.load()).toEqual([]);
  });

  test('what is staged in a transaction keeps them', async () => {
    groups.pending.begin('t', 'g', [partitions[0]!]);
    await groups.commit('g', outside, { offsets: offsets(partitions[0]!) });
    await groups.commit('h', outside, { offsets: offsets(partitions[0]!) });
    await clock.advance(8 * DAY_MS);
    expect(groups.view('g')?.offsets.size).toBe(1);
    expect(groups.view('h')).toBeUndefined();
    expect(groups.isPending('g', partitions[0]!)).toBe(true);
  });

  test('those of an ended transaction are seen, also of a group unknown until then', async () => {
    const row = { partitionId: partitions[0]!, offset: 9, leaderEpoch: -1, metadata: '' };
    const offsets = new Map([[partitions[0]!, { ...row, commitMs: 0, expireMs: -1 }]]);
    const applied = new Map([['t', offsets]]);
    groups.pending.seen('id', { state: undefined, hasEnded: true, applied });
    expect(groups.view('t')?.offsets.get(partitions[0]!)?.offset).toBe(9);
  });

  test('who may stage', async () => {
    expect(groups.stageFault('none', outside)).toBe(0);
    expect(groups.stageFault('none', { ...outside, generation: 1 })).toBe(
      ErrorCode.ILLEGAL_GENERATION,
    );
    await beat('a', 0);
    const member = { generation: 2, memberId: 'a', instanceId: null };
    expect(groups.stageFault('g', member)).toBe(0);
    expect(groups.stageFault('g', { ...member, generation: 5 })).toBe(ErrorCode.ILLEGAL_GENERATION);
    expect(groups.stageFault('g', { ...member, memberId: 'x' })).toBe(ErrorCode.UNKNOWN_MEMBER_ID);
    const classic = await groups.join('c', joinRequest());
    // Between JoinGroup and SyncGroup a transaction may stage, and old clients name no member.
    expect(groups.stageFault('c', { ...classic, instanceId: null })).toBe(0);
    expect(groups.stageFault('c', outside)).toBe(0);
    expect(groups.stageFault('c', { ...outside, memberId: 'x' })).toBe(ErrorCode.UNKNOWN_MEMBER_ID);
  });
});

test('patterns find what their member may describe', async () => {
  const topicId = '33333333-3333-4333-8333-333333333333';
  await directory.create({
    topicId,
    name: 'orders-secret',
    partitionCount: 2,
    config: {},
    nowMs: 0,
  });
  const mayDescribe = (topic: string) => topic !== 'orders-secret';
  const pattern = { topicNames: [], topicRegex: 'orders.*' };
  expect((await beat('a', 0, { ...pattern, mayDescribe })).assigned).toEqual(partitions);
  expect((await beat('x', 0, pattern, 'h')).assigned).toHaveLength(6);
  // Another member's request does not widen what the first may know of.
  const later = '44444444-4444-4444-8444-444444444444';
  await directory.create({
    topicId: later,
    name: 'orders-eu',
    partitionCount: 1,
    config: {},
    nowMs: 0,
  });
  await beat('b', 0, { mayDescribe: () => true });
  expect(members().get('a')!.target.length + members().get('b')!.target.length).toBe(4);
  await beat('a', 2, { mayDescribe });
  expect(members().get('a')!.target.length + members().get('b')!.target.length).toBe(5);
});
