// Index entries as the read side sees them: columns that may come from a packed index, from the index cache or
// from a test, and segments of them that lie in one object. Nothing here copies an index.
import { isMarker, type Marker, type PackedIndex } from '../../metadata/packed-index.ts';

/** The columns of an index that a read needs; element n of each is entry n. */
export interface EntryColumns {
  readonly baseOffsets: ArrayLike<number>;
  readonly offsetSpans: ArrayLike<number>;
  readonly positions: ArrayLike<number>;
  readonly lengths: ArrayLike<number>;
  readonly blockPositions: ArrayLike<number>;
  readonly maxTimestamps: ArrayLike<number>;
  /** EntryKind of metadata/packed-index.ts. */
  readonly kinds: ArrayLike<number>;
  /** The marker that entry n is, where `kinds` says so. */
  readonly marker?: (n: number) => Marker;
}

/** An object as a reader addresses it. */
export interface ObjectRef {
  readonly objectId: number;
  readonly key: string;
  /** What its block headers say: a recycled file's, 0 in objects of a store. */
  readonly generation: number;
}

/** Entries `[start, end)` of one partition in one object, by ascending offset. */
export interface Segment {
  readonly object: ObjectRef;
  readonly columns: EntryColumns;
  readonly start: number;
  readonly end: number;
}

/** Offset after the last record of entry `n`. */
export function entryEnd(columns: EntryColumns, n: number): number {
  return columns.baseOffsets[n]! + columns.offsetSpans[n]!;
}

/** First byte that a read of entry `n` needs: the header of its block, to check what was read. */
export function entryStartByte(columns: EntryColumns, n: number): number {
  return columns.blockPositions[n]!;
}

/** Position after the last byte of entry `n`. */
export function entryEndByte(columns: EntryColumns, n: number): number {
  return columns.positions[n]! + columns.lengths[n]!;
}

/** The first entry of `[start, end)` that has bytes, or `end`: markers have none. */
export function withBytes(columns: EntryColumns, start: number, end: number): number {
  let n = start;
  while (n < end && isMarker(columns.kinds[n]!)) n += 1;
  return n;
}

/** First entry of `[start, end)` that ends above `offset`, or `end`. */
export function entryAt(columns: EntryColumns, range: readonly [number, number], offset: number) {
  let [low, high] = range;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (entryEnd(columns, middle) > offset) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A segment of the entries `[start, end)` of a packed index. */
export function segmentOf(
  object: ObjectRef,
  index: PackedIndex,
  [start, end]: readonly [number, number],
): Segment {
  return { object, columns: index, start, end };
}
