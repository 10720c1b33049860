// Transactional ids in memory: the model that the real store is held against, and a store that fails when told to.
// Batches reach it by `produce`, as a commit of the log would bring them. Not for: markers and readers (the log).
import { FloeError } from '../../base/error.ts';
import type { StoredOffset } from '../../metadata/groups.ts';
import { shardOf } from '../../metadata/shards.ts';
import {
  type EndedTransaction,
  isPastTimeout,
  type Producer,
  produceFault,
  type StagedOffsets,
  type StepContext,
  stagingIn,
  step,
  type TransactionAdmission,
  type TransactionOutcome,
  type TransactionRequest,
  type TransactionState,
  type TransactionsMetadata,
} from '../../metadata/transactions.ts';

export class MemoryTransactions implements TransactionsMetadata {
  readonly states = new Map<string, TransactionState>();
  /** Every end, in order. */
  readonly ended: EndedTransaction[] = [];
  /** What the ends have put into groups. */
  readonly groups = new Map<string, Map<number, StoredOffset>>();
  /** Sizes of the calls to `apply`. */
  readonly calls: number[] = [];
  /** `before`: the next call fails and does nothing; `after`: it does all and its answer is lost. */
  failNext: 'before' | 'after' | undefined;
  nextProducerId = 1_000;

  async load(shards?: readonly number[]) {
    return this.#within(shards).map((state) => structuredClone(state));
  }

  #within(shards: readonly number[] | undefined): TransactionState[] {
    const all = [...this.states.values()];
    return shards === undefined
      ? all
      : all.filter(({ transactionalId }) => shards.includes(shardOf(transactionalId)));
  }

  async apply(requests: readonly TransactionRequest[], nowMs: number) {
    this.calls.push(requests.length);
    const failure = this.failNext;
    this.failNext = undefined;
    if (failure === 'before') throw new FloeError('unavailable', 'the store is away');
    const outcomes = requests.map((request) => this.#one(request, nowMs));
    if (failure === 'after') throw new FloeError('timeout', 'the answer was lost');
    // As across threads: nothing is shared.
    return structuredClone(outcomes);
  }

  async describe(transactionalIds: readonly string[]) {
    return transactionalIds.map((id) => structuredClone(this.states.get(id)));
  }

  async byProducer(producerId: number) {
    const found = [...this.states.values()].find((state) => state.producerId === producerId);
    return structuredClone(found);
  }

  async open(nowMs: number, limit: number, shards?: readonly number[]) {
    const open = this.#within(shards).filter(({ status }) => status === 'Ongoing');
    const starts = open.map(({ startMs }) => startMs);
    const late = open.filter((state) => isPastTimeout(state, nowMs)).slice(0, limit);
    return {
      count: open.length,
      oldestStartMs: starts.length === 0 ? -1 : Math.min(...starts),
      pastTimeout: late.map(({ transactionalId }) => transactionalId),
    };
  }

  async unused(unusedSinceMs: number, limit: number, shards?: readonly number[]) {
    return this.#within(shards)
      .filter(({ status, updateMs }) => status !== 'Ongoing' && updateMs <= unusedSinceMs)
      .slice(0, limit)
      .map(({ transactionalId }) => transactionalId);
  }

  async describeProducers(partitionIds: readonly number[]) {
    return partitionIds.map((id) => (id < 0 ? undefined : []));
  }

  async staging(groupShards: readonly number[]) {
    const ongoing = [...this.states.values()].filter(({ status }) => status === 'Ongoing');
    return stagingIn(ongoing, groupShards);
  }

  /** As `metadata.groups.offsets`. */
  offsets = async (groupIds: readonly string[]) =>
    groupIds.map((groupId) => [...(this.groups.get(groupId)?.values() ?? [])]);

  /** A batch at its commit. Returns its error code. */
  produce(batch: Producer & TransactionAdmission & { partitionId: number }, nowMs: number): number {
    const state = [...this.states.values()].find((one) => one.producerId === batch.producerId);
    const fault = produceFault(state, batch);
    if (fault !== 0 || state === undefined) return fault;
    const { transactionalId } = state;
    const request = { transactionalId, event: { type: 'produce', ...batch } } as const;
    return this.#one(request, nowMs).errorCode;
  }

  #one({ transactionalId, event }: TransactionRequest, nowMs: number): TransactionOutcome {
    const context: StepContext = { nowMs, newProducerId: () => this.nextProducerId++ };
    const before = this.states.get(transactionalId);
    const { errorCode, next, ended } = step(transactionalId, before, event, context);
    if (next?.status === 'Dead') this.states.delete(transactionalId);
    else if (next !== undefined) this.states.set(transactionalId, next);
    if (ended === undefined) return { errorCode, state: next };
    this.ended.push(ended);
    this.#applyOffsets(ended.offsets);
    return { errorCode, state: next, ended, applied: ended.offsets };
  }

  #applyOffsets(offsets: StagedOffsets): void {
    for (const [groupId, byPartition] of offsets) {
      const group = this.groups.get(groupId) ?? new Map<number, StoredOffset>();
      for (const [partitionId, offset] of byPartition) group.set(partitionId, offset);
      this.groups.set(groupId, group);
    }
  }
}
