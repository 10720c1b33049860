// What the sequencer's process keeps in memory of each partition, and the draft in which the flushes of one database
// transaction see it. Not for: rows (log-rows.ts), writing them (log.ts).
import type { Decision, LogState, OpenRanges, PartitionTail } from '../decide.ts';
import type { PartitionLog } from '../log.ts';
import { firstOpen } from '../markers.ts';
import type { PackedIndex } from '../packed-index.ts';
import type { Sequences } from '../sequences.ts';
import type { TransactionState } from '../transactions.ts';
import type { ProducerAges } from './producers.ts';

/** A partition as of the newest commit. */
export interface MemoryPartition {
  logStart: number;
  nextOffset: number;
  maxTimestamp: number;
  open: OpenRanges | undefined;
  sizeBytes: number;
  /** First commit that the stored row lacks; 0 when it lacks none. */
  dirtySince: number;
  readonly sequences: Map<number, Sequences>;
  /** Producers whose stored state is older than memory's. */
  readonly dirtyProducers: Set<number>;
}

/** What one commit changes. */
export interface Change {
  readonly decision: Pick<Decision, 'partitions' | 'sequences'> &
    Partial<Pick<Decision, 'transactions'>>;
  readonly index: PackedIndex;
  readonly commitNumber: number;
}

/** What a commit of batches needs of transactional ids; `TransactionStates` implements it. */
export interface TransactionStore {
  byProducer(producerId: number): TransactionState | undefined;
  /** Part of the present database transaction. */
  put(state: TransactionState): void;
}

/** The state as the flushes of one transaction see it: memory, overlaid by what those before changed. */
export class Draft implements LogState {
  readonly changes: Change[] = [];
  readonly #partitions: ReadonlyMap<number, MemoryPartition>;
  readonly #ages: ProducerAges;
  readonly #transactions: TransactionStore;
  #nowMs = 0;

  constructor(
    partitions: ReadonlyMap<number, MemoryPartition>,
    ages: ProducerAges,
    transactions: TransactionStore,
  ) {
    this.#partitions = partitions;
    this.#ages = ages;
    this.#transactions = transactions;
  }

  at(nowMs: number): this {
    this.#nowMs = nowMs;
    return this;
  }

  add(change: Change): void {
    this.changes.push(change);
  }

  partition(partitionId: number): PartitionTail | undefined {
    for (let n = this.changes.length - 1; n >= 0; n -= 1) {
      const tail = this.changes[n]!.decision.partitions.get(partitionId);
      if (tail !== undefined) return tail;
    }
    return this.#partitions.get(partitionId);
  }

  sequences(partitionId: number, producerId: number): Sequences | undefined {
    for (let n = this.changes.length - 1; n >= 0; n -= 1) {
      const sequences = this.changes[n]!.decision.sequences.get(partitionId)?.get(producerId);
      if (sequences !== undefined) return sequences;
    }
    return this.#partitions.get(partitionId)?.sequences.get(producerId);
  }

  mayHaveExpired(producerId: number): boolean {
    return this.#ages.mayHaveExpired(producerId, this.#nowMs);
  }

  transaction(producerId: number): TransactionState | undefined {
    for (let n = this.changes.length - 1; n >= 0; n -= 1) {
      const state = this.changes[n]!.decision.transactions?.get(producerId);
      if (state !== undefined) return state;
    }
    return this.#transactions.byProducer(producerId);
  }
}

/** A partition that nothing was written to. */
export function emptyPartition(): MemoryPartition {
  return {
    logStart: 0,
    nextOffset: 0,
    maxTimestamp: -1,
    open: undefined,
    sizeBytes: 0,
    dirtySince: 0,
    sequences: new Map(),
    dirtyProducers: new Set(),
  };
}

/** A partition as others see it. */
export function toPartitionLog(partitionId: number, partition: MemoryPartition): PartitionLog {
  const { logStart, nextOffset, open } = partition;
  const stable = open === undefined ? nextOffset : firstOpen(open, nextOffset);
  return {
    partitionId,
    logStartOffset: logStart,
    highWatermark: nextOffset,
    lastStableOffset: Math.max(logStart, stable),
    maxTimestamp: partition.maxTimestamp,
    sizeBytes: partition.sizeBytes,
  };
}
