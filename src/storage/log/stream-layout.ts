// What a stream object looks like before its bytes are there: runs of old objects, sorted by (partition, offset), as
// blocks of a few hundred KiB, each one entry of the new index; markers of transactions keep entries of their own. Pure.
// A block holds whole runs that follow one another, so that a reader takes it by one read call. What compaction by key
// has left (placed batches) stays so. Format: wal-format.ts, generation 0.
import { assert } from '../../base/assert.ts';
import type { NewObjectEntry, ObjectEntry } from '../../metadata/log.ts';
import {
  allocateIndex,
  EntryKind,
  endOffset,
  isMarker,
  type PackedIndex,
  setMarker,
  stepsOf,
} from '../../metadata/packed-index.ts';
import type { ObjectRef } from './entries.ts';
import { BLOCK_HEADER_BYTES } from './wal-format.ts';

/** Entries `[start, end)` of `index`: one partition's share of an object, or what is wanted of it. */
export interface SourceShare {
  readonly object: ObjectRef;
  readonly index: PackedIndex;
  readonly start: number;
  readonly end: number;
  readonly partitionId: number;
  /** Offsets that the share stands for, those that compaction by key took included. */
  readonly fromOffset: number;
  readonly toOffset: number;
  /** Latest commit that added to the share. */
  readonly commitNumber: number;
}

/** Where one run of a source goes. */
export interface RunMove {
  readonly share: SourceShare;
  readonly entry: number;
  /** First byte of the run in the new object. */
  readonly position: number;
}

export interface StreamLayout {
  readonly moves: readonly RunMove[];
  /** One entry per block. */
  readonly index: PackedIndex;
  /** Bytes before the footer, which begins here. */
  readonly footerPosition: number;
  readonly entries: readonly NewObjectEntry[];
}

/** An entry of the new index: a block while runs are added to it, or a marker, which stays alone and has no bytes. */
interface NewEntry {
  readonly share: SourceShare;
  readonly entry: number;
  readonly kind: number;
  /** Of the block's header. */
  readonly position: number;
  readonly moves: RunMove[];
  length: number;
  nextOffset: number;
  maxTimestamp: number;
}

/** Shares of one partition that follow one another become one row. */
interface NewRow {
  readonly firstEntry: number;
  readonly fromOffset: number;
  endEntry: number;
  toOffset: number;
  commitNumber: number;
}

/** Lays `shares` out, which come by (partition, offset). Blocks end at `blockBytes` unless one run is larger. */
export function layoutStream(shares: readonly SourceShare[], blockBytes: number): StreamLayout {
  const entries: NewEntry[] = [];
  const rows: NewRow[] = [];
  let position = 0;
  let before: SourceShare | undefined;
  for (const share of shares) {
    const row = rowOf(share, before, { rows, entries });
    for (let n = share.start; n < share.end; n += 1) {
      const kind = share.index.kinds[n]!;
      const last = entries.length > row.firstEntry ? entries.at(-1)! : undefined;
      if (last === undefined || !takes(last, share, n, blockBytes)) {
        entries.push(newEntry(share, n, position));
        if (!isMarker(kind)) position += BLOCK_HEADER_BYTES;
      }
      const entry = entries.at(-1)!;
      const length = share.index.lengths[n]!;
      if (!isMarker(kind)) entry.moves.push({ share, entry: n, position });
      entry.length += length;
      entry.nextOffset = endOffset(share.index, n);
      entry.maxTimestamp = share.index.maxTimestamps[n]!;
      position += length;
    }
    row.endEntry = entries.length;
    before = share;
  }
  const index = indexOf(entries, commitSteps(shares));
  return {
    moves: entries.flatMap(({ moves }) => moves),
    index,
    footerPosition: position,
    entries: rows.map((row) => objectEntry(row, index, position)),
  };
}

function rowOf(
  share: SourceShare,
  before: SourceShare | undefined,
  { rows, entries }: { readonly rows: NewRow[]; readonly entries: readonly NewEntry[] },
): NewRow {
  const { partitionId, fromOffset, toOffset, commitNumber } = share;
  const last = rows.at(-1);
  if (last !== undefined && before?.partitionId === partitionId && last.toOffset === fromOffset) {
    last.toOffset = toOffset;
    last.commitNumber = Math.max(last.commitNumber, commitNumber);
    return last;
  }
  const [firstEntry, endEntry] = [entries.length, entries.length];
  const row = { firstEntry, endEntry, fromOffset, toOffset, commitNumber };
  rows.push(row);
  return row;
}

/** Whether run `n` of `share`, which is of the same row, joins the block. */
function takes(last: NewEntry, share: SourceShare, n: number, blockBytes: number): boolean {
  const base = share.index.baseOffsets[n]!;
  assert(base >= last.nextOffset, 'L2: runs of a partition ascend');
  if (isMarker(last.kind) || share.index.kinds[n] !== last.kind) return false;
  const follows = base === last.nextOffset || last.kind === EntryKind.PLACED;
  return follows && last.length + share.index.lengths[n]! <= blockBytes;
}

const newEntry = (share: SourceShare, entry: number, position: number): NewEntry => ({
  share,
  entry,
  kind: share.index.kinds[entry]!,
  position,
  moves: [],
  length: 0,
  nextOffset: -1,
  maxTimestamp: -1,
});

interface Step {
  readonly partitionId: number;
  readonly offset: number;
  readonly commitNumber: number;
}

/**
 * From which offset on which commit (K1), as the sources know. A source without steps (one flush, or an object of an
 * earlier release) has its share's number throughout.
 */
function commitSteps(shares: readonly SourceShare[]): Step[] {
  const steps: Step[] = [];
  const add = (step: Step) => {
    const last = steps.at(-1);
    if (last?.partitionId === step.partitionId && last.commitNumber === step.commitNumber) return;
    steps.push(step);
  };
  for (const { index, partitionId, fromOffset, toOffset, commitNumber } of shares) {
    const [start, end] = stepsOf(index, partitionId);
    if (start === end) add({ partitionId, offset: fromOffset, commitNumber });
    for (let n = start; n < end; n += 1) {
      const { offsets, commitNumbers } = index.steps;
      const next = n + 1 < end ? offsets[n + 1]! : Infinity;
      if (next <= fromOffset || offsets[n]! >= toOffset) continue;
      const offset = Math.max(fromOffset, offsets[n]!);
      add({ partitionId, offset, commitNumber: commitNumbers[n]! });
    }
  }
  return steps;
}

function indexOf(entries: readonly NewEntry[], steps: readonly Step[]): PackedIndex {
  const markers = entries.filter(({ kind }) => isMarker(kind)).length;
  const index = allocateIndex(entries.length, markers, steps.length);
  for (const [n, step] of steps.entries()) {
    index.steps.partitionIds[n] = step.partitionId;
    index.steps.offsets[n] = step.offset;
    index.steps.commitNumbers[n] = step.commitNumber;
  }
  for (const [n, { share, entry, kind, position, moves, ...block }] of entries.entries()) {
    index.partitionIds[n] = share.partitionId;
    index.baseOffsets[n] = share.index.baseOffsets[entry]!;
    index.maxTimestamps[n] = block.maxTimestamp;
    if (isMarker(kind)) {
      setMarker(index, n, share.index.marker(entry));
      continue;
    }
    index.kinds[n] = kind;
    index.offsetSpans[n] = block.nextOffset - index.baseOffsets[n]!;
    index.positions[n] = position + BLOCK_HEADER_BYTES;
    index.lengths[n] = block.length;
    index.blockPositions[n] = position;
    for (const move of moves) {
      index.recordCounts[n]! += move.share.index.recordCounts[move.entry]!;
      index.batchCounts[n]! += move.share.index.batchCounts[move.entry]!;
    }
  }
  return index;
}

function objectEntry(row: NewRow, index: PackedIndex, footerPosition: number): NewObjectEntry {
  let [bytes, recordCount] = [0, 0];
  for (let n = row.firstEntry; n < row.endEntry; n += 1) {
    bytes += index.lengths[n]!;
    recordCount += index.recordCounts[n]!;
  }
  return {
    partitionId: index.partitionIds[row.firstEntry]!,
    baseOffset: row.fromOffset,
    endOffset: row.toOffset,
    indexPosition: footerPosition + BLOCK_HEADER_BYTES,
    indexLength: index.bytes.length,
    bytes,
    recordCount,
    runCount: row.endEntry - row.firstEntry,
    maxTimestamp: index.maxTimestamps[row.endEntry - 1]!,
    commitNumber: row.commitNumber,
  };
}

/** The share that a row names, without runs that lie whole below `logStart`; undefined when nothing is left. */
export function shareOf(
  row: Pick<ObjectEntry, 'partitionId' | 'baseOffset' | 'endOffset' | 'commitNumber'>,
  object: ObjectRef,
  source: { readonly index: PackedIndex; readonly range: readonly [number, number] },
  logStart: number,
): SourceShare | undefined {
  const { index } = source;
  let [start, end] = source.range;
  const from = Math.max(row.baseOffset + 1, logStart + 1);
  while (start < end && endOffset(index, start) < from) start += 1;
  while (end > start && index.baseOffsets[end - 1]! >= row.endOffset) end -= 1;
  if (start === end) return undefined;
  const { partitionId, commitNumber, endOffset: toOffset } = row;
  // Runs below the log start are left out, and so are their offsets; what compaction by key took is not.
  const fromOffset = Math.max(row.baseOffset, Math.min(logStart, index.baseOffsets[start]!));
  return { object, index, start, end, partitionId, fromOffset, toOffset, commitNumber };
}
