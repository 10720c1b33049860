// What a stream object looks like before its bytes are there: runs of old objects, sorted by (partition, offset), as
// blocks of a few hundred KiB, each one entry of the new index. Pure. A block holds whole runs whose offsets follow
// one another, so that a reader takes it by one read call. Format: wal-format.ts, generation 0.
import { assert } from '../../base/assert.ts';
import type { NewObjectEntry, ObjectEntry } from '../../metadata/log.ts';
import { allocateIndex, endOffset, type PackedIndex } from '../../metadata/packed-index.ts';
import type { ObjectRef } from './entries.ts';
import { BLOCK_HEADER_BYTES } from './wal-format.ts';

/** Entries `[start, end)` of `index`: one partition's share of an object, or what is wanted of it. */
export interface SourceShare {
  readonly object: ObjectRef;
  readonly index: PackedIndex;
  readonly start: number;
  readonly end: number;
  readonly partitionId: number;
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

/** A block while runs are added to it. */
interface OpenBlock {
  readonly partitionId: number;
  readonly position: number;
  readonly moves: RunMove[];
  length: number;
  nextOffset: number;
}

/** Lays `shares` out, which come by (partition, offset). Blocks end at `blockBytes` unless one run is larger. */
export function layoutStream(shares: readonly SourceShare[], blockBytes: number): StreamLayout {
  const blocks: OpenBlock[] = [];
  let open: OpenBlock | undefined;
  let position = 0;
  for (const share of shares) {
    for (let n = share.start; n < share.end; n += 1) {
      const length = share.index.lengths[n]!;
      if (open === undefined || !takes(open, share, n, blockBytes)) {
        open = startBlock(share.partitionId, position);
        blocks.push(open);
        position += BLOCK_HEADER_BYTES;
      }
      open.moves.push({ share, entry: n, position });
      open.length += length;
      open.nextOffset = endOffset(share.index, n);
      position += length;
    }
  }
  const index = indexOf(blocks);
  const moves = blocks.flatMap((block) => block.moves);
  return {
    moves,
    index,
    footerPosition: position,
    entries: entriesOfBlocks(blocks, index, position),
  };
}

function takes(open: OpenBlock, share: SourceShare, n: number, blockBytes: number): boolean {
  if (open.partitionId !== share.partitionId) return false;
  const base = share.index.baseOffsets[n]!;
  assert(base >= open.nextOffset, 'L2: runs of a partition ascend');
  return base === open.nextOffset && open.length + share.index.lengths[n]! <= blockBytes;
}

const startBlock = (partitionId: number, position: number): OpenBlock => ({
  partitionId,
  position,
  moves: [],
  length: 0,
  nextOffset: -1,
});

function indexOf(blocks: readonly OpenBlock[]): PackedIndex {
  const index = allocateIndex(blocks.length);
  for (const [n, block] of blocks.entries()) {
    const { share, entry } = block.moves[0]!;
    const last = block.moves.at(-1)!;
    index.partitionIds[n] = block.partitionId;
    index.baseOffsets[n] = share.index.baseOffsets[entry]!;
    index.offsetSpans[n] = block.nextOffset - index.baseOffsets[n]!;
    index.maxTimestamps[n] = last.share.index.maxTimestamps[last.entry]!;
    index.positions[n] = block.position + BLOCK_HEADER_BYTES;
    index.lengths[n] = block.length;
    index.blockPositions[n] = block.position;
    for (const move of block.moves) {
      index.recordCounts[n]! += move.share.index.recordCounts[move.entry]!;
      index.batchCounts[n]! += move.share.index.batchCounts[move.entry]!;
    }
  }
  return index;
}

/** One row per partition and unbroken stretch of offsets. */
function entriesOfBlocks(
  blocks: readonly OpenBlock[],
  index: PackedIndex,
  footerPosition: number,
): NewObjectEntry[] {
  const entries: NewObjectEntry[] = [];
  for (let start = 0; start < blocks.length; ) {
    let end = start + 1;
    while (end < blocks.length && follows(index, end)) end += 1;
    let [bytes, recordCount, commitNumber] = [0, 0, 0];
    for (let n = start; n < end; n += 1) {
      bytes += index.lengths[n]!;
      recordCount += index.recordCounts[n]!;
      for (const { share } of blocks[n]!.moves)
        commitNumber = Math.max(commitNumber, share.commitNumber);
    }
    entries.push({
      partitionId: index.partitionIds[start]!,
      baseOffset: index.baseOffsets[start]!,
      endOffset: endOffset(index, end - 1),
      indexPosition: footerPosition + BLOCK_HEADER_BYTES,
      indexLength: index.bytes.length,
      bytes,
      recordCount,
      runCount: end - start,
      maxTimestamp: index.maxTimestamps[end - 1]!,
      commitNumber,
    });
    start = end;
  }
  return entries;
}

const follows = (index: PackedIndex, n: number): boolean =>
  index.partitionIds[n] === index.partitionIds[n - 1] &&
  index.baseOffsets[n] === endOffset(index, n - 1);

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
  const { partitionId, commitNumber } = row;
  return { object, index, start, end, partitionId, commitNumber };
}
