import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { allLeases } from '../testing/leases.ts';
import { GroupCoordinator, type OffsetToCommit } from './coordinator.ts';
import { stateOf } from './entry.ts';
import { groupSettings } from './settings.ts';
import { joinRequest } from './testing/join-request.ts';
import { SwitchedStore } from './testing/switched-store.ts';

const OUTSIDE = { generation: -1, memberId: '', instanceId: null };
const DAY_MS = 86_400_000;

let clock: ManualClock;
let metadata: SqliteMetadata;
let directory: TopicDirectory;
let store: SwitchedStore;
let groups: GroupCoordinator;
let partitions: readonly number[];

async function start(set: Record<string, string> = {}): Promise<void> {
  groups = await GroupCoordinator.load({
    metadata: store,
    transactions: metadata.transactions,
    leases: allLeases(),
    directory,
    clock,
    settings: resolveSettings(groupSettings, {
      'group.initial.rebalance.delay.ms': '0',
      ...set,
    }),
    ids: seededIds(seededPrng(7)),
    logger: silentLogger,
    metrics: noMetrics,
  });
}

beforeEach(async () => {
  clock = new ManualClock();
  metadata = openSqliteMetadata(':memory:');
  directory = await TopicDirectory.load(metadata);
  const topicId = '11111111-1111-4111-8111-111111111111';
  const topic = { topicId, name: 'orders', partitionCount: 2, config: {}, nowMs: clock.now() };
  partitions = (await directory.create(topic)).partitions;
  store = new SwitchedStore(metadata.groups);
  await start();
});

afterEach(async () => {
  await groups.stop();
  metadata.close();
});

const synced = (memberId: string, generation: number, assignment = 'all') => ({
  memberId,
  instanceId: null,
  generation,
  protocolType: null,
  protocol: null,
  assignments: [{ memberId, assignment: Buffer.from(assignment) }],
});

const at = (partitionId: number, offset: number, text = ''): OffsetToCommit => ({
  partitionId,
  offset,
  leaderEpoch: 0,
  metadata: text,
});

/** One member in a stable group. */
async function single(groupId = 'g') {
  const joined = await groups.join(groupId, joinRequest());
  const sync = await groups.sync(groupId, synced(joined.memberId, joined.generation));
  expect([joined.errorCode, sync.errorCode]).toEqual([0, 0]);
  return { memberId: joined.memberId, generation: joined.generation, instanceId: null };
}

describe('recovery', () => {
  test('a member goes on in its generation after a restart, or its session ends', async () => {
    const member = await single();
    await groups.commit('g', member, { offsets: [at(partitions[0]!, 5, 'note')] });
    await groups.stop();
    await start();
    expect(await groups.heartbeat('g', member)).toBe(0);
    const again = await groups.sync('g', { ...synced(member.memberId, 1), assignments: [] });
    expect(Buffer.from(again.assignment).toString()).toBe('all');
    expect(groups.view('g')?.offsets.get(partitions[0]!)).toMatchObject({
      offset: 5,
      metadata: 'note',
    });
    await clock.advance(10_001);
    expect(stateOf(groups.view('g')!.group)).toBe('Empty');
    expect(await groups.heartbeat('g', member)).toBe(ErrorCode.UNKNOWN_MEMBER_ID);
  });

  test('a generation that was not stored is not continued', async () => {
    const joined = await groups.join('g', joinRequest());
    await groups.stop();
    await start();
    const request = synced(joined.memberId, joined.generation);
    expect((await groups.sync('g', request)).errorCode).toBe(ErrorCode.UNKNOWN_MEMBER_ID);
  });
});

describe('the store', () => {
  test('nobody learns an assignment that could not be stored; the group tries again', async () => {
    const joined = await groups.join('g', joinRequest());
    store.failing = true;
    const refused = await groups.sync('g', synced(joined.memberId, joined.generation));
    expect(refused).toMatchObject({ errorCode: ErrorCode.COORDINATOR_NOT_AVAILABLE });
    store.failing = false;
    const again = await groups.join('g', joinRequest({ memberId: joined.memberId }));
    expect(again).toMatchObject({ errorCode: 0, generation: 2 });
    expect((await groups.sync('g', synced(again.memberId, 2))).errorCode).toBe(0);
  });

  test('a commit that could not be stored is refused and not seen', async () => {
    store.failing = true;
    const offsets = [at(partitions[0]!, 5)];
    expect(await groups.commit('g', OUTSIDE, { offsets })).toEqual([
      ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ]);
    expect(groups.view('g')).toBeUndefined();
  });

  test('commits of many groups share a transaction', async () => {
    const commits = Array.from({ length: 50 }, (_, n) =>
      groups.commit(`g${n}`, OUTSIDE, { offsets: [at(partitions[0]!, n)] }),
    );
    expect((await Promise.all(commits)).flat()).toEqual(Array(50).fill(0));
    expect(store.transactions.length).toBeLessThanOrEqual(2);
  });

  test('one write per rebalance', async () => {
    await single();
    expect(store.transactions).toHaveLength(1);
    expect(store.transactions[0]).toMatchObject([{ kind: 'group', group: { generation: 1 } }]);
  });
});

describe('rebalance', () => {
  test('the initial delay gathers members into one generation', async () => {
    await groups.stop();
    await start({ 'group.initial.rebalance.delay.ms': '3000' });
    const first = groups.join('g', joinRequest());
    await clock.advance(2_000);
    const second = groups.join('g', joinRequest());
    // A member came during the delay, so it waits once more.
    await clock.advance(2_000);
    expect(stateOf(groups.view('g')!.group)).toBe('PreparingRebalance');
    await clock.advance(2_000);
    const [a, b] = await Promise.all([first, second]);
    expect([a.generation, b.generation]).toEqual([1, 1]);
    expect([a.members.length, b.members.length]).toEqual([2, 0]);
  });

  test('who does not rejoin in time is left behind', async () => {
    const member = await single();
    const newcomer = groups.join('g', joinRequest());
    expect(await groups.heartbeat('g', member)).toBe(ErrorCode.REBALANCE_IN_PROGRESS);
    for (let beat = 0; beat < 6; beat += 1) {
      await clock.advance(5_000);
      await groups.heartbeat('g', member);
    }
    const joined = await newcomer;
    expect(joined).toMatchObject({ errorCode: 0, generation: 2, leaderId: joined.memberId });
    expect(await groups.heartbeat('g', member)).toBe(ErrorCode.UNKNOWN_MEMBER_ID);
  });

  test('who joins and never syncs is given up', async () => {
    const joined = await groups.join('g', joinRequest({ sessionTimeoutMs: 1_000_000 }));
    await clock.advance(30_001);
    expect(stateOf(groups.view('g')!.group)).toBe('Empty');
    expect(await groups.heartbeat('g', { ...joined, instanceId: null })).toBe(
      ErrorCode.UNKNOWN_MEMBER_ID,
    );
  });

  test('a static leader that comes back may skip the assignment, or is told the former leader', async () => {
    const first = await groups.join('g', joinRequest({ instanceId: 'i' }));
    await groups.sync('g', { ...synced(first.memberId, 1), instanceId: 'i' });
    const second = await groups.join('g', joinRequest({ instanceId: 'i' }));
    expect(second).toMatchObject({
      generation: 1,
      skipAssignment: true,
      leaderId: second.memberId,
    });
    expect(second.members).toHaveLength(1);
    const third = await groups.join(
      'g',
      joinRequest({ instanceId: 'i', canSkipAssignment: false }),
    );
    expect(third).toMatchObject({
      generation: 1,
      skipAssignment: false,
      leaderId: second.memberId,
    });
    const fenced = { memberId: second.memberId, instanceId: 'i', generation: 1 };
    expect(await groups.heartbeat('g', fenced)).toBe(ErrorCode.FENCED_INSTANCE_ID);
    expect(await groups.leave('g', [{ memberId: '', instanceId: 'i' }])).toEqual([0]);
    expect(stateOf(groups.view('g')!.group)).toBe('Empty');
  });
});

describe('limits', () => {
  test.each([
    [{ 'group.max.size': '1' }, {}, ErrorCode.GROUP_MAX_SIZE_REACHED],
    [{}, { sessionTimeoutMs: 1 }, ErrorCode.INVALID_SESSION_TIMEOUT],
    [{}, { protocols: [] }, ErrorCode.INCONSISTENT_GROUP_PROTOCOL],
    [{}, { protocolType: 'connect' }, ErrorCode.INCONSISTENT_GROUP_PROTOCOL],
    [
      { 'group.max.member.metadata.bytes': '1024' },
      { protocols: [{ name: 'range', metadata: new Uint8Array(2_000) }] },
      ErrorCode.INVALID_REQUEST,
    ],
  ])('%j %j', async (set, request, code) => {
    await groups.stop();
    await start(set);
    await single();
    expect((await groups.join('g', joinRequest(request))).errorCode).toBe(code);
  });

  test('an assignment too large to store is refused', async () => {
    await groups.stop();
    await start({ 'group.metadata.max.bytes': '4096' });
    const joined = await groups.join('g', joinRequest());
    const sync = await groups.sync('g', synced(joined.memberId, 1, 'x'.repeat(5_000)));
    expect(sync.errorCode).toBe(ErrorCode.UNKNOWN_SERVER_ERROR);
  });

  test('as many groups as configured, and refused joins leave none', async () => {
    await groups.stop();
    await start({ 'group.max.count': '1' });
    await groups.join('a', joinRequest({ protocols: [] }));
    expect(groups.views()).toEqual([]);
    await single('b');
    expect((await groups.join('c', joinRequest())).errorCode).toBe(
      ErrorCode.GROUP_MAX_SIZE_REACHED,
    );
  });
});

describe('offsets', () => {
  test('who may commit', async () => {
    const member = await single();
    const offsets = [at(partitions[0]!, 1)];
    const commit = (groupId: string, committer: object) =>
      groups.commit(groupId, { ...member, ...committer }, { offsets });
    expect(await commit('g', {})).toEqual([0]);
    expect(await commit('g', { generation: 7 })).toEqual([ErrorCode.ILLEGAL_GENERATION]);
    expect(await commit('g', { memberId: 'x' })).toEqual([ErrorCode.UNKNOWN_MEMBER_ID]);
    expect(await commit('g', OUTSIDE)).toEqual([ErrorCode.UNKNOWN_MEMBER_ID]);
    expect(await commit('none', {})).toEqual([ErrorCode.ILLEGAL_GENERATION]);
    expect(await commit('simple', OUTSIDE)).toEqual([0]);
    const text = 'x'.repeat(4_097);
    const mixed = { offsets: [at(partitions[0]!, 2, text), at(partitions[1]!, 3)] };
    expect(await groups.commit('simple', OUTSIDE, mixed)).toEqual([
      ErrorCode.OFFSET_METADATA_TOO_LARGE,
      0,
    ]);
    await groups.join('g', joinRequest({ memberId: member.memberId }));
    expect(await commit('g', { generation: 2 })).toEqual([ErrorCode.REBALANCE_IN_PROGRESS]);
  });

  test('go with their topic; a commit that was under way then is refused', async () => {
    await groups.commit('g', OUTSIDE, { offsets: [at(partitions[0]!, 1)] });
    const { topicId } = directory.byName('orders')!;
    await directory.delete(topicId);
    expect(groups.view('g')?.offsets.size).toBe(0);
    expect(await groups.commit('g', OUTSIDE, { offsets: [at(partitions[0]!, 2)] })).toEqual([
      ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]);
    expect((await metadata.groups.load())[0]?.offsets).toEqual([]);
  });

  test('expire with the silence of their group, and the group with them', async () => {
    await single();
    await groups.commit('simple', OUTSIDE, { offsets: [at(partitions[0]!, 1)] });
    await groups.commit('soon', OUTSIDE, { offsets: [at(partitions[0]!, 1)], retentionMs: 1_000 });
    await clock.advance(601_000);
    expect(groups.view('soon')).toBeUndefined();
    expect(groups.view('simple')?.offsets.size).toBe(1);
    await clock.advance(8 * DAY_MS);
    expect(groups.views()).toEqual([]);
    expect(await metadata.groups.load()).toEqual([]);
  });

  test('of a topic in use are not deleted', async () => {
    const member = await single();
    await groups.commit('g', member, { offsets: [at(partitions[0]!, 1)] });
    expect(await groups.deleteOffsets('g', 'orders', partitions)).toBe(
      ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    );
    expect(await groups.delete('g')).toBe(ErrorCode.NON_EMPTY_GROUP);
    await groups.leave('g', [{ memberId: member.memberId, instanceId: null }]);
    expect(await groups.deleteOffsets('g', 'orders', partitions)).toBe(0);
    expect(await groups.delete('g')).toBe(0);
    expect(await groups.delete('g')).toBe(ErrorCode.GROUP_ID_NOT_FOUND);
    expect(await metadata.groups.load()).toEqual([]);
  });
});

test('stop answers those who wait', async () => {
  await single();
  const waiting = groups.join('g', joinRequest());
  await groups.stop();
  expect((await waiting).errorCode).toBe(ErrorCode.NOT_COORDINATOR);
  expect((await groups.join('g', joinRequest())).errorCode).toBe(ErrorCode.NOT_COORDINATOR);
});

test('who waits is answered when its connection or the broker ends; the member stays', async () => {
  const { memberId } = await single();
  const ending = new AbortController();
  const waiting = groups.join('g', joinRequest(), ending.signal);
  ending.abort();
  expect((await waiting).errorCode).toBe(ErrorCode.NOT_COORDINATOR);
  expect(groups.view('g')?.group.members.size).toBe(2);
  const rejoined = await groups.join('g', joinRequest({ memberId }));
  expect(rejoined).toMatchObject({ errorCode: 0, generation: 2 });
});
