// From entries to byte ranges: pure, and tested as data. A range is one read call; it covers whole entries with the
// headers of their blocks, joins neighbours whose gap is cheaper to read than to skip, and takes no more than that.
import { assert } from '../../base/assert.ts';
import { isMarker } from '../../metadata/packed-index.ts';
import { type EntryColumns, entryEndByte, entryStartByte } from './entries.ts';

export interface PlanLimits {
  /** Neighbours at most this many bytes apart become one range: a seek costs more than reading the gap. */
  readonly maxGap: number;
  /** A range ends before it grows past this, unless a single entry is larger. */
  readonly maxRange: number;
  /** A read call brings at least this much where it lies together, however little was asked for. Default: 256 KiB. */
  readonly minRange?: number;
  /** A range may be longer by this share of `maxRange` where that saves a read call for the rest. Default: 0. */
  readonly restShare?: number;
}

/** Bytes `[position, position + length)` of an object, which hold entries `[start, end)` whole; markers have no bytes. */
export interface Range {
  readonly position: number;
  readonly length: number;
  readonly start: number;
  readonly end: number;
}

/** The fewest ranges in entry order that hold entries `[start, end)`. Entries ascend by position within a range. */
export function planRanges(
  columns: EntryColumns,
  [start, end]: readonly [number, number],
  limits: PlanLimits,
): Range[] {
  const ranges: Range[] = [];
  for (let n = start; n < end; ) {
    const range = growRange(columns, [n, end], limits);
    ranges.push(range);
    n = range.end;
  }
  return ranges;
}

/** The range that begins with the first entry, which has bytes. */
export function growRange(
  columns: EntryColumns,
  [start, end]: readonly [number, number],
  { maxGap, maxRange }: PlanLimits,
): Range {
  assert(start < end, 'a range holds at least one entry');
  const position = entryStartByte(columns, start);
  let endByte = entryEndByte(columns, start);
  let n = start + 1;
  for (; n < end; n += 1) {
    if (isMarker(columns.kinds[n]!)) continue;
    const from = entryStartByte(columns, n);
    const to = entryEndByte(columns, n);
    // A further run of the same block starts within the range; one that lies before it can't join.
    if (from < position || to < endByte) break;
    if (from - endByte > maxGap || to - position > maxRange) break;
    endByte = to;
  }
  return { position, length: endByte - position, start, end: n };
}

/** How many entries from `start` on a reader needs for `maxBytes` of batches, at least one. */
export function entriesFor(
  columns: EntryColumns,
  [start, end]: readonly [number, number],
  maxBytes: number,
): { readonly end: number; readonly bytes: number } {
  let bytes = 0;
  let n = start;
  while (n < end && (n === start || bytes < maxBytes)) {
    bytes += columns.lengths[n]!;
    n += 1;
  }
  return { end: n, bytes };
}
