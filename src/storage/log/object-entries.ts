// Where older batches lie: rows of sealed and compacted objects from the metadata store, and the objects' own
// indexes from their footers. Both are cached in bounds; a stale row is noticed by whoever reads (a missing object,
// a block header that says otherwise), who asks again with `forget`.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { SingleFlight } from '../../base/queue.ts';
import type { FlushRow, LogMetadata, ObjectEntry } from '../../metadata/log.ts';
import { entriesOf, openIndex, type PackedIndex, stepsOf } from '../../metadata/packed-index.ts';
import { generationOf } from '../paths.ts';
import type { ByteSource, ReadPurpose } from './byte-source.ts';
import { entryAt, entryEnd, type ObjectRef, type Segment, segmentOf } from './entries.ts';
import { reading } from './set-aside.ts';
import { BLOCK_HEADER_BYTES, footerIndex, readBlockHeader } from './wal-format.ts';

/** Rows asked for at a time: enough for minutes of catching up, little enough for one reply. */
const ROWS_AT_ONCE = 64;
/** Partitions whose rows are kept. */
const MAX_PARTITIONS = 4_096;
/** Flush rows looked through at a time when the index cache had to drop its oldest. */
const FLUSHES_AT_ONCE = 256;

export interface ObjectEntriesOptions {
  readonly metadata: Pick<LogMetadata, 'entriesFrom' | 'flushesAfter'>;
  readonly source: ByteSource;
  /** Bound of the indexes kept in memory. */
  readonly maxIndexBytes: number;
  /** Others replace rows, too: how long one is believed. Undefined: until `forget`. */
  readonly shared?: { readonly clock: Pick<Clock, 'monotonic'>; readonly rowsLifetimeMs: number };
}

/** Rows of a partition, end to end. */
interface KeptRows {
  readonly rows: readonly ObjectEntry[];
  /** By the monotonic clock, when they were asked for; 0 where rows don't age. */
  readonly askedMs: number;
}

/** The reference that a row holds. */
export function objectOf(row: {
  readonly objectId: number;
  readonly objectKey: string;
}): ObjectRef {
  return { objectId: row.objectId, key: row.objectKey, generation: generationOf(row.objectKey) };
}

export class ObjectEntries {
  readonly #options: ObjectEntriesOptions;
  readonly #rows = new Map<number, KeptRows>();
  readonly #indexes = new Map<string, PackedIndex>();
  readonly #loading = new SingleFlight<string, PackedIndex>();
  #indexBytes = 0;

  constructor(options: ObjectEntriesOptions) {
    this.#options = options;
  }

  /**
   * The segments that hold `[offset, …)` of a partition, at least `wantedBytes` if there are as many. None when nothing
   * holds `offset` itself: it has expired, or is lost.
   */
  async segments(
    partitionId: number,
    offset: number,
    { wantedBytes, purpose }: { readonly wantedBytes: number; readonly purpose: ReadPurpose },
  ): Promise<Segment[]> {
    const rows = this.#kept(partitionId, offset) ?? (await this.#fetch(partitionId, offset));
    const segments: Segment[] = [];
    let bytes = 0;
    // A row holds all that is left of its offsets: where it begins at or below `offset`, nothing else has it, even if
    // compaction by key took the record itself.
    let holds = false;
    this.#openSoon(rows, offset, { wantedBytes, purpose });
    for (const [n, row] of rows.entries()) {
      if (row.endOffset <= offset) continue;
      if (bytes >= wantedBytes || (segments.length > 0 && !follows(rows, n))) break;
      holds ||= row.baseOffset <= offset;
      const segment = await this.#open(row, Math.max(offset, row.baseOffset), purpose);
      if (segment.start === segment.end) continue;
      for (let n = segment.start; n < segment.end; n += 1) bytes += segment.columns.lengths[n]!;
      segments.push(segment);
    }
    if (holds && segments.length > 0) return segments;
    // Nothing sealed holds it: flushes that the index cache had no room for come before what is sealed later.
    const open = await this.#fromFlushes(partitionId, offset);
    return firstOf(open) <= offset ? open : [];
  }

  /** Starts loading all indexes that the rows will want, so that their reads don't wait for one another. */
  #openSoon(
    rows: readonly ObjectEntry[],
    offset: number,
    { wantedBytes, purpose }: { readonly wantedBytes: number; readonly purpose: ReadPurpose },
  ): void {
    let bytes = 0;
    for (const row of rows) {
      if (row.endOffset <= offset) continue;
      if (bytes >= wantedBytes) return;
      bytes += row.bytes * shareFrom(row, offset);
      // A failure is met again by whoever awaits it.
      Promise.resolve(this.index(row, purpose)).catch(() => {});
    }
  }

  /** At once if both rows and indexes are here, else undefined. */
  segmentsNow(partitionId: number, offset: number, wantedBytes: number): Segment[] | undefined {
    const rows = this.#kept(partitionId, offset);
    if (rows === undefined) return undefined;
    const segments: Segment[] = [];
    let bytes = 0;
    for (const [n, row] of rows.entries()) {
      if (row.endOffset <= offset) continue;
      if (bytes >= wantedBytes || (segments.length > 0 && !follows(rows, n))) break;
      const index = this.#indexes.get(indexKey(row));
      if (index === undefined) return undefined;
      segments.push(cutSegment(row, index, Math.max(offset, row.baseOffset)));
      bytes += row.bytes * shareFrom(row, offset);
    }
    return segments;
  }

  /** Rows are asked afresh next time: one of them was stale. */
  forget(partitionId: number): void {
    this.#rows.delete(partitionId);
  }

  /** All rows are asked afresh: objects were sealed or replaced. Indexes stay, objects never change. */
  forgetAll(): void {
    this.#rows.clear();
  }

  /** The index of an object, or of one partition in it. @throws FloeError `not-found`, `corrupt`. */
  index(row: ObjectEntry, purpose: ReadPurpose): Promise<PackedIndex> | PackedIndex {
    const key = indexKey(row);
    const kept = this.#indexes.get(key);
    if (kept !== undefined) {
      this.#indexes.delete(key);
      this.#indexes.set(key, kept);
      return kept;
    }
    return this.#loading.run(key, async () => {
      const index = await loadIndex(this.#options.source, row, purpose);
      this.#keep(key, index);
      return index;
    });
  }

  #keep(key: string, index: PackedIndex): void {
    this.#indexes.set(key, index);
    this.#indexBytes += index.bytes.length;
    for (const [oldest, dropped] of this.#indexes) {
      if (this.#indexBytes <= this.#options.maxIndexBytes || oldest === key) break;
      this.#indexes.delete(oldest);
      this.#indexBytes -= dropped.bytes.length;
    }
  }

  #kept(partitionId: number, offset: number): readonly ObjectEntry[] | undefined {
    const kept = this.#rows.get(partitionId);
    if (kept === undefined) return undefined;
    const { rows, askedMs } = kept;
    const { shared } = this.#options;
    if (shared !== undefined && shared.clock.monotonic() - askedMs > shared.rowsLifetimeMs)
      return undefined;
    const covers = rows[0]!.baseOffset <= offset && offset < rows.at(-1)!.endOffset;
    return covers ? rows : undefined;
  }

  async #fetch(partitionId: number, offset: number): Promise<readonly ObjectEntry[]> {
    const askedMs = this.#options.shared?.clock.monotonic() ?? 0;
    const rows = await this.#options.metadata.entriesFrom(partitionId, offset, ROWS_AT_ONCE);
    this.#rows.delete(partitionId);
    if (rows.length > 0) this.#rows.set(partitionId, { rows, askedMs });
    if (this.#rows.size > MAX_PARTITIONS) this.#rows.delete(this.#rows.keys().next().value!);
    return rows;
  }

  async #open(row: ObjectEntry, offset: number, purpose: ReadPurpose): Promise<Segment> {
    const index = await this.index(row, purpose);
    return cutSegment(row, index, offset);
  }

  async #fromFlushes(partitionId: number, offset: number): Promise<Segment[]> {
    for await (const rows of this.#flushes()) {
      const segments: Segment[] = [];
      for (const row of rows) {
        const index = openIndex(row.index);
        const [start, end] = entriesOf(index, partitionId);
        if (start === end || entryEnd(index, end - 1) <= offset) continue;
        segments.push(segmentOf(objectOf(row), index, [entryAt(index, [start, end], offset), end]));
      }
      if (segments.length > 0) return segments;
    }
    return [];
  }

  /** Calls back for each step of commits in sealed objects and unsealed flushes that reach into `[offset, endOffset)`. */
  async eachCommit(
    partitionId: number,
    { offset, endOffset }: { readonly offset: number; readonly endOffset: number },
    visit: (offset: number, commitNumber: number) => void,
  ): Promise<void> {
    let from = offset;
    for (let rows: readonly ObjectEntry[] | undefined; from < endOffset; ) {
      rows = await this.#options.metadata.entriesFrom(partitionId, from, ROWS_AT_ONCE);
      for (const row of rows) {
        if (row.baseOffset >= endOffset) break;
        const index = await this.index(row, 'table');
        const [start, end] = stepsOf(index, partitionId);
        if (start === end) visit(row.baseOffset, row.commitNumber);
        for (let n = start; n < end; n += 1) {
          if (index.steps.offsets[n]! >= row.endOffset) break;
          // An object may hold several rows of a partition: a step that ends before this one says nothing of it.
          if (n + 1 < end && index.steps.offsets[n + 1]! <= row.baseOffset) continue;
          visit(Math.max(row.baseOffset, index.steps.offsets[n]!), index.steps.commitNumbers[n]!);
        }
        from = row.endOffset;
      }
      if (rows.length < ROWS_AT_ONCE) break;
    }
    if (from >= endOffset) return;
    for await (const flushes of this.#flushes()) {
      for (const row of flushes) {
        const index = openIndex(row.index);
        const [start, end] = entriesOf(index, partitionId);
        if (start === end || entryEnd(index, end - 1) <= from) continue;
        visit(index.baseOffsets[start]!, row.commitNumber);
      }
    }
  }

  /** Offset of the first entry in flush rows that ends above `fromOffset` and reaches the time. */
  async unsealedReaching(
    partitionId: number,
    timestampMs: number,
    fromOffset: number,
  ): Promise<number | undefined> {
    for await (const rows of this.#flushes()) {
      for (const row of rows) {
        const index = openIndex(row.index);
        const [start, end] = entriesOf(index, partitionId);
        for (let n = entryAt(index, [start, end], fromOffset); n < end; n += 1)
          if (index.maxTimestamps[n]! >= timestampMs) return index.baseOffsets[n]!;
      }
    }
    return undefined;
  }

  /** Rows of flushes whose objects aren't sealed, oldest first, some at a time. */
  async *#flushes(): AsyncGenerator<readonly FlushRow[]> {
    for (let after = 0; ; ) {
      const rows = await this.#options.metadata.flushesAfter(after, FLUSHES_AT_ONCE);
      yield rows;
      if (rows.length < FLUSHES_AT_ONCE) return;
      after = rows.at(-1)!.commitNumber;
    }
  }
}

/** The first offset that segments hold. */
const firstOf = ([first]: readonly Segment[]): number =>
  first === undefined ? Infinity : first.columns.baseOffsets[first.start]!;

/**
 * Rows tile the log, but for what has expired and isn't dropped everywhere yet: behind such a hole, of which a front may
 * not have heard, a read must not go on.
 */
function follows(rows: readonly ObjectEntry[], n: number): boolean {
  return n === 0 || rows[n - 1]!.endOffset === rows[n]!.baseOffset;
}

/** Which part of a row lies at or above `offset`, as far as offsets tell. */
function shareFrom({ baseOffset, endOffset }: ObjectEntry, offset: number): number {
  return offset <= baseOffset ? 1 : (endOffset - offset) / (endOffset - baseOffset);
}

const indexKey = (row: ObjectEntry): string => `${row.objectId}:${row.indexPosition}`;

function cutSegment(row: ObjectEntry, index: PackedIndex, offset: number): Segment {
  const [start, end] = entriesOf(index, row.partitionId);
  const from = entryAt(index, [start, end], offset);
  // A share may be cut into several rows; each serves its own offsets only.
  const to =
    row.endOffset === entryEnd(index, end - 1) ? end : entryAt(index, [from, end], row.endOffset);
  return segmentOf(objectOf(row), index, [from, to]);
}

/** Reads and checks an object's index: the footer's header says whose and where, its checksum that it is whole. */
export async function loadIndex(
  source: ByteSource,
  row: Pick<ObjectEntry, 'objectId' | 'objectKey' | 'indexPosition' | 'indexLength'>,
  purpose: ReadPurpose,
): Promise<PackedIndex> {
  const object = objectOf(row);
  const position = row.indexPosition - BLOCK_HEADER_BYTES;
  const bytes = new Uint8Array(new SharedArrayBuffer(BLOCK_HEADER_BYTES + row.indexLength));
  return reading(object, async () => {
    await source.read(object, [{ position, into: bytes }], { purpose });
    const header = readBlockHeader(bytes);
    if (header?.position !== position || header.generation !== object.generation)
      throw new FloeError('corrupt', `no footer at ${position} of ${row.objectKey}`);
    return openIndex(footerIndex(bytes));
  });
}
