// Entries of an index against the row that refers to them, and batches against their entry. Pure.
// Not for: headers of blocks and CRCs (storage/log/block-check.ts).
import { EntryKind, entriesOf, isMarker, type PackedIndex } from '../../metadata/packed-index.ts';
import {
  baseOffset,
  batchEnd,
  lastOffsetDelta,
  MAGIC,
  magic,
  recordCount,
} from '../../protocol/record-batch.ts';
import { entryAt, entryEnd, entryEndByte } from '../../storage/log/entries.ts';
import type { ShareRow } from './rows.ts';

/** Entries `[start, end)` of an index. */
export type EntryRange = readonly [start: number, end: number];

/** The entries that a row stands for. */
export function shareRange(index: PackedIndex, row: ShareRow): EntryRange {
  const [start, end] = entriesOf(index, row.partition_id);
  const from = entryAt(index, [start, end], row.base_offset);
  const whole = end > start && row.end_offset === entryEnd(index, end - 1);
  return [from, whole ? end : entryAt(index, [from, end], row.end_offset)];
}

/** What is wrong about a row and the entries that it stands for; undefined: nothing. */
export function shareFault(
  index: PackedIndex,
  row: ShareRow,
  [start, end]: EntryRange,
): string | undefined {
  const { base_offset: base, end_offset: rowEnd, partition_id } = row;
  const whose = `the row of partition id ${partition_id}, offsets ${base} to ${rowEnd - 1},`;
  if (start >= end) return `${whose} has no entries in the index`;
  if (entryEnd(index, end - 1) !== rowEnd)
    return `${whose} ends at ${rowEnd}, its entries at ${entryEnd(index, end - 1)}`;
  // Compaction by key leaves gaps, and the row stands for them.
  const placed = index.kinds.subarray(start, end).includes(EntryKind.PLACED);
  for (let n = start; n < end; n += 1) {
    const expected = n === start ? base : entryEnd(index, n - 1);
    const found = index.baseOffsets[n]!;
    if (n > start && found < expected) return `${whose} has offsets from ${found} on twice`;
    if (!placed && found > expected)
      return `${whose} has no entry for offsets ${expected} to ${found - 1}`;
  }
  const bytes = index.lengths.subarray(start, end).reduce((sum, length) => sum + length, 0);
  if (bytes !== row.bytes) return `${whose} counts ${row.bytes} bytes, its entries ${bytes}`;
  return undefined;
}

/** Entries of one block that are read together. */
export interface BlockRange {
  readonly index: PackedIndex;
  readonly start: number;
  readonly end: number;
  /** Of the block's header in the object. */
  readonly position: number;
  /** Position after the last entry's bytes. */
  readonly endPosition: number;
}

/** The blocks that entries lie in. */
export function* blocksIn(index: PackedIndex, [start, end]: EntryRange): Generator<BlockRange> {
  for (let n = start; n < end; ) {
    if (isMarker(index.kinds[n]!)) {
      n += 1;
      continue;
    }
    const first = n;
    const position = index.blockPositions[n]!;
    let endPosition = 0;
    while (n < end && !isMarker(index.kinds[n]!) && index.blockPositions[n] === position) {
      endPosition = Math.max(endPosition, entryEndByte(index, n));
      n += 1;
    }
    yield { index, start: first, end: n, position, endPosition };
  }
}

/** What is wrong about the batches of entry `n`, whose bytes these are and have their CRCs; undefined: nothing. */
export function entryFault(index: PackedIndex, n: number, bytes: Uint8Array): string | undefined {
  const placed = index.kinds[n] === EntryKind.PLACED;
  const [base, end] = [index.baseOffsets[n]!, entryEnd(index, n)];
  let [next, batches, records] = [base, 0, 0];
  for (let at = 0, after: number; at < bytes.length; at = after) {
    after = batchEnd(bytes, at);
    if (after === -1) return 'bytes that are no record batch';
    if (magic(bytes, at) !== MAGIC) return `a record batch of magic ${magic(bytes, at)}`;
    const own = placed ? baseOffset(bytes, at) : next;
    if (own < next) return `a record batch with offset ${own} where ${next} or more follows`;
    if (batches === 0 && own !== base)
      return `a record batch with offset ${own} where its entry begins at ${base}`;
    next = own + lastOffsetDelta(bytes, at) + 1;
    batches += 1;
    records += recordCount(bytes, at);
  }
  if (next !== end) return `record batches up to offset ${next} where their entry ends at ${end}`;
  if (batches !== index.batchCounts[n] || records !== index.recordCounts[n])
    return `${batches} record batches of ${records} records where their entry has ${index.batchCounts[n]} of ${index.recordCounts[n]}`;
  return undefined;
}
