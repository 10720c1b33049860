// Look-ups by time, exact to the record. Index entries carry the running maximum timestamp of their partition, which
// never descends, so the first entry that reaches a time is found by a seek; within it the records decide.
// When that entry has expired or was compacted away, later ones need not hold such a record: then the scan simply goes
// on.
import type { ObjectsMetadata } from '../../metadata/objects.ts';
import { findTime } from '../../metadata/packed-index.ts';
import {
  batchEnd,
  baseOffset as headerOffset,
  lastOffsetDelta,
  maxTimestamp,
} from '../../protocol/record-batch.ts';
import { RecordCursor } from '../../protocol/record-cursor.ts';
import type { ColdReader } from './cold-reader.ts';
import type { IndexCache } from './index-cache.ts';
import type { OffsetAtTime, ReadRun } from './log.ts';
import type { ObjectEntries } from './object-entries.ts';

/** Offsets `[logStartOffset, endOffset)`. */
export interface OffsetRange {
  readonly logStartOffset: number;
  readonly endOffset: number;
}

export interface TimeIndexSources {
  readonly reader: Pick<ColdReader, 'read'>;
  readonly recent: IndexCache;
  readonly older: ObjectEntries;
  readonly objects: Pick<ObjectsMetadata, 'entryAtTime'>;
}

export interface TimeLookup {
  readonly partitionId: number;
  readonly timestampMs: number;
  readonly range: OffsetRange;
}

/** A time and where to look for it. */
export interface TimeReach {
  readonly partitionId: number;
  readonly timestampMs: number;
  readonly range: Pick<OffsetRange, 'logStartOffset'>;
}

/** Read at a time while scanning. */
const SCAN_BYTES = 256 * 1024;

/** The first record of the range at or after the time, or undefined. */
export async function findOffsetForTime(
  sources: TimeIndexSources,
  { partitionId, timestampMs, range }: TimeLookup,
): Promise<OffsetAtTime | undefined> {
  const start = await firstReaching(sources, { partitionId, timestampMs, range });
  if (start === undefined) return undefined;
  const scan = { partitionId, offset: start, endOffset: range.endOffset };
  for await (const run of scanRuns(sources.reader, scan)) {
    const found = firstInRun(run, timestampMs, { ...range, logStartOffset: start });
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The record with the largest timestamp of the range, the first of equals; undefined when the range is empty. */
export async function findMaxTimestamp(
  sources: TimeIndexSources,
  partitionId: number,
  range: OffsetRange,
): Promise<OffsetAtTime | undefined> {
  if (range.logStartOffset >= range.endOffset) return undefined;
  // The running maximum at the end names the time; unless its record has expired, the seek finds it.
  const largest = await largestBefore(sources, partitionId, range);
  const found = await findOffsetForTime(sources, { partitionId, timestampMs: largest, range });
  return found ?? (await scanMaxTimestamp(sources.reader, partitionId, range));
}

/** Largest timestamp in the last batches of the range: a lower bound of the maximum, cheap to get. */
async function largestBefore(
  sources: TimeIndexSources,
  partitionId: number,
  { endOffset }: OffsetRange,
): Promise<number> {
  const [segment] =
    sources.recent.segments(partitionId, endOffset - 1, 1) ??
    (await sources.older.segments(partitionId, endOffset - 1, {
      wantedBytes: 1,
      purpose: 'consumer',
    }));
  return segment === undefined ? -1 : segment.columns.maxTimestamps[segment.start]!;
}

async function scanMaxTimestamp(
  reader: Pick<ColdReader, 'read'>,
  partitionId: number,
  { logStartOffset, endOffset }: OffsetRange,
): Promise<OffsetAtTime | undefined> {
  let best: OffsetAtTime | undefined;
  const scan = { partitionId, offset: logStartOffset, endOffset };
  for await (const run of scanRuns(reader, scan)) {
    for (;;) {
      const range = { logStartOffset, endOffset };
      const better = firstInRun(run, best === undefined ? -1 : best.timestamp + 1, range);
      if (better === undefined) break;
      best = better;
    }
  }
  return best;
}

/** Offset of the first index entry that reaches the time, not below the log start; undefined when there is none. */
export async function firstReaching(
  { recent, older, objects }: TimeIndexSources,
  { partitionId, timestampMs, range }: TimeReach,
): Promise<number | undefined> {
  const { logStartOffset } = range;
  const sealedToo = logStartOffset < recent.firstOffset(partitionId);
  // Newest first: an entry that is sealed meanwhile is then found on both sides, and not on neither.
  let found = recent.firstReaching(partitionId, timestampMs);
  if (sealedToo && recent.incomplete)
    found = (await older.unsealedReaching(partitionId, timestampMs, logStartOffset)) ?? found;
  const row = sealedToo
    ? await objects.entryAtTime(partitionId, timestampMs, logStartOffset)
    : undefined;
  if (row !== undefined) {
    const index = await older.index(row, 'consumer');
    const entry = findTime(index, partitionId, timestampMs);
    found = Math.max(row.baseOffset, entry === -1 ? 0 : index.baseOffsets[entry]!);
  }
  return found === undefined ? undefined : Math.max(logStartOffset, found);
}

async function* scanRuns(
  reader: Pick<ColdReader, 'read'>,
  { partitionId, offset, endOffset }: { partitionId: number; offset: number; endOffset: number },
): AsyncGenerator<ReadRun> {
  while (offset < endOffset) {
    const request = {
      partitionId,
      offset,
      endOffset,
      maxBytes: SCAN_BYTES,
      purpose: 'consumer',
    } as const;
    const { runs, release } = await reader.read(request);
    try {
      for (const run of runs) {
        yield run;
        offset = runEnd(run);
      }
      if (runs.length === 0) return;
    } finally {
      release();
    }
  }
}

function runEnd({ baseOffset, bytes, patched }: ReadRun): number {
  let next = baseOffset;
  for (let at = 0, end: number; (end = batchEnd(bytes, at)) !== -1; at = end)
    next = (patched ? headerOffset(bytes, at) : next) + lastOffsetDelta(bytes, at) + 1;
  return next;
}

/** The first record of a run within the range whose timestamp is at least `timestampMs`. */
function firstInRun(
  { baseOffset, bytes, patched }: ReadRun,
  timestampMs: number,
  range: OffsetRange,
): OffsetAtTime | undefined {
  let base = baseOffset;
  for (let at = 0, end: number; (end = batchEnd(bytes, at)) !== -1; at = end) {
    if (patched) base = headerOffset(bytes, at);
    const found =
      maxTimestamp(bytes, at) < timestampMs
        ? undefined
        : firstInBatch({ bytes, at, baseOffset: base }, timestampMs, range);
    if (found !== undefined) return found;
    base += lastOffsetDelta(bytes, at) + 1;
  }
  return undefined;
}

function firstInBatch(
  batch: { readonly bytes: Uint8Array; readonly at: number; readonly baseOffset: number },
  timestampMs: number,
  { logStartOffset, endOffset }: OffsetRange,
): OffsetAtTime | undefined {
  const cursor = new RecordCursor();
  cursor.open(batch.bytes, batch.at, { baseOffset: batch.baseOffset });
  while (cursor.next()) {
    const { offset, timestamp } = cursor;
    if (offset >= endOffset) return undefined;
    if (offset >= logStartOffset && timestamp >= timestampMs) return { offset, timestamp };
  }
  return undefined;
}
