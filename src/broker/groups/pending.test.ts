// Pending offsets and the store's answers about them: what overtakes a question, and what is asked when.
import { beforeEach, expect, test } from 'vitest';
import type { StoredOffset } from '../../metadata/groups.ts';
import type { TransactionState } from '../../metadata/transactions.ts';
import { PendingOffsets } from './pending.ts';
import { settle } from './settle.ts';

const row = (partitionId: number, offset: number): StoredOffset => {
  return { partitionId, offset, leaderEpoch: 0, metadata: '', commitMs: 0, expireMs: -1 };
};
const rows = (...ids: number[]) => new Map(ids.map((id) => [id, row(id, id * 10)]));

/** An open transaction with offsets of partitions staged for `g`, or one that has ended. */
function stateOf(incarnation: number, staged: readonly number[] | undefined): TransactionState {
  return {
    transactionalId: 't',
    producerId: 1,
    producerEpoch: 0,
    previousProducerId: -1,
    lastProducerEpoch: -1,
    incarnation,
    status: staged === undefined ? 'CompleteCommit' : 'Ongoing',
    transactionVersion: 2,
    timeoutMs: 1,
    startMs: 0,
    updateMs: 0,
    partitions: new Set(),
    offsets: new Map(staged === undefined ? [] : [['g', rows(...staged)]]),
  };
}

let pending: PendingOffsets;
/** Committed offsets of `g`: in memory, and in the store. */
let known: Map<number, number>;
let stored: StoredOffset[];
/** The store's state of `t`, and what happens while it is asked. */
let state: TransactionState;
let meanwhile: (() => void)[];
let asked: number;
/** False: what a transaction has committed can't be told in order. */
let inOrder: boolean;

beforeEach(() => {
  known = new Map();
  stored = [];
  meanwhile = [];
  asked = 0;
  inOrder = true;
  pending = new PendingOffsets({
    applied(_groupId, offsets) {
      if (inOrder)
        for (const { partitionId, offset } of offsets.values()) known.set(partitionId, offset);
      return inOrder;
    },
  });
});

const settled = (groupIds?: readonly string[]) =>
  settle(
    {
      pending,
      writer: { between: (work) => work() },
      groups: {
        async offsets(ids) {
          const answer = stored;
          meanwhile.shift()?.();
          return ids.map(() => answer);
        },
      },
      transactions: {
        async describe(ids) {
          asked += 1;
          const answer = state;
          meanwhile.shift()?.();
          return ids.map(() => answer);
        },
      },
      replace(_groupId, offsets, isWanted = () => true) {
        for (const { partitionId, offset } of offsets)
          if (isWanted(partitionId)) known.set(partitionId, offset);
      },
    },
    groupIds,
  );

const stage = (incarnation: number, ...partitionIds: number[]) =>
  pending.finish(pending.begin('t', 'g', partitionIds), { kind: 'stored', incarnation });

test('nothing is asked where nothing is pending', async () => {
  expect(await settled()).toBe(0);
  expect(pending.isUnsure('g')).toBe(false);
  const refused = pending.begin('t', 'g', [1]);
  expect(pending.has('g', 1)).toBe(true);
  expect(pending.isUnsure('g')).toBe(false);
  pending.finish(refused, { kind: 'refused' });
  expect(pending.has('g', 1)).toBe(false);
  expect(asked).toBe(0);
});

test('an end that is told spares the question, with its offsets or without', async () => {
  stage(4, 1);
  const applied = new Map([['g', rows(1)]]);
  pending.seen('t', { state: stateOf(5, undefined), hasEnded: true, applied });
  expect(known.get(1)).toBe(10);
  stage(5, 1);
  pending.seen('t', { state: stateOf(6, undefined), hasEnded: true });
  expect(await settled()).toBe(0);
  expect(asked).toBe(0);
});

test('the end of a later transaction says nothing of an earlier one that ended elsewhere', async () => {
  stage(4, 1);
  // Ended elsewhere, then another one here.
  pending.seen('t', { state: stateOf(7, undefined), hasEnded: true });
  expect(pending.isUnsure('g')).toBe(true);
  state = stateOf(7, undefined);
  stored = [row(1, 10)];
  expect(await settled()).toBe(0);
  expect(known.get(1)).toBe(10);
  expect(pending.isUnsure('g')).toBe(false);
});

test('a transaction that goes on is asked about each time, its offsets are not read again', async () => {
  stage(4, 1);
  state = stateOf(4, [1]);
  expect(await settled()).toBe(0);
  expect(await settled(['g'])).toBe(0);
  expect([asked, known.size, pending.has('g', 1)]).toEqual([2, 0, true]);
});

test('what is staged while the store is asked stays pending, and keeps nobody from an answer', async () => {
  stage(4, 1);
  state = stateOf(5, undefined);
  meanwhile = [
    () => {
      stage(5, 2);
      state = stateOf(5, [2]);
    },
  ];
  stored = [row(1, 10)];
  expect(await settled()).toBe(0);
  expect(asked).toBe(1);
  expect([pending.has('g', 2), known.get(1)]).toEqual([true, 10]);
  expect(await settled()).toBe(0);
  expect([pending.has('g', 1), pending.has('g', 2)]).toEqual([false, true]);
});

test('offsets read before an end that was told meanwhile are not taken', async () => {
  stage(4, 1);
  state = stateOf(5, undefined);
  stored = [row(1, 10)];
  meanwhile = [
    () => {},
    () => {
      // After the read: the next transaction commits, and this node is told.
      stage(5, 1);
      const applied = new Map([['g', new Map([[1, row(1, 99)]])]]);
      pending.seen('t', { state: stateOf(6, undefined), hasEnded: true, applied });
      state = stateOf(6, undefined);
      stored = [row(1, 99)];
    },
  ];
  expect(await settled()).toBe(0);
  expect(known.get(1)).toBe(99);
});

test('what can’t be told in order is read again', async () => {
  stage(4, 1);
  inOrder = false;
  const applied = new Map([['g', rows(1)]]);
  pending.seen('t', { state: stateOf(5, undefined), hasEnded: true, applied });
  expect([known.size, pending.isUnsure('g')]).toEqual([0, true]);
  stored = [row(1, 10)];
  expect(await settled()).toBe(0);
  expect([known.get(1), asked, pending.isUnsure('g')]).toEqual([10, 0, false]);
});

test('what was found at a gain, or whose answer was lost, is pending as far as the store says', async () => {
  pending.found('t', ['g']);
  state = stateOf(4, [1, 2]);
  expect(await settled()).toBe(0);
  expect([1, 2, 3].map((id) => pending.has('g', id))).toEqual([true, true, false]);
  pending.finish(pending.begin('t', 'g', [3]), { kind: 'lost' });
  expect(pending.has('g', 3)).toBe(true);
  expect(await settled()).toBe(0);
  expect(pending.has('g', 3)).toBe(false);
});

test('a group whose transactions never rest is answered all the same', async () => {
  stage(4, 1);
  state = stateOf(4, [1]);
  meanwhile = Array.from({ length: 20 }, () => () => stage(4, 1));
  expect(await settled()).toBe(0);
  expect(asked).toBe(1);
});

test('the next staging of a transaction tells that the one before has ended', async () => {
  stage(4, 1);
  stage(6, 2);
  state = stateOf(6, [2]);
  stored = [row(1, 10), row(3, 30)];
  known.set(3, 33);
  expect(await settled()).toBe(0);
  // Only what it had staged is read again.
  expect([...known]).toEqual([
    [3, 33],
    [1, 10],
  ]);
  expect([pending.has('g', 1), pending.has('g', 2)]).toEqual([false, true]);
});

test('what is dropped is forgotten', () => {
  stage(4, 1);
  const late = pending.begin('t', 'g', [2]);
  for (let shard = 0; shard < 50; shard += 1) pending.drop(shard);
  pending.finish(late, { kind: 'stored', incarnation: 4 });
  const left = [pending.isUnsure('g'), pending.has('g', 1), pending.has('g', 2)];
  expect(left).toEqual([false, false, false]);
});
