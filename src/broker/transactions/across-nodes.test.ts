// Transactions whose coordinator, whose groups and whose batches are on different nodes over one store.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import type { StoredOffset } from '../../metadata/groups.ts';
import { shardOf } from '../../metadata/shards.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { type TestBatch, testColumns } from '../../metadata/test-batches.ts';
import type { Producer, TransactionAdmission } from '../../metadata/transactions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import type { OffsetFetchReply } from '../../protocol/messages/09-offset-fetch.ts';
import { groupHandlers } from '../groups/index.ts';
import type { RequestContext } from '../handler.ts';
import { anybody } from '../testing/access.ts';
import { leaseOf } from '../testing/leases.ts';
import { openNodes, stopNodes, type TestNode } from '../testing/nodes.ts';

const { NOT_COORDINATOR } = ErrorCode;
const OUTSIDE = { generation: -1, memberId: '', instanceId: null };
const ID = 't';
const TRANSACTIONS = leaseOf('transactions', ID);
const GROUPS = leaseOf('groups', 'g');

let clock: ManualClock;
let metadata: SqliteMetadata;
let nodes: readonly TestNode[];
/** Coordinates the transactional id. */
let a: TestNode;
/** Coordinates the group. */
let b: TestNode;
let partition: number;
let flushes: number;

beforeEach(async () => {
  clock = new ManualClock();
  flushes = 0;
  metadata = openSqliteMetadata(':memory:', { clock });
  const topicId = '11111111-1111-4111-8111-111111111111';
  const topic = { topicId, name: 'orders', partitionCount: 2, config: {}, nowMs: 0 };
  partition = (await metadata.topics.create(topic)).partitions[0]!;
  nodes = await openNodes({ metadata, clock });
  [a, b] = nodes as [TestNode, TestNode];
  await a.leases.take(TRANSACTIONS);
  await b.leases.take(GROUPS);
});

afterEach(async () => {
  await stopNodes(nodes);
  metadata.close();
});

async function started(node = a): Promise<Producer> {
  const { errorCode, ...producer } = await node.transactions.initProducerId(ID, {
    timeoutMs: 10_000,
  });
  expect(errorCode).toBe(0);
  return producer;
}

const row = (offset: number): StoredOffset => {
  return {
    partitionId: partition,
    offset,
    leaderEpoch: 0,
    metadata: '',
    commitMs: 0,
    expireMs: -1,
  };
};

const stage = (producer: Producer, offset: number, node = b) =>
  node.transactions.stageOffsets(ID, producer, {
    groupId: 'g',
    offsets: [row(offset)],
    mode: 'implicit',
  });

const end = async (producer: Producer, committed: boolean, node = a) => {
  const { errorCode, ...next } = await node.transactions.end(ID, producer, {
    committed,
    bump: true,
  });
  return { errorCode, next };
};

/** What OffsetFetch at the group's coordinator sees: the committed offset, and whether another is pending. */
async function fetched(node = b) {
  expect(await node.groups.settle(['g'])).toBe(0);
  const offset = node.groups.view('g')?.offsets.get(partition)?.offset;
  return [offset, node.groups.isPending('g', partition)];
}

describe('offsets', () => {
  test('staged at the group, ended at the transaction, known at the group', async () => {
    const producer = await started();
    expect(await fetched()).toEqual([undefined, false]);
    expect(await stage(producer, 5)).toBe(0);
    expect(await fetched()).toEqual([undefined, true]);
    const { errorCode, next } = await end(producer, true);
    expect(errorCode).toBe(0);
    expect(await fetched()).toEqual([5, false]);
    expect(await stage(next, 6)).toBe(0);
    expect(await fetched()).toEqual([5, true]);
    await end(next, false);
    expect(await fetched()).toEqual([5, false]);
  });

  test('of several transactions in a row, though nobody asked in between', async () => {
    let producer = await started();
    for (const offset of [1, 2, 3]) {
      await stage(producer, offset);
      producer = (await end(producer, offset !== 2)).next;
    }
    await stage(producer, 4);
    expect(await fetched()).toEqual([3, true]);
  });

  test('and plain commits: the later one stays', async () => {
    const producer = await started();
    await stage(producer, 5);
    const commit = (offset: number) =>
      b.groups.commit('g', OUTSIDE, {
        offsets: [{ partitionId: partition, offset, leaderEpoch: 0, metadata: '' }],
      });
    expect(await commit(3)).toEqual([0]);
    const { next } = await end(producer, true);
    expect(await fetched()).toEqual([5, false]);
    await stage(next, 8);
    await end(next, true);
    expect(await commit(7)).toEqual([0]);
    expect(await fetched()).toEqual([7, false]);
  });

  test('go with their group to its next coordinator, which learns the end too', async () => {
    const producer = await started();
    await stage(producer, 5);
    await b.leases.lose(GROUPS);
    await a.leases.take(GROUPS);
    expect(await fetched(a)).toEqual([undefined, true]);
    const { next } = await end(producer, true);
    expect(await fetched(a)).toEqual([5, false]);
    await stage(next, 6, a);
    await a.leases.lose(GROUPS);
    await b.leases.take(GROUPS);
    await end(next, true);
    expect(await fetched(b)).toEqual([6, false]);
  });

  test('are staged by the holder of the group’s lease only', async () => {
    const producer = await started();
    expect(await stage(producer, 5, a)).toBe(NOT_COORDINATOR);
    await a.leases.take(GROUPS);
    // b believes to hold it still.
    expect(await stage(producer, 6, b)).toBe(NOT_COORDINATOR);
    expect(b.groups.faultOf('g')).toBe(NOT_COORDINATOR);
    expect((await metadata.transactions.describe([ID]))[0]?.status).toBe('Empty');
    expect(await stage(producer, 7, a)).toBe(0);
  });

  test('whose staging was on its way when the group moved are not staged', async () => {
    const producer = await started();
    b.way.close();
    const late = stage(producer, 5);
    await clock.advance(0);
    await a.leases.take(GROUPS);
    expect(await fetched(a)).toEqual([undefined, false]);
    b.way.open();
    expect(await late).toBe(NOT_COORDINATOR);
    await end(producer, false);
    expect(await fetched(a)).toEqual([undefined, false]);
  });

  test('of a fenced producer: refused, and nothing stays pending', async () => {
    const producer = await started();
    await started();
    expect(await stage(producer, 5)).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
    expect(await fetched()).toEqual([undefined, false]);
  });

  test('that an operator’s abort on another node has freed are pending no more', async () => {
    const producer = await started();
    await stage(producer, 5);
    expect(await b.transactions.abort(producer)).toBe(0);
    expect(await fetched()).toEqual([undefined, false]);
    // The coordinator learns of it when its client is refused.
    expect((await end(producer, true)).errorCode).toBe(ErrorCode.INVALID_TXN_STATE);
    expect(await started()).toEqual({ ...producer, producerEpoch: 2 });
  });

  test('of a group that is deleted are gone', async () => {
    const producer = await started();
    await b.groups.commit('g', OUTSIDE, { offsets: [row(1)] });
    await stage(producer, 5);
    expect(await b.groups.delete('g')).toBe(0);
    await end(producer, true);
    expect(await fetched()).toEqual([undefined, false]);
  });

  test('while the store is away nobody is told what may be old', async () => {
    const producer = await started();
    await stage(producer, 5);
    b.way.isBroken = true;
    expect(await b.groups.settle(['g'])).toBe(ErrorCode.COORDINATOR_NOT_AVAILABLE);
    // Other groups of the same request are no worse off.
    const ids = Array.from({ length: 1_000 }, (_, n) => `calm${n}`);
    const calm = ids.find((id) => shardOf(id) === shardOf('g'))!;
    const groups = ['g', calm].map((groupId) => ({
      groupId,
      memberId: null,
      memberEpoch: -1,
      topics: null,
    }));
    const fetch = groupHandlers(b.groups).find(({ api }) => api.key === 9)!;
    const context = {
      apiVersion: 10,
      services: { directory: b.directory },
      access: anybody(),
      countError() {},
    } as unknown as RequestContext;
    const request = { groupId: '', topics: null, requireStable: true, groups } as never;
    const reply = (await fetch.handle(request, context)) as OffsetFetchReply;
    expect(reply.groups.map(({ errorCode }) => errorCode)).toEqual([
      ErrorCode.COORDINATOR_NOT_AVAILABLE,
      0,
    ]);
    b.way.isBroken = false;
    expect(await fetched()).toEqual([undefined, true]);
  });
});

describe('the coordinator', () => {
  test('of another id answers NOT_COORDINATOR', async () => {
    const producer = await started();
    const how = { committed: true, bump: true };
    expect(await b.transactions.initProducerId(ID, { timeoutMs: 1_000 })).toMatchObject({
      errorCode: NOT_COORDINATOR,
    });
    expect(await b.transactions.addPartitions(ID, producer, [partition])).toBe(NOT_COORDINATOR);
    expect(await b.transactions.addOffsets(ID, producer, 'g')).toBe(NOT_COORDINATOR);
    expect(await b.transactions.end(ID, producer, how)).toMatchObject({
      errorCode: NOT_COORDINATOR,
    });
    expect(await b.transactions.verifyPartitions(ID, producer, [partition])).toEqual([
      NOT_COORDINATOR,
    ]);
    expect(await b.transactions.list()).toEqual([]);
    expect(await a.transactions.list()).toHaveLength(1);
  });

  test('hands over: identity, open transaction and its timeout', async () => {
    const producer = await started();
    expect(await a.transactions.addPartitions(ID, producer, [partition])).toBe(0);
    await a.leases.lose(TRANSACTIONS);
    await clock.advance(20_000);
    expect((await metadata.transactions.describe([ID]))[0]?.status).toBe('Ongoing');
    await b.leases.take(TRANSACTIONS);
    expect(await b.transactions.verifyPartitions(ID, producer, [partition])).toEqual([0]);
    await clock.advance(2_000);
    expect((await metadata.transactions.describe([ID]))[0]?.status).toBe('CompleteAbort');
  });

  test('that lost its lease ends nothing: the client is told to look for another', async () => {
    const producer = await started();
    await a.transactions.addPartitions(ID, producer, [partition]);
    a.way.close();
    const late = end(producer, false);
    await clock.advance(0);
    await b.leases.take(TRANSACTIONS);
    expect((await end(producer, true, b)).errorCode).toBe(0);
    a.way.open();
    expect((await late).errorCode).toBe(NOT_COORDINATOR);
    expect((await metadata.transactions.describe([ID]))[0]?.status).toBe('CompleteCommit');
    // A repeated request finds its outcome at the new one.
    expect((await end(producer, true, b)).errorCode).toBe(0);
  });

  test('that loses its lease answers who waits at once', async () => {
    const producer = await started();
    a.way.close();
    const waiting = a.transactions.addPartitions(ID, producer, [partition]);
    await clock.advance(0);
    const losing = a.leases.lose(TRANSACTIONS);
    expect(await waiting).toBe(NOT_COORDINATOR);
    a.way.open();
    await losing;
  });
});

describe('a batch', () => {
  /** A Produce at a node: what it has learnt, and the batch's way to its commit. */
  async function admitted(
    node: TestNode,
    producer: Producer,
    mode: 'implicit' | 'verify' = 'implicit',
  ): Promise<TransactionAdmission | number> {
    const learnt = await node.transactions.learn(ID, producer, mode);
    const batch = { transactionalId: ID, ...producer, partitionId: partition, mode };
    return node.transactions.admit(batch, learnt);
  }

  async function committed(
    { producerId, producerEpoch: epoch }: Producer,
    transaction: TransactionAdmission | number,
    sequence = 0,
  ): Promise<number> {
    if (typeof transaction === 'number') return transaction;
    flushes += 1;
    const flushId = new Uint8Array(16).fill(flushes);
    const batch: TestBatch = { partitionId: partition, producerId, epoch, sequence, transaction };
    const object = { key: `wal/${flushes}`, kind: 'object', generation: 0, bytes: 0 } as const;
    const nowMs = clock.now();
    const flush = { flushId, object, nowMs, batches: testColumns([batch]) };
    const [done] = await metadata.log.commit([flush]);
    return done!.errorCodes[0]!;
  }

  test('is admitted where its id is not coordinated, and asks once per epoch', async () => {
    const producer = await started();
    expect(b.transactions.learn(ID, producer, 'implicit')).toBeDefined();
    expect(await committed(producer, await admitted(b, producer))).toBe(0);
    expect(b.transactions.learn(ID, producer, 'implicit')).toBeUndefined();
    expect(a.transactions.learn(ID, producer, 'implicit')).toBeUndefined();
    expect(await committed(producer, await admitted(b, producer), 1)).toBe(0);
    const { next } = await end(producer, true);
    expect(b.transactions.learn(ID, next, 'implicit')).toBeDefined();
    expect(await committed(next, await admitted(b, next))).toBe(0);
  });

  test('of an old client is asked about each time: its epoch stays', async () => {
    const producer = await started();
    const { INVALID_TXN_STATE } = ErrorCode;
    expect(await admitted(b, producer, 'verify')).toBe(INVALID_TXN_STATE);
    await a.transactions.addPartitions(ID, producer, [partition]);
    const first = await admitted(b, producer, 'verify');
    expect(await committed(producer, first)).toBe(0);
    await a.transactions.end(ID, producer, { committed: true, bump: false });
    expect(await admitted(b, producer, 'verify')).toBe(INVALID_TXN_STATE);
    await a.transactions.addPartitions(ID, producer, [partition]);
    // L6: what was admitted before the end is not in the next transaction, though epoch and partition are the same.
    expect(await committed(producer, first, 1)).toBe(INVALID_TXN_STATE);
    expect(await committed(producer, await admitted(b, producer, 'verify'), 1)).toBe(0);
  });

  test.each([true, false])(
    'admitted elsewhere before EndTxn never lands after it (commit %s)',
    async (commit) => {
      const producer = await started();
      expect(await committed(producer, await admitted(b, producer))).toBe(0);
      const late = await admitted(b, producer);
      const { errorCode, next } = await end(producer, commit);
      expect(errorCode).toBe(0);
      const end0 = (await metadata.log.partitions([partition]))[0]!.highWatermark;
      expect(await committed(producer, late, 1)).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
      // Nor by a note that is kept: the epoch has passed.
      expect(await committed(producer, await admitted(b, producer), 1)).toBe(
        ErrorCode.INVALID_PRODUCER_EPOCH,
      );
      expect((await metadata.log.partitions([partition]))[0]!.highWatermark).toBe(end0);
      expect(await committed(next, await admitted(b, next))).toBe(0);
    },
  );

  test('of a note that has become wrong is asked about again after its refusal', async () => {
    const producer = await started();
    const note = await admitted(b, producer);
    expect(await committed(producer, note)).toBe(0);
    // An old EndTxn keeps the epoch: no client mixes it with new Produce, but the note must not last.
    await a.transactions.end(ID, producer, { committed: true, bump: false });
    expect(await committed(producer, await admitted(b, producer), 1)).toBe(
      ErrorCode.TRANSACTION_ABORTABLE,
    );
    b.transactions.refusedBatch(ID);
    expect(await committed(producer, await admitted(b, producer), 1)).toBe(0);
  });

  test('is refused with a retriable code when the store has no answer', async () => {
    const producer = await started();
    b.way.isBroken = true;
    expect(await admitted(b, producer)).toBe(ErrorCode.NOT_ENOUGH_REPLICAS);
    b.way.isBroken = false;
    expect(await committed(producer, await admitted(b, producer))).toBe(0);
  });

  test('of a coordinator whose lease has run out is asked about too', async () => {
    const producer = await started();
    a.leases.isLate = true;
    expect(a.transactions.learn(ID, producer, 'implicit')).toBeDefined();
    expect(await committed(producer, await admitted(a, producer))).toBe(0);
  });
});
