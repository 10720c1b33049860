// The packed index: where the accepted batches of some object lie, as one compact block of bytes.
// An entry is a *run* of adjacent accepted batches of one partition, or the marker that ended a transaction there, which
// takes one offset and no bytes. Entries are sorted by (partition, offset).
// Columns of fixed width in one buffer: opening it costs nothing, a look-up is a binary search.
// One codec serves the row of a flush, the footer of a sealed object and that of a stream object.
// Not for: which offsets are visible (watermarks) and what an object's bytes look like (storage/log/wal-format.ts).
import { endianness } from 'node:os';
import { assert } from '../base/assert.ts';
import { FloeError } from '../base/error.ts';

/**
 * What an entry is: raw batches without gaps between them, the end of a transaction, or (compaction by key) batches
 * whose headers say their base offsets, with gaps where others were.
 */
export const EntryKind = { BATCHES: 0, COMMIT: 1, ABORT: 2, PLACED: 3 } as const;

/** True for the end of a transaction, which has no bytes. */
export const isMarker = (kind: number): boolean =>
  kind === EntryKind.COMMIT || kind === EntryKind.ABORT;

/** The end of a transaction in one partition: what its control batch is made of, the same at every fetch. */
export interface Marker {
  readonly committed: boolean;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly coordinatorEpoch: number;
  /** Milliseconds. */
  readonly timestampMs: number;
}

/** What markers have beyond the columns of entries: element m belongs to the marker whose position is m. */
export interface MarkerColumns {
  readonly producerIds: Float64Array;
  readonly timestamps: Float64Array;
  readonly producerEpochs: Int32Array;
  readonly coordinatorEpochs: Int32Array;
  /** How many {@link setMarker} has filled. */
  taken: number;
}

/**
 * From which offset on records of a partition came by which commit: what is lost once runs of several commits lie
 * together. By partition and offset; an index of one flush has none, its row has the number.
 */
export interface StepColumns {
  readonly count: number;
  readonly offsets: Float64Array;
  readonly commitNumbers: Float64Array;
  readonly partitionIds: Uint32Array;
}

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
  /** First byte of the run's first batch within the object; of a marker its place in `markers`. */
  readonly positions: Uint32Array;
  /** Bytes of the run's batches, end to end. */
  readonly lengths: Uint32Array;
  readonly recordCounts: Uint32Array;
  readonly batchCounts: Uint32Array;
  /** Where the header of the block that holds the run begins (≤ position), to check bytes after a read. */
  readonly blockPositions: Uint32Array;
  /** {@link EntryKind}. */
  readonly kinds: Uint8Array;
  readonly markers: MarkerColumns;
  readonly steps: StepColumns;
  /** The marker that entry n is; entry n is one. */
  marker(n: number): Marker;
  /** All columns as they are stored. */
  readonly bytes: Uint8Array;
}

/** Without markers, and the form with them. */
const VERSION = 1;
const VERSION_WITH_MARKERS = 2;
/** With commit steps, and markers or none. */
const VERSION_WITH_STEPS = 3;
const HEADER_BYTES = 8;
const MARKED_HEADER_BYTES = 16;
const ENTRY_FIXED_BYTES = 2 * 8 + 7 * 4;
const MARKER_BYTES = 2 * 8 + 2 * 4;
const STEP_BYTES = 2 * 8 + 4;

assert(endianness() === 'LE', 'stored columns are little-endian, so is every platform we run on');

/** Bytes that an index of `count` entries takes, `markers` of them markers. */
function packedIndexBytes(count: number, markers: number, steps: number): number {
  const header = markers + steps === 0 ? HEADER_BYTES : MARKED_HEADER_BYTES;
  const entries = count * ENTRY_FIXED_BYTES + Math.ceil(count / 8) * 8;
  return header + markers * MARKER_BYTES + steps * STEP_BYTES + entries;
}

/** A zeroed index for `count` entries, of which `markers` will be markers, to be filled in; steps are optional. */
export function allocateIndex(count: number, markers = 0, steps = 0): PackedIndex {
  const bytes = new Uint8Array(packedIndexBytes(count, markers, steps));
  const header = new Uint32Array(bytes.buffer, 0, markers + steps === 0 ? 2 : 4);
  header[0] = steps > 0 ? VERSION_WITH_STEPS : markers === 0 ? VERSION : VERSION_WITH_MARKERS;
  header[1] = count;
  if (markers + steps > 0) header[2] = markers;
  if (steps > 0) header[3] = steps;
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
  const [version, count] = new Uint32Array(buffer, byteOffset, 2) as unknown as [number, number];
  const stepped = version === VERSION_WITH_STEPS && bytes.length >= MARKED_HEADER_BYTES;
  const marked =
    stepped || (version === VERSION_WITH_MARKERS && bytes.length >= MARKED_HEADER_BYTES);
  const markerCount = marked ? new Uint32Array(buffer, byteOffset, 3)[2]! : 0;
  const stepCount = stepped ? new Uint32Array(buffer, byteOffset, 4)[3]! : 0;
  if (
    !(marked || version === VERSION) ||
    bytes.length !== packedIndexBytes(count, markerCount, stepCount)
  ) {
    throw new FloeError(
      'corrupt',
      `a packed index of version ${version} with ${count} entries in ${bytes.length} bytes`,
    );
  }
  let at = byteOffset + (marked ? MARKED_HEADER_BYTES : HEADER_BYTES);
  const doubles = (length: number) => {
    const column = new Float64Array(buffer, at, length);
    at += 8 * length;
    return column;
  };
  const integers = (length: number) => {
    const column = new Int32Array(buffer, at, length);
    at += 4 * length;
    return column;
  };
  const words = (length = count) => {
    const column = new Uint32Array(buffer, at, length);
    at += 4 * length;
    return column;
  };
  // Columns of eight bytes first, for their alignment.
  const [producerIds, timestamps] = [doubles(markerCount), doubles(markerCount)];
  const [stepOffsets, commitNumbers] = [doubles(stepCount), doubles(stepCount)];
  const entries = {
    count,
    baseOffsets: doubles(count),
    maxTimestamps: doubles(count),
    partitionIds: words(),
    offsetSpans: words(),
    positions: words(),
    lengths: words(),
    recordCounts: words(),
    batchCounts: words(),
    blockPositions: words(),
  };
  const [producerEpochs, coordinatorEpochs] = [integers(markerCount), integers(markerCount)];
  const steps = {
    count: stepCount,
    offsets: stepOffsets,
    commitNumbers,
    partitionIds: words(stepCount),
  };
  const kinds = new Uint8Array(buffer, at, count);
  const markers = { producerIds, timestamps, producerEpochs, coordinatorEpochs, taken: 0 };
  const { positions } = entries;
  const marker = (n: number) => markerAt(markers, positions[n]!, kinds[n]!);
  return { ...entries, kinds, markers, steps, marker, bytes };
}

function markerAt(markers: MarkerColumns, m: number, kind: number): Marker {
  assert(isMarker(kind), 'L4: only markers are read as such');
  return {
    committed: kind === EntryKind.COMMIT,
    producerId: markers.producerIds[m]!,
    producerEpoch: markers.producerEpochs[m]!,
    coordinatorEpoch: markers.coordinatorEpochs[m]!,
    timestampMs: markers.timestamps[m]!,
  };
}

/** Makes entry `n` of an index that is being filled a marker; its partition, offset and running maximum are set apart. */
export function setMarker(index: PackedIndex, n: number, marker: Marker): void {
  const { markers } = index;
  const m = markers.taken;
  assert(m < markers.producerIds.length, 'an index is allocated with room for its markers');
  markers.taken = m + 1;
  markers.producerIds[m] = marker.producerId;
  markers.timestamps[m] = marker.timestampMs;
  markers.producerEpochs[m] = marker.producerEpoch;
  markers.coordinatorEpochs[m] = marker.coordinatorEpoch;
  index.kinds[n] = marker.committed ? EntryKind.COMMIT : EntryKind.ABORT;
  index.positions[n] = m;
  index.offsetSpans[n] = 1;
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

/** The steps of one partition: `[start, end)`, empty when it has none. */
export function stepsOf({ steps }: PackedIndex, partitionId: number): readonly [number, number] {
  const { count, partitionIds } = steps;
  const start = firstIn(0, count, (n) => partitionIds[n]! >= partitionId);
  return [start, firstIn(start, count, (n) => partitionIds[n]! > partitionId)];
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
  if (isMarker(from.kinds[m]!)) {
    setMarker(to, n, from.marker(m));
    return;
  }
  to.kinds[n] = from.kinds[m]!;
  to.offsetSpans[n] = from.offsetSpans[m]!;
  to.positions[n] = from.positions[m]!;
  to.lengths[n] = from.lengths[m]!;
  to.recordCounts[n] = from.recordCounts[m]!;
  to.batchCounts[n] = from.batchCounts[m]!;
  to.blockPositions[n] = from.blockPositions[m]!;
}

/** How many entries of an index are markers. */
export function markerCount({ markers }: PackedIndex): number {
  return markers.producerIds.length;
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
