// The packed index: where the accepted batches of some object lie, as one compact block of bytes.
// An entry is a *run* of adjacent accepted batches of one partition; entries are sorted by (partition, offset).
// Columns of fixed width in one buffer: opening it costs nothing, a look-up is a binary search.
// One codec serves the row of a flush, the footer of a sealed object and that of a stream object.
// Not for: which offsets are visible (watermarks) and what an object's bytes look like (storage/log/wal-format.ts).
import { endianness } from 'node:os';
import { assert } from '../base/assert.ts';
import { FloeError } from '../base/error.ts';

/** Columns of equal length `count`; entry n is the n-th element of each. */
export interface PackedIndex {
  readonly count: number;
  /** Offset of the run's first record. */
  readonly baseOffsets: Float64Array;
  /** Running maximum timestamp (ms, −1 if none) of the *partition* up to the end of this run: never descends. */
  readonly maxTimestamps: Float64Array;
  readonly partitionIds: Uint32Array;
  /** Offsets the run takes: its end is `baseOffset + offsetSpan`. */
  readonly offsetSpans: Uint32Array;
  /** First byte of the run's first batch within the object. */
  readonly positions: Uint32Array;
  /** Bytes of the run's batches, end to end. */
  readonly lengths: Uint32Array;
  readonly recordCounts: Uint32Array;
  readonly batchCounts: Uint32Array;
  /** Where the header of the block that holds the run begins (≤ position), to check bytes after a read. */
  readonly blockPositions: Uint32Array;
  /** 0: record batches. 1 and 2 are kept for the markers of committed and aborted transactions, which hold no bytes. */
  readonly kinds: Uint8Array;
  /** All columns as they are stored. */
  readonly bytes: Uint8Array;
}

const VERSION = 1;
const HEADER_BYTES = 8;
const ENTRY_FIXED_BYTES = 2 * 8 + 7 * 4;

assert(endianness() === 'LE', 'stored columns are little-endian, so is every platform we run on');

/** Bytes that an index of `count` entries takes. */
function packedIndexBytes(count: number): number {
  return HEADER_BYTES + count * ENTRY_FIXED_BYTES + Math.ceil(count / 8) * 8;
}

/** A zeroed index for `count` entries, to be filled in. */
export function allocateIndex(count: number): PackedIndex {
  const bytes = new Uint8Array(packedIndexBytes(count));
  const header = new Uint32Array(bytes.buffer, 0, 2);
  header[0] = VERSION;
  header[1] = count;
  return openIndex(bytes);
}

/**
 * The columns of stored bytes, as views (copied first only when unaligned).
 * @throws FloeError `corrupt` when the bytes are no index.
 */
export function openIndex(stored: Uint8Array): PackedIndex {
  const bytes = stored.byteOffset % 8 === 0 ? stored : stored.slice();
  if (bytes.length < HEADER_BYTES)
    throw new FloeError('corrupt', `a packed index of ${bytes.length} bytes`);
  const { buffer, byteOffset } = bytes;
  const header = new Uint32Array(buffer, byteOffset, 2);
  const count = header[1]!;
  if (header[0] !== VERSION || bytes.length !== packedIndexBytes(count)) {
    throw new FloeError(
      'corrupt',
      `a packed index of version ${header[0]} with ${count} entries in ${bytes.length} bytes`,
    );
  }
  let at = byteOffset + HEADER_BYTES;
  const doubles = () => {
    const column = new Float64Array(buffer, at, count);
    at += 8 * count;
    return column;
  };
  const words = () => {
    const column = new Uint32Array(buffer, at, count);
    at += 4 * count;
    return column;
  };
  return {
    count,
    baseOffsets: doubles(),
    maxTimestamps: doubles(),
    partitionIds: words(),
    offsetSpans: words(),
    positions: words(),
    lengths: words(),
    recordCounts: words(),
    batchCounts: words(),
    blockPositions: words(),
    kinds: new Uint8Array(buffer, at, count),
    bytes,
  };
}

/** Offset after the last record of entry `n`. */
export function endOffset(index: PackedIndex, n: number): number {
  return index.baseOffsets[n]! + index.offsetSpans[n]!;
}

/** The entries of one partition: `[start, end)`, empty when it has none. */
export function entriesOf(index: PackedIndex, partitionId: number): readonly [number, number] {
  const start = lowerBound(index, partitionId);
  let end = start;
  if (index.partitionIds[start] === partitionId) end = lowerBound(index, partitionId + 1);
  return [start, end];
}

/** First entry of `partitionId` whose running maximum timestamp is at least `timestampMs`, or −1. */
export function findTime(index: PackedIndex, partitionId: number, timestampMs: number): number {
  const [start, end] = entriesOf(index, partitionId);
  const found = firstIn(start, end, (n) => index.maxTimestamps[n]! >= timestampMs);
  return found === end ? -1 : found;
}

function lowerBound(index: PackedIndex, partitionId: number): number {
  return firstIn(0, index.count, (n) => index.partitionIds[n]! >= partitionId);
}

/** The first n of [low, high) for which the monotone `holds` is true, or `high`. */
function firstIn(low: number, high: number, holds: (n: number) => boolean): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The distinct partition ids of an index, ascending. */
export function partitionsIn(index: PackedIndex): number[] {
  const found: number[] = [];
  for (let n = 0; n < index.count; n += 1) {
    if (n === 0 || index.partitionIds[n] !== index.partitionIds[n - 1])
      found.push(index.partitionIds[n]!);
  }
  return found;
}

/** Copies entry `m` of `from` to entry `n` of `to`. */
export function copyEntry(to: PackedIndex, n: number, from: PackedIndex, m: number): void {
  to.baseOffsets[n] = from.baseOffsets[m]!;
  to.maxTimestamps[n] = from.maxTimestamps[m]!;
  to.partitionIds[n] = from.partitionIds[m]!;
  to.offsetSpans[n] = from.offsetSpans[m]!;
  to.positions[n] = from.positions[m]!;
  to.lengths[n] = from.lengths[m]!;
  to.recordCounts[n] = from.recordCounts[m]!;
  to.batchCounts[n] = from.batchCounts[m]!;
  to.blockPositions[n] = from.blockPositions[m]!;
  to.kinds[n] = from.kinds[m]!;
}

/** A shallow view of entries `[start, end)` as plain records: for tools and tests, not for hot paths. */
export function describeEntries(index: PackedIndex, start = 0, end = index.count) {
  return Array.from({ length: end - start }, (_, i) => ({
    partitionId: index.partitionIds[start + i]!,
    baseOffset: index.baseOffsets[start + i]!,
    endOffset: endOffset(index, start + i),
    position: index.positions[start + i]!,
    length: index.lengths[start + i]!,
    recordCount: index.recordCounts[start + i]!,
    batchCount: index.batchCounts[start + i]!,
    blockPosition: index.blockPositions[start + i]!,
    maxTimestamp: index.maxTimestamps[start + i]!,
    kind: index.kinds[start + i]!,
  }));
}
