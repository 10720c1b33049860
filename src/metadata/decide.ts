// The sequencer's decision: which batches of a flush are accepted, at which offsets, and which are duplicates
// or refused. Pure and shared by every store; a store reads the state before it and writes the changes after it.
// Rules: design "Sequencer" (L2, L4, L5) and "Transactions" (L6), Kafka's idempotence (KIP-98, KIP-360, KAFKA-15591).
// Not for: the end of a transaction (markers.ts), what may happen to one (transactions.ts).
import { assert } from '../base/assert.ts';
import { ErrorCode } from '../protocol/errors.ts';
import { type BatchColumns, groupByPartition, transactionMode } from './batch-columns.ts';
import {
  appendSequence,
  continuesSequence,
  duplicateOf,
  lastSequence,
  newSequences,
  type Sequences,
  sequencesEpoch,
} from './sequences.ts';
import { produceFault, step, type TransactionMode, type TransactionState } from './transactions.ts';

/** First offsets of the transactions that are open in a partition by producer id, ascending by offset. */
export type OpenRanges = ReadonlyMap<number, number>;

/** The end of a partition's log. */
export interface PartitionTail {
  /** The offset that the next accepted batch gets: the high watermark. */
  readonly nextOffset: number;
  /** Largest timestamp so far, −1 if none. */
  readonly maxTimestamp: number;
  /** Undefined where none is. */
  readonly open?: OpenRanges | undefined;
}

/** What `decide` may ask of the store, read under the locks of the commit. */
export interface LogState {
  /** Undefined for a partition that doesn't exist (any more). */
  partition(partitionId: number): PartitionTail | undefined;
  /** The last batches of a producer in a partition. */
  sequences(partitionId: number, producerId: number): Sequences | undefined;
  /** True when a producer without state may have had one that expired (old id, or of another cluster). */
  mayHaveExpired(producerId: number): boolean;
  /** The transactional id that writes under this producer id. */
  transaction(producerId: number): TransactionState | undefined;
}

/** A transaction's first batch in a partition. */
export interface BegunTransaction {
  readonly partitionId: number;
  readonly producerId: number;
  readonly firstOffset: number;
}

/** Element n of each column belongs to batch n of the flush. */
export interface Decision {
  readonly errorCodes: Int16Array;
  /** −1 where refused; the original offset of a duplicate. */
  readonly baseOffsets: Float64Array;
  readonly duplicates: Uint8Array;
  /** The partition's largest timestamp up to and including the batch, where accepted. */
  readonly runningMax: Float64Array;
  /** Ordinals grouped by partition id ascending, in order of admission within. */
  readonly order: Uint32Array;
  /** New tails of the partitions that took a batch. */
  readonly partitions: ReadonlyMap<number, PartitionTail>;
  /** New sequences by partition id and producer id. */
  readonly sequences: ReadonlyMap<number, ReadonlyMap<number, Sequences>>;
  /** New states by producer id, of transactions that a batch began or took into a partition (KIP-890). */
  readonly transactions: ReadonlyMap<number, TransactionState>;
  readonly begun: readonly BegunTransaction[];
}

/**
 * Decides the batches of one flush, in order of admission within each partition; chains and duplicates resolve
 * inside the flush too. `nowMs` marks when a producer was last active. `state` is left as it is.
 * `refusals`: error codes of batches that were refused before, 0 for the others.
 */
export function decide(
  state: LogState,
  batches: BatchColumns,
  nowMs: number,
  refusals?: Int16Array,
): Decision {
  const { count } = batches;
  const order = groupByPartition(batches);
  const result = {
    errorCodes: new Int16Array(count),
    baseOffsets: new Float64Array(count).fill(-1),
    duplicates: new Uint8Array(count),
    runningMax: new Float64Array(count).fill(-1),
    order,
    partitions: new Map<number, PartitionTail>(),
    sequences: new Map<number, Map<number, Sequences>>(),
    transactions: new Map<number, TransactionState>(),
    begun: [],
  };
  for (let start = 0; start < count; ) {
    const partitionId = batches.partitionIds[order[start]!]!;
    let end = start + 1;
    while (end < count && batches.partitionIds[order[end]!] === partitionId) end += 1;
    const ordinals = order.subarray(start, end);
    decidePartition({ state, batches, nowMs, partitionId, ordinals, refusals }, result);
    start = end;
  }
  return result;
}

interface PartitionBatches {
  readonly state: LogState;
  readonly batches: BatchColumns;
  readonly nowMs: number;
  readonly partitionId: number;
  readonly ordinals: Uint32Array;
  readonly refusals: Int16Array | undefined;
}

interface Draft extends Decision {
  readonly partitions: Map<number, PartitionTail>;
  readonly sequences: Map<number, Map<number, Sequences>>;
  readonly transactions: Map<number, TransactionState>;
  readonly begun: BegunTransaction[];
}

/** One partition while its batches are gone through. */
interface PartitionDraft {
  nextOffset: number;
  maxTimestamp: number;
  open: OpenRanges | undefined;
  /** `open` is a copy of this draft's own. */
  opened: boolean;
  readonly producers: Map<number, Sequences>;
}

function decidePartition(input: PartitionBatches, result: Draft): void {
  const { state, batches, partitionId, ordinals, refusals } = input;
  const tail = state.partition(partitionId);
  if (tail === undefined) {
    for (const n of ordinals) result.errorCodes[n] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    return;
  }
  const draft: PartitionDraft = {
    nextOffset: tail.nextOffset,
    maxTimestamp: tail.maxTimestamp,
    open: tail.open,
    opened: false,
    producers: new Map(),
  };
  for (const n of ordinals) {
    const refusal = refusals?.[n] ?? 0;
    if (refusal !== 0) {
      result.errorCodes[n] = refusal;
      continue;
    }
    if (batches.producerIds[n]! >= 0 && !admitProducer(input, draft, result, n)) continue;
    const timestamp = batches.maxTimestamps[n]!;
    if (timestamp > draft.maxTimestamp) draft.maxTimestamp = timestamp;
    result.baseOffsets[n] = draft.nextOffset;
    result.runningMax[n] = draft.maxTimestamp;
    draft.nextOffset += batches.lastOffsetDeltas[n]! + 1;
  }
  if (draft.nextOffset !== tail.nextOffset) {
    const { nextOffset, maxTimestamp, open, producers } = draft;
    result.partitions.set(partitionId, { nextOffset, maxTimestamp, open });
    if (producers.size > 0) result.sequences.set(partitionId, producers);
  }
}

/** True when batch `n`, which has a producer id, is accepted; else its outcome is in `result`. */
function admitProducer(
  input: PartitionBatches,
  draft: PartitionDraft,
  result: Draft,
  n: number,
): boolean {
  const code = input.batches.transactions[n]!;
  const mode = code === 0 ? undefined : transactionMode(code);
  const fault = mode === undefined ? ErrorCode.NONE : transactionFault(input, result, n, mode);
  if (fault !== ErrorCode.NONE) {
    result.errorCodes[n] = fault;
    return false;
  }
  if (!admitSequence(input, draft, result, n)) return false;
  if (mode !== undefined) join(input, draft, result, n);
  return true;
}

/** Of the flush so far: earlier batches of it may have taken the transaction into this partition. */
function transactionOf({ state }: PartitionBatches, result: Draft, producerId: number) {
  return result.transactions.get(producerId) ?? state.transaction(producerId);
}

/** L6: the error code of a batch that isn't, or is no longer, part of its producer's transaction. */
function transactionFault(
  input: PartitionBatches,
  result: Draft,
  n: number,
  mode: TransactionMode,
): number {
  const { batches, partitionId } = input;
  const producerId = batches.producerIds[n]!;
  return produceFault(transactionOf(input, result, producerId), {
    producerId,
    producerEpoch: batches.producerEpochs[n]!,
    partitionId,
    incarnation: batches.incarnations[n]!,
    mode,
  });
}

/** Takes an accepted batch's transaction into the partition, where it isn't yet. */
function join(input: PartitionBatches, draft: PartitionDraft, result: Draft, n: number): void {
  const { batches, partitionId } = input;
  const producerId = batches.producerIds[n]!;
  const before = transactionOf(input, result, producerId)!;
  if (!before.partitions.has(partitionId)) {
    const own = result.transactions.get(producerId);
    // Its set is of our making: a copy for each of a thousand partitions would take longer than all the rest.
    if (own !== undefined) (own.partitions as Set<number>).add(partitionId);
    else result.transactions.set(producerId, joined(input, before, n));
  }
  if (draft.open?.has(producerId) === true) return;
  // Offsets ascend, so the newest is the last. One copy for all that a flush begins.
  const open = draft.opened ? (draft.open as Map<number, number>) : new Map(draft.open);
  draft.open = open.set(producerId, draft.nextOffset);
  draft.opened = true;
  result.begun.push({ partitionId, producerId, firstOffset: draft.nextOffset });
}

function joined(
  { batches, partitionId, nowMs }: PartitionBatches,
  before: TransactionState,
  n: number,
): TransactionState {
  const event = {
    type: 'produce',
    producerId: batches.producerIds[n]!,
    producerEpoch: batches.producerEpochs[n]!,
    partitionId,
    incarnation: batches.incarnations[n]!,
    mode: 'implicit',
  } as const;
  const context = { nowMs, newProducerId: noProducerId };
  const { errorCode, next } = step(before.transactionalId, before, event, context);
  assert(errorCode === ErrorCode.NONE && next !== undefined, 'L6: an accepted batch may join');
  return next;
}

const noProducerId = (): never => {
  throw new Error('a batch takes no new producer id');
};

/** True when batch `n` of an idempotent producer is accepted as the partition's next; else its outcome is in `result`. */
function admitSequence(
  { state, batches, partitionId, nowMs }: PartitionBatches,
  { producers, nextOffset: offset, open }: PartitionDraft,
  result: Draft,
  n: number,
): boolean {
  const producerId = batches.producerIds[n]!;
  const epoch = batches.producerEpochs[n]!;
  const first = batches.baseSequences[n]!;
  const last = lastSequence(first, batches.lastOffsetDeltas[n]!);
  const drafted = producers.get(producerId);
  const known = drafted ?? state.sequences(partitionId, producerId);
  const original = known === undefined ? -1 : duplicateOf(known, epoch, first, last);
  if (original >= 0) {
    result.duplicates[n] = 1;
    result.baseOffsets[n] = original;
    return false;
  }
  const outside = open?.has(producerId) === true && batches.transactions[n] === 0;
  const refusal =
    sequenceError(known, epoch, first, state.mayHaveExpired(producerId)) ||
    // A producer's transaction is open here and this batch isn't part of it.
    (outside ? ErrorCode.INVALID_TXN_STATE : ErrorCode.NONE);
  if (refusal !== ErrorCode.NONE) {
    result.errorCodes[n] = refusal;
    return false;
  }
  const sequences = drafted ?? (known === undefined ? newSequences() : known.slice());
  appendSequence(sequences, { epoch, first, last, offset, nowMs });
  producers.set(producerId, sequences);
  return true;
}

function sequenceError(
  known: Sequences | undefined,
  epoch: number,
  first: number,
  mayHaveExpired: boolean,
): number {
  if (known === undefined)
    return first === 0 || mayHaveExpired ? ErrorCode.NONE : ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER;
  const current = sequencesEpoch(known);
  if (epoch < current) return ErrorCode.INVALID_PRODUCER_EPOCH;
  // A new epoch starts over (KIP-360).
  if (epoch > current) return first === 0 ? ErrorCode.NONE : ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER;
  return continuesSequence(known, first) ? ErrorCode.NONE : ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER;
}
