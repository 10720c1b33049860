// Reads from storage what the tail cache no longer holds: entries → ranges → blocks → slices. Bytes stay raw and are
// never copied but for short slices. A plan that proves stale (a missing object, a block header that says otherwise)
// is made again once from the metadata store; if that fails too, this partition is damaged, and nothing else.
// Not for: watermarks, budgets over partitions and the tail (read-front.ts), how ranges are chosen (plan.ts).
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Values } from '../../base/settings.ts';
import type { LogMetadata } from '../../metadata/log.ts';
import type { ObjectsMetadata } from '../../metadata/objects.ts';
import { openIndex } from '../../metadata/packed-index.ts';
import { cutBatches, RunCollector } from './batch-cut.ts';
import { type Block, BlockCache } from './block-cache.ts';
import { checkRange } from './block-check.ts';
import type { ByteSource, ReadPurpose } from './byte-source.ts';
import type { ColdRead, ColdReader, ColdReadRequest } from './cold-reader.ts';
import { type Cursor, Cursors } from './cursors.ts';
import {
  type EntryColumns,
  entryAt,
  entryEnd,
  entryEndByte,
  entryStartByte,
  type Segment,
} from './entries.ts';
import { IndexCache } from './index-cache.ts';
import type { OffsetAtTime } from './log.ts';
import { ObjectEntries } from './object-entries.ts';
import { entriesFor, growRange, type PlanLimits, type Range } from './plan.ts';
import type { readSettings } from './read-settings.ts';
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
    readonly log: Pick<LogMetadata, 'entriesFrom' | 'flushesAfter'>;
    readonly objects: Pick<ObjectsMetadata, 'entryAtTime'>;
  };
  readonly settings: Values<typeof readSettings>;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Objects whose entries one read goes through at most; the next read goes on. */
const MAX_SEGMENTS = 64;
/** A read call brings at least this much where it lies together, however little was asked for. */
const MIN_RANGE_BYTES = 256 * 1024;
const MAX_CURSOR_PARTITIONS = 10_000;

/** Entries `[start, end)` of a segment, in one block. */
interface Piece {
  readonly segment: Segment;
  readonly start: number;
  readonly end: number;
  readonly block: Block;
}

export class LogReader implements ColdReader {
  readonly #options: LogReaderOptions;
  readonly #limits: PlanLimits;
  readonly #recent: IndexCache;
  readonly #older: ObjectEntries;
  readonly #hot: BlockCache;
  readonly #cold: BlockCache;
  readonly #cursors = new Cursors(MAX_CURSOR_PARTITIONS);
  #sample = 0;
  #followedBytes = 0;
  #stopped = false;

  constructor(options: LogReaderOptions) {
    const { settings, source, metadata } = options;
    this.#options = options;
    this.#limits = {
      maxGap: settings['log.read.gap.bytes'],
      maxRange: settings['log.read.range.bytes'],
    };
    this.#recent = new IndexCache(settings['log.read.recent.index.bytes']);
    this.#older = new ObjectEntries({
      metadata: metadata.log,
      source,
      maxIndexBytes: settings['log.read.index.bytes'],
    });
    this.#hot = new BlockCache(settings['log.read.cache.bytes']);
    this.#cold = new BlockCache(settings['log.read.cold.cache.bytes']);
    this.#observe();
  }

  #observe(): void {
    const { metrics } = this.#options;
    for (const [name, cache] of [
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

  follow(flush: Pick<FlushReply, 'objectId' | 'objectKey' | 'generation' | 'index'>): void {
    const { objectId, objectKey: key, generation } = flush;
    const index = openIndex(flush.index);
    this.#recent.add({ object: { objectId, key, generation }, index });
    for (const length of index.lengths) this.#followedBytes += length;
  }

  sealed(objectId: number): void {
    this.#recent.sealed(objectId);
  }

  /** Objects were replaced by compaction: rows of theirs are asked afresh, blocks and recent entries let go. */
  replaced(objectIds: readonly number[]): void {
    this.#older.forgetAll();
    for (const objectId of objectIds) {
      this.#recent.sealed(objectId);
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
    return this.#hot.stats;
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
    const pieces = this.#plan(request, segments, cursor);
    const release = () => {
      for (const { block } of pieces.splice(0)) this.#cache(request.purpose).unpin(block);
    };
    try {
      for (const { block } of pieces) if (!block.loaded) await block.ready;
      return { ...this.#cut(request, pieces, { segments, cursor }), release };
    } catch (caught) {
      release();
      throw caught;
    }
  }

  #locate(request: ColdReadRequest, fresh: boolean): Segment[] | Promise<Segment[]> {
    const { partitionId, offset, purpose } = request;
    const wantedBytes = request.maxBytes + this.#options.settings['log.read.ahead.bytes'];
    if (!fresh) {
      const recent = this.#recent.segments(partitionId, offset, MAX_SEGMENTS);
      if (recent !== undefined) return recent;
      const now = this.#older.segmentsNow(partitionId, offset, wantedBytes);
      if (now !== undefined) return now;
    }
    return this.#older.segments(partitionId, offset, { wantedBytes, purpose });
  }

  #cache(purpose: ReadPurpose): BlockCache {
    return purpose === 'consumer' ? this.#hot : this.#cold;
  }

  /** Pins a block for all entries that may be needed, loading those that aren't here. */
  #plan(
    request: ColdReadRequest,
    segments: readonly Segment[],
    cursor: Cursor | undefined,
  ): Piece[] {
    const pieces: Piece[] = [];
    // The part of the first entry that an earlier read has returned doesn't count.
    let planned = 0;
    for (const segment of segments) {
      let n = entryAt(segment.columns, [segment.start, segment.end], request.offset);
      if (pieces.length === 0 && n < segment.end) planned -= consumed(segment.columns, n, cursor);
      while (n < segment.end) {
        const enough = pieces.length > 0 && planned >= request.maxBytes;
        if (enough || segment.columns.baseOffsets[n]! >= request.endOffset) return pieces;
        const piece = this.#piece(request, segment, n, pieces.length === 0);
        if (piece === undefined) return pieces;
        pieces.push(piece);
        for (; n < piece.end; n += 1) planned += segment.columns.lengths[n]!;
      }
    }
    return pieces;
  }

  #piece(request: ColdReadRequest, segment: Segment, n: number, first: boolean): Piece | undefined {
    const { columns, object } = segment;
    const cache = this.#cache(request.purpose);
    const found = cache.find(object.objectId, entryStartByte(columns, n), entryEndByte(columns, n));
    if (found !== undefined)
      return { segment, start: n, end: coveredEnd(segment, n, found), block: found };
    const block = this.#load(request, segment, n, { must: first, maxBytes: request.maxBytes });
    return block === undefined
      ? undefined
      : { segment, start: n, end: coveredEnd(segment, n, block), block };
  }

  #load(
    { partitionId, purpose }: Pick<ColdReadRequest, 'partitionId' | 'purpose'>,
    segment: Segment,
    n: number,
    { must, maxBytes }: { readonly must: boolean; readonly maxBytes: number },
  ): Block | undefined {
    const { columns, object } = segment;
    const wanted = entriesFor(columns, [n, segment.end], Math.max(maxBytes, MIN_RANGE_BYTES));
    const range = growRange(columns, [n, wanted.end], this.#limits);
    const { objectId } = object;
    const { position, length } = range;
    return this.#cache(purpose).load(
      { objectId, position, length },
      async (bytes) => {
        await this.#options.source.read(object, [{ position, into: bytes }], { purpose });
        this.#check(bytes, partitionId, segment, range);
      },
      must,
    );
  }

  #check(bytes: Uint8Array, partitionId: number, { object, columns }: Segment, range: Range): void {
    this.#sample += 1;
    const deep = this.#sample % this.#options.settings['log.read.crc.sample'] === 0;
    const { clusterTag } = this.#options;
    const partitionOf = () => partitionId;
    checkRange(bytes, { object, partitionOf, columns, range, clusterTag, deep });
  }

  #cut(
    request: ColdReadRequest,
    pieces: readonly Piece[],
    {
      segments,
      cursor,
    }: { readonly segments: readonly Segment[]; readonly cursor: Cursor | undefined },
  ): Pick<ColdRead, 'runs' | 'bytes'> {
    const collector = new RunCollector();
    let next: Cursor | undefined;
    for (const { segment, start, end, block } of pieces) {
      const { columns } = segment;
      for (let n = start; n < end; n += 1) {
        const length = columns.lengths[n]!;
        const at = columns.positions[n]! - block.position;
        const left = request.maxBytes - collector.bytes;
        const baseOffset = columns.baseOffsets[n]!;
        const endOffset = entryEnd(columns, n);
        let [from, to] = [0, length];
        let [fromOffset, toOffset] = [baseOffset, endOffset];
        if (baseOffset < request.offset || endOffset > request.endOffset || length > left) {
          const entry = block.bytes.subarray(at, at + length);
          const known = collector.bytes === 0 ? startOf(segment, n, cursor) : undefined;
          const cut = cutBatches(entry, known ?? { at: 0, baseOffset }, {
            offset: request.offset,
            endOffset: request.endOffset,
            maxBytes: left,
            first: collector.bytes === 0,
          });
          [from, to] = [cut.from.at, cut.to.at];
          [fromOffset, toOffset] = [cut.from.baseOffset, cut.to.baseOffset];
        }
        if (to > from)
          collector.add(block.bytes.subarray(at + from, at + to), fromOffset, toOffset);
        next = {
          offset: toOffset,
          objectId: segment.object.objectId,
          entryPosition: columns.positions[n]!,
          position: columns.positions[n]! + to,
        };
        if (to < length) return this.#finish(request, collector, { segments, cursor, next });
      }
    }
    return this.#finish(request, collector, { segments, cursor, next });
  }

  #finish(
    request: ColdReadRequest,
    collector: RunCollector,
    after: {
      readonly segments: readonly Segment[];
      readonly cursor: Cursor | undefined;
      readonly next: Cursor | undefined;
    },
  ): Pick<ColdRead, 'runs' | 'bytes'> {
    const { segments, cursor, next } = after;
    if (next !== undefined) this.#cursors.remember(request.partitionId, next, cursor);
    if (next !== undefined && cursor !== undefined) this.#readAhead(request, segments, next.offset);
    return { runs: collector.finish(), bytes: collector.bytes };
  }

  /**
   * Keeps the next blocks of a sequential reader coming: when less than half of the distance is loaded, the rest is.
   * Takes only memory that nobody holds.
   */
  #readAhead(request: ColdReadRequest, segments: readonly Segment[], offset: number): void {
    const distance = this.#options.settings['log.read.ahead.bytes'];
    const cache = this.#cache(request.purpose);
    let ahead = 0;
    let loading = false;
    for (const segment of segments) {
      const { columns, object } = segment;
      let n = entryAt(columns, [segment.start, segment.end], offset);
      while (n < segment.end && ahead < distance && columns.baseOffsets[n]! < request.endOffset) {
        let block = cache.find(
          object.objectId,
          entryStartByte(columns, n),
          entryEndByte(columns, n),
        );
        if (block === undefined) {
          if (!loading && ahead >= distance / 2) return;
          loading = true;
          block = this.#load(request, segment, n, { must: false, maxBytes: distance - ahead });
        }
        if (block === undefined) return;
        const end = coveredEnd(segment, n, block);
        cache.unpin(block);
        for (; n < end; n += 1) ahead += columns.lengths[n]!;
      }
      if (ahead >= distance) return;
    }
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
  return cursor?.entryPosition === columns.positions[n]
    ? cursor.position - columns.positions[n]!
    : 0;
}

/** Where to begin in entry `n`, if an earlier read has left off there. */
function startOf({ object, columns }: Segment, n: number, cursor: Cursor | undefined) {
  if (cursor?.objectId !== object.objectId || cursor.entryPosition !== columns.positions[n])
    return undefined;
  return { at: cursor.position - cursor.entryPosition, baseOffset: cursor.offset };
}

/** The end of the entries from `n` on that lie whole in a block. */
function coveredEnd({ columns, end }: Segment, n: number, block: Block): number {
  const blockEnd = block.position + block.length;
  let to = n + 1;
  while (
    to < end &&
    entryStartByte(columns, to) >= block.position &&
    entryEndByte(columns, to) <= blockEnd
  )
    to += 1;
  return to;
}
