// Reads from storage what the tail cache no longer holds: entries → ranges → blocks → slices. Bytes stay raw and are
// never copied but for short slices. A plan that proves stale (a missing object, a block header that says otherwise)
// is made again once from the metadata store; if that fails too, this partition is damaged, and nothing else.
// Not for: watermarks, budgets over partitions and the tail (read-front.ts), how ranges are chosen (plan.ts).
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { LogMetadata } from '../../metadata/log.ts';
import type { ObjectsMetadata } from '../../metadata/objects.ts';
import { EntryKind, isMarker, openIndex } from '../../metadata/packed-index.ts';
import { type BatchPosition, cutBatches, RunCollector } from './batch-cut.ts';
import { BlockCache, type LoadReason } from './block-cache.ts';
import { checkEntries } from './block-check.ts';
import { BlockLoader, type Piece } from './block-loader.ts';
import type { ByteSource, ReadPurpose } from './byte-source.ts';
import type { ColdRead, ColdReader, ColdReadRequest } from './cold-reader.ts';
import { CONTROL_BATCH_BYTES, controlBatch } from './control-batch.ts';
import { type Cursor, Cursors } from './cursors.ts';
import { type EntryColumns, entryAt, entryEnd, type Segment } from './entries.ts';
import { IndexCache } from './index-cache.ts';
import type { CommitSteps, OffsetAtTime } from './log.ts';
import { ObjectEntries } from './object-entries.ts';
import type { ReadLimits } from './read-settings.ts';
import type { FlushReply } from './sequencer-port.ts';
import {
  findMaxTimestamp,
  findOffsetForTime,
  firstReaching,
  type OffsetRange,
} from './time-index.ts';

export interface LogReaderOptions {
  readonly clusterTag: Uint8Array;
  readonly source: ByteSource;
  readonly metadata: {
    readonly log: Pick<LogMetadata, 'entriesFrom' | 'flushesAfter' | 'partitions'>;
    readonly objects: Pick<ObjectsMetadata, 'entryAtTime'>;
  };
  /** Of `readsOf`: for local files or for a store. */
  readonly settings: ReadLimits;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Given: others compact and delete, too, so rows of stored objects are believed for a while only. */
  readonly shared?: { readonly clock: Pick<Clock, 'monotonic'>; readonly rowsLifetimeMs: number };
}

/** Objects whose entries one read goes through at most; the next read goes on. */
const MAX_SEGMENTS = 64;
const MAX_CURSOR_PARTITIONS = 10_000;

export class LogReader implements ColdReader {
  readonly #options: LogReaderOptions;
  readonly #recent: IndexCache;
  readonly #older: ObjectEntries;
  readonly #hot: BlockLoader;
  readonly #cold: BlockLoader;
  readonly #cursors = new Cursors(MAX_CURSOR_PARTITIONS);
  #sample = 0;
  #followedBytes = 0;
  #stopped = false;

  constructor(options: LogReaderOptions) {
    const { settings, source, metadata } = options;
    this.#options = options;
    this.#recent = new IndexCache(settings['log.read.recent.index.bytes']);
    this.#older = new ObjectEntries({
      metadata: metadata.log,
      source,
      maxIndexBytes: settings['log.read.index.bytes'],
      ...(options.shared === undefined ? {} : { shared: options.shared }),
    });
    const limits = {
      maxGap: settings['log.read.gap.bytes'],
      maxRange: settings['log.read.range.bytes'],
      ...settings.remote,
    };
    const loader = (bytes: number) => new BlockLoader(new BlockCache(bytes), source, limits);
    this.#hot = loader(settings['log.read.cache.bytes']);
    this.#cold = loader(settings['log.read.cold.cache.bytes']);
    this.#observe();
  }

  #observe(): void {
    const { metrics } = this.#options;
    for (const [name, { cache }] of [
      ['hot', this.#hot],
      ['cold', this.#cold],
    ] as const) {
      metrics.observeGauge(
        `floe_log_${name}_cache_bytes`,
        'Bytes of blocks in the cache.',
        () => cache.stats.usedBytes,
      );
      metrics.observeGauge(
        `floe_log_${name}_cache_hits`,
        'Blocks found in the cache.',
        () => cache.stats.hits,
      );
      metrics.observeGauge(
        `floe_log_${name}_cache_loads`,
        'Blocks read from storage.',
        () => cache.stats.loads,
      );
    }
    metrics.observeGauge(
      'floe_log_recent_index_entries',
      'Index entries of recent flushes in memory.',
      () => this.#recent.entryCount,
    );
  }

  follow(
    flush: Pick<FlushReply, 'commitNumber' | 'objectId' | 'objectKey' | 'generation' | 'index'>,
  ): void {
    const { objectId, objectKey: key, generation, commitNumber } = flush;
    const index = openIndex(flush.index);
    this.#recent.add({ object: { objectId, key, generation }, commitNumber, index });
    for (const length of index.lengths) this.#followedBytes += length;
  }

  sealed(objectId: number): void {
    this.#recent.sealed([objectId]);
  }

  /** Objects that aren't sealed yet as far as is known here. */
  openObjects(): readonly number[] {
    return this.#recent.openObjects();
  }

  /** Others have sealed, compacted or given up these objects: what lies in them is asked of the metadata store. */
  noLongerOpen(objectIds: readonly number[]): void {
    this.#recent.sealed(objectIds);
  }

  /** Another broker has compacted the partition by key: rows that are kept of it are out of date. */
  forgetRows(partitionId: number): void {
    this.#older.forget(partitionId);
  }

  /** Objects were replaced by compaction: rows of theirs are asked afresh, blocks and recent entries let go. */
  replaced(objectIds: readonly number[]): void {
    this.#older.forgetAll();
    this.#recent.sealed(objectIds);
    for (const objectId of objectIds) {
      this.#hot.forget(objectId);
      this.#cold.forget(objectId);
    }
  }

  removePartition(partitionId: number): void {
    this.#recent.removePartition(partitionId);
    this.#older.forget(partitionId);
    this.#cursors.removePartition(partitionId);
  }

  /** Bytes of all commits followed: their rate tells how hard producers press. */
  get followedBytes(): number {
    return this.#followedBytes;
  }

  /** Read calls, hits and evictions of consumers' blocks. */
  get hotStats() {
    return this.#hot.cache.stats;
  }

  warm(requests: readonly ColdReadRequest[]): void {
    // A failure here is met again by the read itself.
    for (const request of requests) this.#warm(request).catch(() => {});
  }

  async #warm(request: ColdReadRequest): Promise<void> {
    const located = this.#locate(request, false);
    const segments = located instanceof Promise ? await located : located;
    if (this.#stopped) return;
    const cursor = this.#cursors.find(request.partitionId, request.offset);
    const pieces = this.#plan(request, segments, { cursor, why: 'ahead' });
    const loader = this.#loader(request.purpose);
    await Promise.allSettled(pieces.map(({ block }) => block?.ready));
    loader.release(pieces);
  }

  async read(request: ColdReadRequest): Promise<ColdRead> {
    try {
      return await this.#attempt(request, false);
    } catch (caught) {
      if (!isFloeError(caught, 'not-found', 'corrupt')) throw caught;
      this.#options.metrics.count('floe_log_stale_plans_total', 'Read plans made again.');
      this.#older.forget(request.partitionId);
      return this.#again(request);
    }
  }

  async #again(request: ColdReadRequest): Promise<ColdRead> {
    try {
      return await this.#attempt(request, true);
    } catch (caught) {
      if (!isFloeError(caught, 'not-found', 'corrupt')) throw caught;
      const { partitionId, offset } = request;
      await this.#checkThere(partitionId, offset);
      const { message } = caught;
      this.#options.metrics.count('floe_log_damaged_reads_total', 'Reads that found damage.');
      this.#options.logger.error(
        { partitionId, offset, error: message },
        'stored records are damaged',
      );
      throw new FloeError('corrupt', `partition ${partitionId} at offset ${offset}: ${message}`, {
        cause: caught,
      });
    }
  }

  /** @throws FloeError `not-found` when the offset has expired or the partition is gone: nothing is damaged then. */
  async #checkThere(partitionId: number, offset: number): Promise<void> {
    const [log] = await this.#options.metadata.log.partitions([partitionId]);
    const what = `offset ${offset} of partition ${partitionId}`;
    if (log === undefined) throw new FloeError('not-found', `${what}: the topic was deleted`);
    if (log.logStartOffset > offset)
      throw new FloeError('not-found', `${what}: the log begins at ${log.logStartOffset} now`);
  }

  async #attempt(request: ColdReadRequest, fresh: boolean): Promise<ColdRead> {
    if (this.#stopped) throw new FloeError('cancelled', 'the reader has stopped');
    request.signal?.throwIfAborted();
    const located = this.#locate(request, fresh);
    const segments = located instanceof Promise ? await located : located;
    if (segments.length === 0) {
      const where = `offset ${request.offset} of partition ${request.partitionId}`;
      throw new FloeError('corrupt', `no object holds ${where}, below ${request.endOffset}`);
    }
    const cursor = this.#cursors.find(request.partitionId, request.offset);
    const loader = this.#loader(request.purpose);
    const pieces = this.#plan(request, segments, { cursor, why: 'must' });
    try {
      for (const { block } of pieces) if (block?.loaded === false) await block.ready;
      const found = this.#cut(request, pieces, cursor);
      if (cursor !== undefined && found.next !== undefined)
        loader.ahead(request, entriesAfter(segments, found.next.offset, request), {
          from: found.next.position,
          distance: this.#distance,
        });
      const { runs, bytes } = found;
      const placed = pieces.some(isPlaced);
      loader.spent(pieces.slice(0, found.whole));
      return { runs, bytes, placed, release: () => loader.release(pieces.splice(0)) };
    } catch (caught) {
      loader.release(pieces);
      // Bytes that failed a check must not be found again.
      if (isFloeError(caught, 'corrupt'))
        for (const { object } of segments) {
          loader.forget(object.objectId);
          this.#options.source.distrust?.(object.key);
        }
      throw caught;
    }
  }

  get #distance(): number {
    return this.#options.settings['log.read.ahead.bytes'];
  }

  #locate(request: ColdReadRequest, fresh: boolean): Segment[] | Promise<Segment[]> {
    const { partitionId, offset, purpose } = request;
    const wantedBytes = request.maxBytes + this.#distance;
    if (!fresh) {
      const recent = this.#recent.segments(partitionId, offset, MAX_SEGMENTS);
      if (recent !== undefined) return recent;
      const now = this.#older.segmentsNow(partitionId, offset, wantedBytes);
      if (now !== undefined) return now;
    }
    return this.#older.segments(partitionId, offset, { wantedBytes, purpose });
  }

  #loader(purpose: ReadPurpose): BlockLoader {
    return purpose === 'consumer' ? this.#hot : this.#cold;
  }

  /** Pins a block for all entries that may be needed, loading those that aren't here. */
  #plan(
    request: ColdReadRequest,
    segments: readonly Segment[],
    how: { readonly cursor: Cursor | undefined; readonly why: LoadReason },
  ): Piece[] {
    const pieces: Piece[] = [];
    // The part of the first entry that an earlier read has returned doesn't count.
    let planned = 0;
    for (const segment of segments) {
      let n = entryAt(segment.columns, [segment.start, segment.end], request.offset);
      if (pieces.length === 0 && n < segment.end)
        planned -= consumed(segment.columns, n, how.cursor);
      while (n < segment.end) {
        const enough = pieces.length > 0 && planned >= request.maxBytes;
        if (enough || segment.columns.baseOffsets[n]! >= request.endOffset) return pieces;
        const why = how.why === 'must' && pieces.length > 0 ? 'read' : how.why;
        const piece = this.#loader(request.purpose).piece({ ...request, why }, segment, n);
        if (piece === undefined) return pieces;
        pieces.push(piece);
        for (; n < piece.end; n += 1) planned += bytesOf(segment.columns, n);
      }
    }
    return pieces;
  }

  /** Checks and slices; remembers where the read ends. */
  #cut(
    request: ColdReadRequest,
    pieces: readonly Piece[],
    cursor: Cursor | undefined,
  ): Pick<ColdRead, 'runs' | 'bytes'> & {
    readonly next: Cursor | undefined;
    readonly whole: number;
  } {
    const collector = new RunCollector();
    let next: Cursor | undefined;
    let whole = 0;
    for (const piece of pieces) {
      this.#check(request.partitionId, piece);
      const cut = cutPiece(piece, request, { collector, cursor });
      next = cut.next ?? next;
      if (!cut.whole) break;
      whole += 1;
    }
    if (next !== undefined) this.#cursors.remember(request.partitionId, next, cursor);
    return { runs: collector.finish(), bytes: collector.bytes, next, whole };
  }

  #check(partitionId: number, { segment, start, end, block }: Piece): void {
    if (block === undefined) return;
    this.#sample += 1;
    const deep = this.#sample % this.#options.settings['log.read.crc.sample'] === 0;
    const { object, columns } = segment;
    const { position, bytes } = block;
    const { clusterTag } = this.#options;
    checkEntries(
      { object, position, bytes, clusterTag },
      { columns, start, end, partitionOf: () => partitionId, deep },
    );
  }

  async commitSteps(partitionId: number, offset: number, endOffset: number): Promise<CommitSteps> {
    const offsets: number[] = [];
    const commits: number[] = [];
    const visit = (from: number, commit: number) => {
      if (commits.at(-1) === commit || (offsets.at(-1) ?? -1) >= from || from >= endOffset) return;
      offsets.push(from);
      commits.push(commit);
    };
    // What memory has begins somewhere; only what lies before it is asked of storage.
    const recent = this.#recent.firstOffset(partitionId);
    if (offset < recent) {
      const end = Math.min(endOffset, recent);
      await this.#older.eachCommit(partitionId, { offset, endOffset: end }, visit);
    }
    this.#recent.eachCommit(partitionId, Math.max(offset, offsets.at(-1) ?? 0), visit);
    return { offsets: Float64Array.from(offsets), commits: Float64Array.from(commits) };
  }

  offsetForTime(
    partitionId: number,
    timestampMs: number,
    range: OffsetRange,
  ): Promise<OffsetAtTime | undefined> {
    return findOffsetForTime(this.#timeIndex(), { partitionId, timestampMs, range });
  }

  maxTimestamp(partitionId: number, range: OffsetRange): Promise<OffsetAtTime | undefined> {
    return findMaxTimestamp(this.#timeIndex(), partitionId, range);
  }

  /** Offset of the first index entry that reaches the time, for retention; undefined when none does. */
  offsetReaching(
    partitionId: number,
    timestampMs: number,
    logStartOffset: number,
  ): Promise<number | undefined> {
    return firstReaching(this.#timeIndex(), {
      partitionId,
      timestampMs,
      range: { logStartOffset },
    });
  }

  #timeIndex() {
    return {
      reader: this,
      recent: this.#recent,
      older: this.#older,
      objects: this.#options.metadata.objects,
    };
  }

  async stop(): Promise<void> {
    this.#stopped = true;
  }
}

/** Bytes of entry `n` before the cursor. */
function consumed(columns: EntryColumns, n: number, cursor: Cursor | undefined): number {
  return cursor?.entryPosition === columns.positions[n] && !isMarker(columns.kinds[n]!)
    ? cursor.position - columns.positions[n]!
    : 0;
}

/** True for a piece of what compaction by key has written. */
function isPlaced({ segment, start, end }: Piece): boolean {
  const { kinds } = segment.columns;
  for (let n = start; n < end; n += 1) if (kinds[n] === EntryKind.PLACED) return true;
  return false;
}

/** Bytes that entry `n` is to a reader. */
function bytesOf(columns: EntryColumns, n: number): number {
  return isMarker(columns.kinds[n]!) ? CONTROL_BATCH_BYTES : columns.lengths[n]!;
}

/** Adds what a read takes of a piece; `whole` is false when it ends within. */
function cutPiece(
  { segment, start, end, block }: Piece,
  request: ColdReadRequest,
  into: { readonly collector: RunCollector; readonly cursor: Cursor | undefined },
): { readonly whole: boolean; readonly next: Cursor | undefined } {
  const { columns, object } = segment;
  const { collector, cursor } = into;
  let next: Cursor | undefined;
  for (let n = start; n < end; n += 1) {
    if (isMarker(columns.kinds[n]!)) {
      const taken = cutMarker(segment, n, request, collector);
      if (taken === undefined) return { whole: false, next };
      next = taken;
      continue;
    }
    assert(block !== undefined, 'a piece with batches has a block');
    const length = columns.lengths[n]!;
    const placed = columns.kinds[n] === EntryKind.PLACED;
    const at = columns.positions[n]! - block.position;
    const left = request.maxBytes - collector.bytes;
    let from: BatchPosition = { at: 0, baseOffset: columns.baseOffsets[n]! };
    let to: BatchPosition = { at: length, baseOffset: entryEnd(columns, n) };
    if (from.baseOffset < request.offset || to.baseOffset > request.endOffset || length > left) {
      const first = collector.bytes === 0;
      const known = first ? (startOf(segment, n, cursor) ?? from) : from;
      const { offset, endOffset } = request;
      const limits = { offset, endOffset, maxBytes: left, first, placed };
      ({ from, to } = cutBatches(block.bytes.subarray(at, at + length), known, limits));
    }
    if (to.at > from.at) {
      const slice = block.bytes.subarray(at + from.at, at + to.at);
      collector.add(slice, from.baseOffset, to.baseOffset, placed);
    }
    const entryPosition = columns.positions[n]!;
    const position = entryPosition + to.at;
    next = { offset: to.baseOffset, objectId: object.objectId, entryPosition, position };
    if (to.at < length) return { whole: false, next };
  }
  assert(next !== undefined, 'a piece holds at least one entry');
  return { whole: true, next };
}

/** Adds the control batch of marker `n`; undefined when the read ends before it. */
function cutMarker(
  { columns, object }: Segment,
  n: number,
  { endOffset, maxBytes }: ColdReadRequest,
  collector: RunCollector,
): Cursor | undefined {
  const baseOffset = columns.baseOffsets[n]!;
  const fits = collector.bytes === 0 || collector.bytes + CONTROL_BATCH_BYTES <= maxBytes;
  if (baseOffset >= endOffset || !fits) return undefined;
  collector.add(controlBatch(columns.marker!(n), baseOffset), baseOffset, baseOffset + 1);
  // Where the next entry lies isn't known here.
  return { offset: baseOffset + 1, objectId: object.objectId, entryPosition: -1, position: -1 };
}

/** The entries that a sequential reader takes next. */
function* entriesAfter(
  segments: readonly Segment[],
  offset: number,
  { endOffset }: ColdReadRequest,
): Generator<readonly [Segment, number]> {
  for (const segment of segments) {
    const { columns, start, end } = segment;
    for (let n = entryAt(columns, [start, end], offset); n < end; n += 1) {
      if (columns.baseOffsets[n]! >= endOffset) return;
      yield [segment, n];
    }
  }
}

/** Where to begin in entry `n`, if an earlier read has left off there. */
function startOf({ object, columns }: Segment, n: number, cursor: Cursor | undefined) {
  if (cursor?.objectId !== object.objectId || cursor.entryPosition !== columns.positions[n])
    return undefined;
  return { at: cursor.position - cursor.entryPosition, baseOffset: cursor.offset };
}
