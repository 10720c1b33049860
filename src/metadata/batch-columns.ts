// The batches of a flush as columns: what the front knows about them, without their bytes.
// One buffer, so that it crosses a thread by transfer; 64 bytes a batch. Filled on the produce path, hence no objects;
// the two columns of transactions are written for batches of transactions only.
import { assert } from '../base/assert.ts';
import type { TransactionMode } from './transactions.ts';

/** Element n of each column is batch n, in order of admission. */
export interface BatchColumns {
  readonly count: number;
  /** −1 without idempotence. */
  readonly producerIds: Float64Array;
  /** Milliseconds, −1 if none. */
  readonly maxTimestamps: Float64Array;
  /** Of the producer's transaction, as noted at admission; means nothing unless `transactions` is set. */
  readonly incarnations: Float64Array;
  readonly partitionIds: Uint32Array;
  /** Where the batch lies in the slab. */
  readonly slabOffsets: Uint32Array;
  readonly lengths: Uint32Array;
  readonly recordCounts: Uint32Array;
  /** The batch takes `lastOffsetDelta + 1` offsets. */
  readonly lastOffsetDeltas: Int32Array;
  readonly producerEpochs: Int32Array;
  readonly baseSequences: Int32Array;
  /** Where the batch lies in the object; known once the flush is laid out. */
  readonly positions: Uint32Array;
  /** Where the header of its block lies in the object. */
  readonly blockPositions: Uint32Array;
  /** 0 outside of transactions, else {@link transactionCode}. */
  readonly transactions: Uint32Array;
}

/** Bytes of one batch over all columns. */
const BATCH_COLUMN_BYTES = 3 * 8 + 10 * 4;

const MODES: readonly TransactionMode[] = ['verify', 'verify-abortable', 'implicit'];

/** How the column `transactions` says that a batch is part of a transaction, and how it is treated outside of it. */
export function transactionCode(mode: TransactionMode): number {
  return MODES.indexOf(mode) + 1;
}

/** The inverse of {@link transactionCode}; undefined for a batch outside of transactions. */
export function transactionMode(code: number): TransactionMode | undefined {
  return MODES[code - 1];
}

/** Columns for up to `capacity` batches over one fresh buffer. */
export function allocateColumns(capacity: number): BatchColumns {
  return viewColumns(new ArrayBuffer(capacity * BATCH_COLUMN_BYTES), capacity, capacity);
}

/** Columns over a buffer that was laid out for `capacity` batches, `count` of them used. */
export function viewColumns(
  buffer: ArrayBufferLike,
  capacity: number,
  count: number,
): BatchColumns {
  assert(buffer.byteLength >= capacity * BATCH_COLUMN_BYTES, 'batch columns fit their buffer');
  let at = 0;
  const doubles = () => {
    const column = new Float64Array(buffer, at, count);
    at += 8 * capacity;
    return column;
  };
  const words = () => {
    const column = new Uint32Array(buffer, at, count);
    at += 4 * capacity;
    return column;
  };
  const integers = () => {
    const column = new Int32Array(buffer, at, count);
    at += 4 * capacity;
    return column;
  };
  return {
    count,
    producerIds: doubles(),
    maxTimestamps: doubles(),
    incarnations: doubles(),
    partitionIds: words(),
    slabOffsets: words(),
    lengths: words(),
    recordCounts: words(),
    lastOffsetDeltas: integers(),
    producerEpochs: integers(),
    baseSequences: integers(),
    positions: words(),
    blockPositions: words(),
    transactions: words(),
  };
}

/**
 * Ordinals of the batches grouped by ascending partition id, in order of admission within each.
 * Stable, so sequence chains and acknowledgement order survive the grouping.
 */
export function groupByPartition(batches: BatchColumns): Uint32Array {
  const { count, partitionIds } = batches;
  // Partition id and ordinal in one double sort natively and exactly: ids < 2^32, ordinals < 2^20.
  assert(count <= 2 ** 20, 'a flush has at most 2^20 batches');
  const keys = new Float64Array(count);
  for (let n = 0; n < count; n += 1) keys[n] = partitionIds[n]! * 2 ** 20 + n;
  keys.sort();
  const order = new Uint32Array(count);
  for (let n = 0; n < count; n += 1) order[n] = keys[n]! % 2 ** 20;
  return order;
}
