// The coordinator over a manual clock and the store in memory: what it does by itself, what it remembers, and what
// becomes of requests whose answer from the store is lost.
import { beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { PrometheusMetrics } from '../../base/metrics.ts';
import { resolveSettings } from '../../base/settings.ts';
import type { StoredOffset } from '../../metadata/groups.ts';
import type { TransactionMode } from '../../metadata/transactions.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { allLeases } from '../testing/leases.ts';
import { MemoryTransactions } from '../testing/memory-transactions.ts';
import { AgreeableGroups } from '../testing/transactional-groups.ts';
import { TransactionCoordinator } from './coordinator.ts';
import { transactionSettings } from './settings.ts';

let store: MemoryTransactions;
let groups: AgreeableGroups;
let clock: ManualClock;
let metrics: PrometheusMetrics;
let coordinator: TransactionCoordinator;

const load = (settings: Record<string, string> = {}) =>
  TransactionCoordinator.load({
    metadata: store,
    leases: allLeases(),
    groups,
    settings: resolveSettings(transactionSettings, settings),
    clock,
    logger: silentLogger,
    metrics,
  });

beforeEach(async () => {
  store = new MemoryTransactions();
  groups = new AgreeableGroups();
  clock = new ManualClock();
  metrics = new PrometheusMetrics();
  coordinator = await load();
});

async function started(id = 'a', timeoutMs = 10_000) {
  const { errorCode, ...producer } = await coordinator.initProducerId(id, { timeoutMs });
  expect(errorCode).toBe(0);
  return producer;
}

const settle = async () => expect(await groups.settle(store, { offsets: store.offsets })).toBe(0);

const row = (partitionId: number, offset: number): StoredOffset => {
  return { partitionId, offset, leaderEpoch: 0, metadata: '', commitMs: 0, expireMs: -1 };
};

const admit = (
  id: string,
  producer: { producerId: number; producerEpoch: number },
  mode: TransactionMode,
) => coordinator.admit({ transactionalId: id, ...producer, partitionId: 1, mode });

describe('identities', () => {
  it.each([
    ['an empty id', '', 1_000, ErrorCode.INVALID_REQUEST],
    ['an endless id', 'x'.repeat(1_025), 1_000, ErrorCode.INVALID_REQUEST],
    ['no timeout', 'a', 0, ErrorCode.INVALID_TRANSACTION_TIMEOUT],
    ['a negative timeout', 'a', -5, ErrorCode.INVALID_TRANSACTION_TIMEOUT],
    ['a timeout past the maximum', 'a', 900_001, ErrorCode.INVALID_TRANSACTION_TIMEOUT],
  ])('are refused for %s', async (_what, id, timeoutMs, errorCode) => {
    const reply = await coordinator.initProducerId(id, { timeoutMs });
    expect(reply).toEqual({ errorCode, producerId: -1, producerEpoch: -1 });
    expect(store.states.size).toBe(0);
  });

  it('are refused past transactional.id.max.count, known ids are not', async () => {
    coordinator = await load({ 'transactional.id.max.count': '1' });
    await started('a');
    const { errorCode } = await coordinator.initProducerId('b', { timeoutMs: 1_000 });
    expect(errorCode).toBe(ErrorCode.POLICY_VIOLATION);
    await started('a');
  });

  it('survive a restart', async () => {
    const producer = await started();
    coordinator = await load();
    expect(admit('a', producer, 'implicit')).toEqual({ incarnation: 0, mode: 'implicit' });
  });
});

describe('admission', () => {
  it('never waits, and needs the present identity', async () => {
    const first = await started();
    const second = await started();
    expect(admit('a', first, 'implicit')).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
    expect(admit('a', second, 'implicit')).toEqual({ incarnation: 1, mode: 'implicit' });
    expect(admit('b', second, 'implicit')).toBe(ErrorCode.INVALID_PRODUCER_ID_MAPPING);
    expect(admit('', second, 'implicit')).toBe(ErrorCode.INVALID_REQUEST);
  });

  it('of old clients needs the partition added', async () => {
    const producer = await started();
    expect(admit('a', producer, 'verify')).toBe(ErrorCode.INVALID_TXN_STATE);
    expect(admit('a', producer, 'verify-abortable')).toBe(ErrorCode.TRANSACTION_ABORTABLE);
    expect(await coordinator.addPartitions('a', producer, [1])).toBe(0);
    expect(admit('a', producer, 'verify')).toEqual({ incarnation: 0, mode: 'verify' });
    await coordinator.end('a', producer, { committed: true, bump: false });
    expect(admit('a', producer, 'verify')).toBe(ErrorCode.INVALID_TXN_STATE);
  });

  it('answers a retriable code while nobody knows what was stored', async () => {
    const producer = await started();
    store.failNext = 'after';
    const how = { committed: false, bump: true };
    const lost = await coordinator.end('a', producer, how);
    expect(lost.errorCode).toBe(ErrorCode.COORDINATOR_NOT_AVAILABLE);
    expect(admit('a', producer, 'implicit')).toBe(ErrorCode.NOT_ENOUGH_REPLICAS);
    // The client asks again: the store remembers.
    expect(await coordinator.end('a', producer, how)).toEqual({
      errorCode: 0,
      producerId: producer.producerId,
      producerEpoch: 1,
    });
    expect(admit('a', { ...producer, producerEpoch: 1 }, 'implicit')).toMatchObject({
      incarnation: 1,
    });
  });
});

describe('offsets', () => {
  it('are pending until the end and reach their group with it', async () => {
    const producer = await started();
    await coordinator.addOffsets('a', producer, 'g');
    const staged = { groupId: 'g', offsets: [row(5, 70)], mode: 'verify' } as const;
    expect(await coordinator.stageOffsets('a', producer, staged)).toBe(0);
    expect(groups.pending.has('g', 5)).toBe(true);
    expect(groups.pending.has('g', 6)).toBe(false);
    expect(groups.pending.has('h', 5)).toBe(false);
    await coordinator.end('a', producer, { committed: true, bump: false });
    expect(groups.pending.has('g', 5)).toBe(false);
    expect(groups.applied).toEqual([['g', [70]]]);
  });

  it('are pending from the moment the group has agreed, and while nobody knows', async () => {
    const producer = await started();
    // The store is at work already: what is staged has to wait its turn, in which the group may rebalance.
    const busy = coordinator.addPartitions('a', producer, [1]);
    await Promise.resolve();
    const staged = { groupId: 'g', offsets: [row(5, 70)], mode: 'implicit' } as const;
    const staging = coordinator.stageOffsets('a', producer, staged);
    expect(groups.pending.has('g', 5)).toBe(true);
    expect(groups.pending.has('g', 6)).toBe(false);
    await Promise.all([busy, staging]);
    await coordinator.end('a', producer, { committed: true, bump: true });
    expect(groups.pending.has('g', 5)).toBe(false);
    const next = { ...producer, producerEpoch: 1 };
    store.failNext = 'after';
    await coordinator.stageOffsets('a', next, staged);
    expect(groups.pending.has('g', 5)).toBe(true);
    await coordinator.end('a', next, { committed: false, bump: true });
    await settle();
    expect(groups.pending.has('g', 5)).toBe(false);
    await coordinator.stageOffsets('a', next, staged);
    expect(groups.pending.has('g', 5)).toBe(false);
  });

  it('of an aborted transaction reach nobody', async () => {
    const producer = await started();
    const staged = { groupId: 'g', offsets: [row(5, 70)], mode: 'implicit' } as const;
    await coordinator.stageOffsets('a', producer, staged);
    await coordinator.end('a', producer, { committed: false, bump: true });
    expect(groups.applied).toEqual([]);
    expect(groups.pending.has('g', 5)).toBe(false);
  });

  it('for a deleted group are pending no more', async () => {
    const producer = await started();
    for (const groupId of ['g', 'h']) {
      const staged = { groupId, offsets: [row(5, 70)], mode: 'implicit' } as const;
      await coordinator.stageOffsets('a', producer, staged);
    }
    groups.pending.forget('g');
    expect(groups.pending.has('g', 5)).toBe(false);
    expect(groups.pending.has('h', 5)).toBe(true);
  });

  it('by a fenced producer are INVALID_PRODUCER_EPOCH', async () => {
    const producer = await started();
    await started();
    const staged = { groupId: 'g', offsets: [row(5, 70)], mode: 'implicit' } as const;
    expect(await coordinator.stageOffsets('a', producer, staged)).toBe(
      ErrorCode.INVALID_PRODUCER_EPOCH,
    );
  });

  it('whose end was stored but not answered reach their group once that is known', async () => {
    const producer = await started();
    const staged = { groupId: 'g', offsets: [row(5, 70)], mode: 'implicit' } as const;
    await coordinator.stageOffsets('a', producer, staged);
    store.failNext = 'after';
    await coordinator.end('a', producer, { committed: true, bump: true });
    expect(groups.pending.has('g', 5)).toBe(true);
    await settle();
    expect(groups.applied).toEqual([['g', [70]]]);
    expect(groups.pending.has('g', 5)).toBe(false);
  });

  it('stay pending when the answer to one doubt comes in a later one', async () => {
    const producer = await started();
    const staged = { groupId: 'g', offsets: [row(5, 70)], mode: 'implicit' } as const;
    let answer = () => {};
    const describe = store.describe.bind(store);
    store.describe = async (ids) => {
      const before = await describe(ids);
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return before;
    };
    store.failNext = 'after';
    await coordinator.addPartitions('a', producer, [1]);
    await clock.advance(1_000);
    // Asked in the first doubt, when nothing was staged; answered in the second, when something is.
    expect(await coordinator.addPartitions('a', producer, [2])).toBe(0);
    store.failNext = 'after';
    await coordinator.stageOffsets('a', producer, staged);
    answer();
    await clock.advance(0);
    expect(groups.pending.has('g', 5)).toBe(true);
    store.describe = describe;
    await clock.advance(1_000);
    expect(groups.pending.has('g', 5)).toBe(true);
    expect(admit('a', producer, 'implicit')).toEqual({ incarnation: 0, mode: 'implicit' });
  });

  it('are limited to transaction.max.groups groups', async () => {
    coordinator = await load({ 'transaction.max.groups': '1' });
    const producer = await started();
    expect(await coordinator.addOffsets('a', producer, 'g')).toBe(0);
    expect(await coordinator.addOffsets('a', producer, 'g')).toBe(0);
    expect(await coordinator.addOffsets('a', producer, 'h')).toBe(ErrorCode.INVALID_REQUEST);
  });
});

describe('time', () => {
  it('aborts what is past its timeout within a second, batches at the commit included', async () => {
    const producer = await started('a', 3_000);
    const batch = { ...producer, partitionId: 1, incarnation: 0, mode: 'implicit' } as const;
    expect(store.produce(batch, clock.now())).toBe(0);
    await clock.advance(3_000);
    expect(store.ended).toEqual([]);
    await clock.advance(1_001);
    expect(store.ended).toMatchObject([{ committed: false, markerEpoch: 1 }]);
    expect(admit('a', producer, 'implicit')).toBe(ErrorCode.INVALID_PRODUCER_EPOCH);
    expect(await metrics.render()).toMatch(/floe_transactions_ended_total\{reason="timeout"\} 1/);
  });

  it('asks again after the store has failed', async () => {
    await coordinator.addPartitions('a', await started('a', 1_000), [1]);
    store.failNext = 'before';
    await clock.advance(2_500);
    expect(store.ended).toHaveLength(0);
    await clock.advance(1_000);
    expect(store.ended).toHaveLength(1);
  });

  it('shows open transactions and the age of the oldest', async () => {
    await coordinator.addPartitions('a', await started('a'), [1]);
    await coordinator.addPartitions('b', await started('b'), [1]);
    await clock.advance(5_000);
    const text = await metrics.render();
    expect(text).toMatch(/floe_transactions_open 2/);
    expect(text).toMatch(/floe_transaction_oldest_seconds 5/);
    expect(text).toMatch(/floe_transactional_ids 2/);
  });

  it('forgets ids that were not used, an open transaction never', async () => {
    coordinator = await load({ 'transactional.id.expiration.ms': '7200000' });
    await started('idle');
    await coordinator.addPartitions('busy', await started('busy', 900_000), [1]);
    const settled = { committed: true, bump: false };
    await clock.advance(3_600_000 * 2 + 1);
    expect([...store.states.keys()]).toEqual(['busy']);
    const [state] = await coordinator.describe(['busy']);
    expect(state!.status).toBe('CompleteAbort');
    expect((await coordinator.end('idle', state!, settled)).errorCode).toBe(
      ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    );
  });
});

describe('requests', () => {
  it('that queue up share one metadata transaction', async () => {
    const producers = await Promise.all(['a', 'b', 'c'].map((id) => started(id)));
    store.calls.length = 0;
    const ends = producers.map((producer, n) =>
      coordinator.end('abc'[n]!, producer, { committed: false, bump: true }),
    );
    expect((await Promise.all(ends)).map(({ errorCode }) => errorCode)).toEqual([0, 0, 0]);
    expect(store.calls).toEqual([3]);
  });

  it('of an operator abort by producer id; nothing open is success', async () => {
    const producer = await started();
    await coordinator.addPartitions('a', producer, [1, 2]);
    expect(await coordinator.abort({ producerId: 4, producerEpoch: 0 })).toBe(0);
    expect(await coordinator.abort(producer)).toBe(0);
    expect(store.ended).toHaveLength(1);
    expect(await coordinator.abort(producer)).toBe(0);
    expect(store.ended).toHaveLength(1);
  });

  it('say whether partitions are in the transaction', async () => {
    const producer = await started();
    await coordinator.addPartitions('a', producer, [1]);
    expect(await coordinator.verifyPartitions('a', producer, [1, 2])).toEqual([
      0,
      ErrorCode.TRANSACTION_ABORTABLE,
    ]);
    expect(await coordinator.verifyPartitions('b', producer, [1])).toEqual([
      ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ]);
  });

  it('after the stop are NOT_COORDINATOR, those before it are finished', async () => {
    const producer = await started();
    const before = coordinator.addPartitions('a', producer, [1]);
    await coordinator.stop();
    expect(await before).toBe(0);
    expect(await coordinator.addPartitions('a', producer, [2])).toBe(ErrorCode.NOT_COORDINATOR);
    expect(clock.nextTimer()).toBeUndefined();
  });
});
