// The sequencer's decision: which batches of a flush are accepted, at which offsets, and which are duplicates
// or refused. Pure and shared by every store; a store reads the state before it and writes the changes after it.
// Rules: design "Sequencer" (L2, L4, L5) and Kafka's idempotence (KIP-98, KIP-360, KAFKA-15591).
// Room for transactions: a batch's (producer id, epoch) is checked in `sequenceError`; an incarnation column and
// a transaction look-up in LogState join it there.
import { ErrorCode } from '../protocol/errors.ts';
import { type BatchColumns, groupByPartition } from './batch-columns.ts';
import {
  appendSequence,
  continuesSequence,
  duplicateOf,
  lastSequence,
  newSequences,
  type Sequences,
  sequencesEpoch,
} from './sequences.ts';

/** The end of a partition's log. */
export interface PartitionTail {
  /** The offset that the next accepted batch gets: the high watermark. */
  readonly nextOffset: number;
  /** Largest timestamp so far, −1 if none. */
  readonly maxTimestamp: number;
}

/** What `decide` may ask of the store, read under the locks of the commit. */
export interface LogState {
  /** Undefined for a partition that doesn't exist (any more). */
  partition(partitionId: number): PartitionTail | undefined;
  /** The last batches of a producer in a partition. */
  sequences(partitionId: number, producerId: number): Sequences | undefined;
  /** True when a producer without state may have had one that expired (old id, or of another cluster). */
  mayHaveExpired(producerId: number): boolean;
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
}

/**
 * Decides the batches of one flush, in order of admission within each partition; chains and duplicates resolve
 * inside the flush too. `nowMs` marks when a producer was last active. `state` is left as it is.
 */
export function decide(state: LogState, batches: BatchColumns, nowMs: number): Decision {
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
  };
  for (let start = 0; start < count; ) {
    const partitionId = batches.partitionIds[order[start]!]!;
    let end = start + 1;
    while (end < count && batches.partitionIds[order[end]!] === partitionId) end += 1;
    decidePartition(
      { state, batches, nowMs, partitionId, ordinals: order.subarray(start, end) },
      result,
    );
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
}

interface Draft extends Decision {
  readonly partitions: Map<number, PartitionTail>;
  readonly sequences: Map<number, Map<number, Sequences>>;
}

function decidePartition(input: PartitionBatches, result: Draft): void {
  const { state, batches, partitionId, ordinals } = input;
  const tail = state.partition(partitionId);
  if (tail === undefined) {
    for (const n of ordinals) result.errorCodes[n] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
    return;
  }
  const producers = new Map<number, Sequences>();
  let { nextOffset, maxTimestamp } = tail;
  for (const n of ordinals) {
    if (batches.producerIds[n]! >= 0 && !admitSequence(input, producers, result, n, nextOffset))
      continue;
    if (batches.maxTimestamps[n]! > maxTimestamp) maxTimestamp = batches.maxTimestamps[n]!;
    result.baseOffsets[n] = nextOffset;
    result.runningMax[n] = maxTimestamp;
    nextOffset += batches.lastOffsetDeltas[n]! + 1;
  }
  if (nextOffset !== tail.nextOffset) {
    result.partitions.set(partitionId, { nextOffset, maxTimestamp });
    if (producers.size > 0) result.sequences.set(partitionId, producers);
  }
}

/** True when batch `n` of an idempotent producer is accepted at `offset`; else its outcome is in `result`. */
function admitSequence(
  { state, batches, partitionId, nowMs }: PartitionBatches,
  producers: Map<number, Sequences>,
  result: Draft,
  n: number,
  offset: number,
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
  const refusal = sequenceError(known, epoch, first, state.mayHaveExpired(producerId));
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
