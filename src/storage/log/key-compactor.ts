// Compaction by key (`cleanup.policy=compact`): rewrites the sealed objects of a partition so that of each key the last
// record is left. A round looks at all compacted partitions, takes those that are due one by one: first it maps the
// keys of what was never compacted, then it rewrites all rows against the map, oldest first, and swaps them object by
// object. Every swap is right by itself, since what takes a record's place is durable; a crash loses the round and
// nothing else. Offsets, order, producer fields stay; rows tile the log, gaps included, and end with a batch (L4).
// Each step is a megabyte or so, so that whoever calls it sets the pace.
// Not for: rules for single records (batch-cleaner.ts), when a partition is due (clean-choice.ts), pace (maintenance.ts).
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import type { LogMetadata, ObjectEntry, PartitionLog } from '../../metadata/log.ts';
import type { Cleaning, ObjectsMetadata } from '../../metadata/objects.ts';
import { EntryKind, entriesOf, isMarker } from '../../metadata/packed-index.ts';
import { baseTimestamp, maxTimestamp } from '../../protocol/record-batch.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { storeFor } from '../objects/purposes.ts';
import { streamKey } from '../paths.ts';
import type { ByteSource } from './byte-source.ts';
import {
  type CleanLook,
  type CompactedPartition,
  type CompactionPolicy,
  groupRows,
  judge,
  sealedEnd,
} from './clean-choice.ts';
import type { ColdReader } from './cold-reader.ts';
import { KEY_SEED_BYTES } from './key-map.ts';
import { loadIndex, objectOf } from './object-entries.ts';
import { PlacedObject, type RowGroup } from './placed-object.ts';
import { planRanges, type Range } from './plan.ts';
import type { RangeCleaner, StoredMarker, StoredRange } from './range-cleaner.ts';
import { damagedObject, isDamage, reading, SetAside } from './set-aside.ts';
import { type SourceShare, shareOf } from './stream-layout.ts';
import { clusterTag } from './wal-format.ts';

export interface KeyCompactorOptions {
  readonly clusterId: string;
  readonly store: ObjectStore;
  readonly source: ByteSource;
  readonly metadata: {
    readonly log: Pick<
      LogMetadata,
      'partitions' | 'entriesFrom' | 'abortedTransactions' | 'forgetAborted'
    >;
    readonly objects: Pick<ObjectsMetadata, 'replace' | 'cleanings' | 'noteCleaned'>;
  };
  readonly reader: Pick<ColdReader, 'read'> & {
    offsetReaching(
      partitionId: number,
      timestampMs: number,
      logStartOffset: number,
    ): Promise<number | undefined>;
  };
  readonly cleaner: RangeCleaner;
  /** All partitions of compacted topics, as configured now. */
  readonly partitions: () => Iterable<CompactedPartition>;
  /** High watermark of a partition as far as this process knows, undefined if it doesn't: such a one is looked at each time. */
  readonly endOf: (partitionId: number) => number | undefined;
  /** Offsets at or above it are still to be read as they are (table topics); Infinity: none. */
  readonly pin: (partitionId: number) => number | Promise<number>;
  /** Seals what is being filled, so that it can be compacted. */
  readonly roll: () => Promise<void>;
  /** Memory of the key map (`log.cleaner.dedupe.buffer.size`). */
  readonly mapBytes: number;
  readonly objectBytes: number;
  readonly blockBytes: number;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly prng: Prng;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** As of CompactorOptions. */
  readonly lease?: LeaseToken;
  /** Told which objects lost rows, after the swap. */
  readonly onReplaced: (objectIds: readonly number[]) => void;
  /** Told of partitions and the offset below which copies in memory are out of date, after the swap. */
  readonly onCompacted: (partitionId: number, endOffset: number) => void;
  /** Told of markers that are about to go, before anybody reads without them: their ranges must not be listed any more. */
  readonly onAbortsGone: (partitionId: number, markerOffsets: readonly number[]) => void;
}

/** Sources are read in ranges this large; gaps this small are read along. */
const RANGE_BYTES = 1024 * 1024;
const GAP_BYTES = 64 * 1024;
const ROWS_AT_ONCE = 256;
/** What is sealed early leaves small files: not more often than this. */
const ROLL_INTERVAL_MS = 5_000;

interface Due {
  readonly partition: PartitionLog;
  readonly policy: CompactionPolicy;
  readonly cleanEnd: number;
  /** Nothing at or above it is compacted. */
  readonly end: number;
}

/** A partition that has nothing to compact until it is written to, its policy changes or tombstones come of age. */
interface AtRest {
  readonly highWatermark: number;
  readonly policy: CompactionPolicy;
  readonly untilMs: number;
  /** Of its bytes that were never compacted. */
  readonly share: number;
}

interface FirstRecord {
  readonly offset: number;
  readonly timeMs: number;
}

interface Totals {
  tombstoneBytes: number;
  bytes: number;
}

export class KeyCompactor {
  readonly #options: KeyCompactorOptions;
  readonly #tag: Uint8Array;
  readonly #scratch = new Uint8Array(new SharedArrayBuffer(RANGE_BYTES));
  #cleanings: Map<number, Cleaning> | undefined;
  /** Partitions whose compaction failed for what they hold. */
  readonly #damaged: SetAside;
  /** Not asked about again: in a log of many compacted partitions nearly all are idle. */
  readonly #atRest = new Map<number, AtRest>();
  /** Times of first records that were never compacted, and of first unsealed ones, as long as they stay the first. */
  readonly #dirtyTimes = new Map<number, FirstRecord>();
  readonly #unsealedTimes = new Map<number, FirstRecord>();
  #round: AsyncGenerator<number> | undefined;
  #object: PlacedObject;
  /** Partitions that the next swap completes. */
  #completed: Cleaning[] = [];
  /** Markers that it leaves out, by partition. */
  #goneAborts = new Map<number, number[]>();
  #rolledMs = Number.NEGATIVE_INFINITY;
  #dirtiest = 0;
  #due = 0;
  #cleanedMs = 0;

  constructor(options: KeyCompactorOptions) {
    this.#options = { ...options, store: storeFor(options.store, 'compaction') };
    this.#tag = clusterTag(options.clusterId);
    this.#object = this.#newObject();
    this.#damaged = new SetAside(options.clock);
    const { metrics } = options;
    metrics.observeGauge(
      'floe_log_cleaner_max_dirty_ratio',
      'Largest share of a compacted partition that was never compacted, at the last look.',
      () => this.#dirtiest,
    );
    metrics.observeGauge(
      'floe_log_cleaner_due_partitions',
      'Compacted partitions that were due at the last look.',
      () => this.#due,
    );
    metrics.observeGauge(
      'floe_log_cleaner_last_timestamp_seconds',
      'When a partition was last compacted by key, 0 before the first.',
      () => this.#cleanedMs / 1_000,
    );
    metrics.observeGauge(
      'floe_log_cleaner_uncleanable_partitions',
      'Compacted partitions that failed for damage when they were last tried.',
      () => this.#damaged.size,
    );
  }

  /**
   * Does the next piece of work. @returns bytes read or written, 0 when nothing is due.
   * What changed under it ends the round, too: the next looks afresh.
   * @throws FloeError; the round ends, and after `corrupt` and `not-found` its partition is left alone for a while.
   */
  async step(): Promise<number> {
    this.#round ??= this.#work();
    try {
      const { value, done } = await this.#round.next();
      if (done !== true) return value;
    } catch (caught) {
      await this.#giveUp();
      // A later swap must not happen without the one before it: a tombstone would go and leave what it deletes.
      if (!isFloeError(caught, 'conflict')) throw caught;
    }
    this.#round = undefined;
    return 0;
  }

  async #giveUp(): Promise<void> {
    this.#round = undefined;
    this.#object = this.#newObject();
    this.#completed = [];
    this.#goneAborts = new Map();
    await this.#options.cleaner.end();
  }

  /** One round over all that is due. Yields bytes. */
  async *#work(): AsyncGenerator<number> {
    const due = await this.#dueNow();
    this.#due = due.length;
    // A row of the new object belongs to one place in its index: partitions ascend.
    due.sort((a, b) => a.partition.partitionId - b.partition.partitionId);
    for (const partition of due) {
      const { partitionId } = partition.partition;
      const rows = await this.#rows(partitionId);
      try {
        yield* this.#compact(partition, rows);
      } catch (caught) {
        if (!isDamage(caught)) throw caught;
        await this.#checkUnchanged(partitionId, rows);
        this.#damage(partitionId, caught);
        throw caught;
      }
    }
    yield* this.#swap();
    if (due.length > 0) await this.#options.cleaner.end();
  }

  /** @throws FloeError `conflict` when others have rewritten a row since: its object may have gone meanwhile. */
  async #checkUnchanged(partitionId: number, rows: readonly ObjectEntry[]): Promise<void> {
    const now = new Set((await this.#rows(partitionId)).map(({ objectId }) => objectId));
    if (rows.every(({ objectId }) => now.has(objectId))) return;
    throw new FloeError('conflict', `partition ${partitionId} changed under its compaction`);
  }

  #damage(partitionId: number, error: FloeError): void {
    const { logger, source } = this.#options;
    const object = damagedObject(error);
    if (object !== undefined) source.distrust?.(object.key);
    this.#damaged.add(partitionId);
    logger.error(
      { partitionId, error: error.message },
      'damaged log object, partition not compacted for now',
    );
  }

  // ---------------------------------------------------------------- what is due

  /** Looks at compacted partitions that aren't at rest; rolls first where what is due lies in the file that is being filled. */
  async #dueNow(): Promise<Due[]> {
    const first = await this.#look();
    const { clock, roll } = this.#options;
    if (!first.roll || clock.monotonic() - this.#rolledMs < ROLL_INTERVAL_MS) return first.due;
    this.#rolledMs = clock.monotonic();
    await roll();
    return (await this.#look()).due;
  }

  async #look(): Promise<{ readonly due: Due[]; readonly roll: boolean }> {
    const { metadata, partitions } = this.#options;
    const cleanings = await this.#known();
    const policies = new Map<number, CompactionPolicy>();
    for (const { partitionId, policy } of partitions()) policies.set(partitionId, policy);
    const due: Due[] = [];
    let roll = false;
    this.#dirtiest = 0;
    const awake = [...policies.keys()].filter((id) => !this.#rests(id, policies.get(id)!));
    for (const partition of awake.length === 0 ? [] : await metadata.log.partitions(awake)) {
      const { partitionId, logStartOffset, highWatermark } = partition;
      const policy = policies.get(partitionId)!;
      if (highWatermark === logStartOffset) {
        this.#atRest.set(partitionId, { highWatermark, policy, untilMs: Infinity, share: 0 });
        continue;
      }
      if (this.#damaged.has(partitionId)) continue;
      const looking = this.#lookAt(partition, policy, cleanings.get(partitionId));
      const look = await this.#orLeave(partitionId, looking);
      if (look === undefined) continue;
      const verdict = judge(look);
      roll ||= verdict.roll;
      const end = Math.min(look.cleanableEnd, sealedEnd(look));
      if (verdict.clean) due.push({ partition, policy, cleanEnd: look.cleanEnd, end });
    }
    for (const known of [this.#atRest, this.#dirtyTimes, this.#unsealedTimes, this.#damaged])
      for (const partitionId of known.keys())
        if (!policies.has(partitionId)) known.delete(partitionId);
    return { due, roll };
  }

  /** Whether a partition is still at rest; its share counts all the same. */
  #rests(partitionId: number, { minDirtyRatio, maxLagMs }: CompactionPolicy): boolean {
    const rest = this.#atRest.get(partitionId);
    if (rest === undefined) return false;
    const end = this.#options.endOf(partitionId) ?? Infinity;
    const still =
      end <= rest.highWatermark &&
      this.#options.clock.now() < rest.untilMs &&
      minDirtyRatio === rest.policy.minDirtyRatio &&
      maxLagMs === rest.policy.maxLagMs;
    if (still) this.#dirtiest = Math.max(this.#dirtiest, rest.share);
    else this.#atRest.delete(partitionId);
    return still;
  }

  /** Undefined also for a partition whose look failed for what it holds. */
  async #orLeave(
    partitionId: number,
    look: Promise<CleanLook | undefined>,
  ): Promise<CleanLook | undefined> {
    try {
      return await look;
    } catch (caught) {
      if (isFloeError(caught, 'corrupt')) this.#damage(partitionId, caught);
      // Deleted, or cut short, since it was looked up.
      else if (!isFloeError(caught, 'not-found')) throw caught;
      return undefined;
    }
  }

  async #known(): Promise<Map<number, Cleaning>> {
    if (this.#cleanings === undefined) {
      const all = await this.#options.metadata.objects.cleanings();
      this.#cleanings = new Map(all.map((cleaning) => [cleaning.partitionId, cleaning]));
    }
    return this.#cleanings;
  }

  /** Undefined when a partition holds nothing that was not compacted. */
  async #lookAt(
    partition: PartitionLog,
    policy: CompactionPolicy,
    cleaning: Cleaning | undefined,
  ): Promise<CleanLook | undefined> {
    const { partitionId, logStartOffset: logStart, highWatermark, sizeBytes } = partition;
    const nowMs = this.#options.clock.now();
    const cleanEnd = Math.max(logStart, cleaning?.cleanEnd ?? 0);
    const expired = cleaning !== undefined && nowMs >= cleaning.horizonMs;
    const expiredBytes = expired ? cleaning.tombstoneBytes : 0;
    const waits = cleaning !== undefined && !expired && cleaning.tombstoneBytes > 0;
    const untilMs = waits ? cleaning.horizonMs : Infinity;
    if (cleanEnd >= highWatermark && expiredBytes === 0) {
      this.#atRest.set(partitionId, { highWatermark, policy, untilMs, share: 0 });
      return undefined;
    }
    // Sizes are in memory, rows are not: most partitions are found at rest without asking for them.
    const dirty = sizeBytes - (cleaning?.cleanBytes ?? 0) + expiredBytes;
    const share = Math.min(1, dirty / Math.max(1, sizeBytes));
    this.#dirtiest = Math.max(this.#dirtiest, share);
    if (share <= policy.minDirtyRatio && policy.maxLagMs === Infinity) {
      this.#atRest.set(partitionId, { highWatermark, policy, untilMs, share });
      return undefined;
    }
    const rows = await this.#rows(partitionId);
    const sealed = sealedEnd({ rows, logStart });
    return {
      policy,
      nowMs,
      logStart,
      rows,
      cleanEnd,
      expiredBytes,
      sizeBytes,
      highWatermark,
      cleanableEnd: await this.#cleanableEnd(partition, policy, nowMs),
      oldestDirtyMs: Number.isFinite(policy.maxLagMs)
        ? await this.#timeOf(partition, cleanEnd, this.#dirtyTimes)
        : -1,
      oldestUnsealedMs: await this.#timeOf(partition, sealed, this.#unsealedTimes),
    };
  }

  async #cleanableEnd(
    { partitionId, logStartOffset, lastStableOffset }: PartitionLog,
    { minLagMs }: CompactionPolicy,
    nowMs: number,
  ): Promise<number> {
    const { reader, pin } = this.#options;
    const young =
      minLagMs > 0
        ? await reader.offsetReaching(partitionId, nowMs - minLagMs + 1, logStartOffset)
        : undefined;
    return Math.min(lastStableOffset, young ?? Infinity, await pin(partitionId));
  }

  async #rows(partitionId: number): Promise<readonly ObjectEntry[]> {
    const rows: ObjectEntry[] = [];
    for (let from = 0; ; ) {
      const page = await this.#options.metadata.log.entriesFrom(partitionId, from, ROWS_AT_ONCE);
      // Others have merged what was read with what comes now: from the start.
      if (rows.length > 0 && page[0] !== undefined && page[0].baseOffset < from)
        return this.#rows(partitionId);
      rows.push(...page);
      if (page.length < ROWS_AT_ONCE) return rows;
      from = page.at(-1)!.endOffset;
    }
  }

  /** Time of the first record of the batch at `offset`, −1 when there is none. */
  async #timeOf(
    partition: PartitionLog,
    offset: number,
    times: Map<number, FirstRecord>,
  ): Promise<number> {
    const { partitionId, highWatermark: endOffset } = partition;
    if (offset >= endOffset) return -1;
    const known = times.get(partitionId);
    if (known?.offset === offset) return known.timeMs;
    const request = {
      partitionId,
      offset,
      endOffset,
      maxBytes: 1,
      purpose: 'maintenance',
    } as const;
    const { runs, release } = await this.#options.reader.read(request);
    try {
      const bytes = runs[0]!.bytes;
      const timeMs = Math.min(baseTimestamp(bytes), maxTimestamp(bytes));
      times.set(partitionId, { offset, timeMs });
      return timeMs;
    } finally {
      release();
    }
  }

  // ---------------------------------------------------------------- one partition

  async *#compact(due: Due, all: readonly ObjectEntry[]): AsyncGenerator<number> {
    const { cleaner, prng, mapBytes, objectBytes, clock } = this.#options;
    const { log } = this.#options.metadata;
    const { partitionId, logStartOffset: logStart } = due.partition;
    const rows = all.filter((row) => row.endOffset > logStart);
    await cleaner.begin(prng.bytes(KEY_SEED_BYTES), mapBytes);
    await cleaner.pass(await log.abortedTransactions(partitionId, due.cleanEnd, due.end));
    const mapEnd = yield* this.#mapKeys(due, rows);
    await cleaner.pass(await log.abortedTransactions(partitionId, logStart, mapEnd));
    const nowMs = clock.now();
    const totals: Totals = { tombstoneBytes: 0, bytes: 0 };
    let runningMax = -1;
    for (const group of groupRows(rows, { logStart, end: mapEnd, bytes: objectBytes })) {
      if (this.#object.bytes >= objectBytes) yield* this.#swap();
      runningMax = yield* this.#rewrite(
        { partitionId, rows: group, runningMax },
        { due, mapEnd, nowMs, totals },
      );
    }
    this.#completed.push({
      partitionId,
      cleanEnd: mapEnd,
      cleanBytes: totals.bytes,
      tombstoneBytes: totals.tombstoneBytes,
      horizonMs: nowMs + due.policy.deleteRetentionMs,
      cleanedMs: nowMs,
    });
    this.#options.metrics.count(
      'floe_log_cleaner_partitions_total',
      'Partitions compacted by key.',
    );
  }

  /** Returns the offset up to which the map knows all keys. */
  async *#mapKeys(
    { cleanEnd, end }: Due,
    rows: readonly ObjectEntry[],
  ): AsyncGenerator<number, number> {
    for (const row of rows) {
      if (row.endOffset <= cleanEnd || row.baseOffset >= end) continue;
      for await (const range of this.#ranges(row, cleanEnd)) {
        const request = { range, fromOffset: cleanEnd, endOffset: end };
        const { full, nextOffset } = await reading(range.object, () =>
          this.#options.cleaner.addKeys(request),
        );
        yield range.bytes.length;
        if (full) return nextOffset;
      }
    }
    return end;
  }

  /** Returns the running maximum timestamp after the group. */
  async *#rewrite(
    group: RowGroup,
    how: {
      readonly due: Due;
      readonly mapEnd: number;
      readonly nowMs: number;
      readonly totals: Totals;
    },
  ): AsyncGenerator<number, number> {
    const { due, mapEnd, nowMs, totals } = how;
    const { deleteRetentionMs } = due.policy;
    const { logStartOffset: logStart } = due.partition;
    const keepEnd = group.rows.at(-1)!.endOffset;
    const rules = { mapEnd, nowMs, deleteRetentionMs, logStart, keepEnd };
    this.#object.begin(group);
    for (const row of group.rows) {
      for await (const range of this.#ranges(row, logStart)) {
        const cleaned = await reading(range.object, () =>
          this.#options.cleaner.clean({ range, ...rules }),
        );
        this.#object.add(cleaned);
        totals.tombstoneBytes += cleaned.tombstoneBytes;
        if (cleaned.goneAborts.length > 0) this.#noteGone(group.partitionId, cleaned.goneAborts);
        yield range.bytes.length;
      }
    }
    const { bytes, maxTimestamp: runningMax } = this.#object.end();
    // A row that reaches past the map is as good as dirty.
    if (keepEnd <= mapEnd) totals.bytes += bytes;
    return runningMax;
  }

  #noteGone(partitionId: number, markerOffsets: readonly number[]): void {
    const known = this.#goneAborts.get(partitionId);
    if (known === undefined) this.#goneAborts.set(partitionId, [...markerOffsets]);
    else known.push(...markerOffsets);
  }

  /** The entries of a row that end above `fromOffset`, a range at a time. */
  async *#ranges(row: ObjectEntry, fromOffset: number): AsyncGenerator<StoredRange> {
    const { source } = this.#options;
    const index = await loadIndex(source, row, 'maintenance');
    const range = entriesOf(index, row.partitionId);
    const share = shareOf(row, objectOf(row), { index, range }, fromOffset);
    if (share === undefined) return;
    const { columns, markers } = entriesOfShare(share);
    const limits = { maxGap: GAP_BYTES, maxRange: RANGE_BYTES };
    const planned = planRanges(columns, [0, columns.count], limits);
    if (planned.length === 0) yield storedRange(share, columns, { ...NO_RANGE, markers });
    for (const [n, range] of planned.entries()) {
      const bytes =
        range.length <= this.#scratch.length
          ? this.#scratch.subarray(0, range.length)
          : new Uint8Array(new SharedArrayBuffer(range.length));
      const read = [{ position: range.position, into: bytes }];
      await reading(share.object, () =>
        source.read(share.object, read, { purpose: 'maintenance' }),
      );
      const next = planned[n + 1];
      const until = next === undefined ? Infinity : columns.baseOffsets[next.start]!;
      const count = markers.findIndex(({ offset }) => offset >= until);
      const among = markers.splice(0, count === -1 ? markers.length : count);
      yield storedRange(share, columns, { ...range, bytes, markers: among });
    }
  }

  // ---------------------------------------------------------------- swap

  #newObject(): PlacedObject {
    return new PlacedObject({ blockBytes: this.#options.blockBytes, clusterTag: this.#tag });
  }

  /**
   * Writes the object under way and swaps its rows in, with what it completes.
   * @throws FloeError `conflict` when a source changed meanwhile: the object is an orphan.
   */
  async *#swap(): AsyncGenerator<number> {
    const object = this.#object;
    const completed = this.#completed;
    const goneAborts = this.#goneAborts;
    this.#object = this.#newObject();
    this.#completed = [];
    this.#goneAborts = new Map();
    const { objects, log } = this.#options.metadata;
    // A range without its marker would make readers leave out what its producer wrote later (L7). Without its range a
    // marker means nothing, and its records are gone: so the ranges go first.
    for (const [partitionId, offsets] of goneAborts) {
      await log.forgetAborted(partitionId, offsets);
      this.#options.onAbortsGone(partitionId, offsets);
    }
    if (object.groups.length === 0) {
      if (completed.length > 0) await objects.noteCleaned(completed);
    } else {
      yield await this.#replace(object, completed);
    }
    for (const cleaning of completed) {
      this.#cleanings!.set(cleaning.partitionId, cleaning);
      this.#damaged.delete(cleaning.partitionId);
      this.#cleanedMs = cleaning.cleanedMs;
    }
  }

  async #replace(object: PlacedObject, cleanings: readonly Cleaning[]): Promise<number> {
    const { clusterId, store, clock, ids, metadata, metrics, logger } = this.#options;
    const { onReplaced, onCompacted, lease } = this.#options;
    const { body, entries } = object.finish();
    const bytes = body.reduce((sum, part) => sum + part.length, 0);
    const key = streamKey(clusterId, { timeMs: clock.now(), id: ids.uuid() });
    await store.put(key, body, { ifNoneMatch: true });
    const replaced = object.groups.flatMap((group) => group.rows);
    const nowMs = clock.now();
    await metadata.objects.replace({
      object: { key, bytes },
      entries,
      replaced,
      openObjects: [],
      cleanings,
      ...(lease === undefined ? {} : { lease }),
      nowMs,
    });
    const before = replaced.reduce((sum, row) => sum + row.bytes, 0);
    metrics.count(
      'floe_log_cleaner_read_bytes_total',
      'Bytes of rows replaced by compaction by key.',
      {},
      before,
    );
    metrics.count(
      'floe_log_cleaner_written_bytes_total',
      'Bytes written by compaction by key.',
      {},
      bytes,
    );
    logger.debug({ rows: replaced.length, before, after: bytes }, 'log compacted by key');
    onReplaced([...new Set(replaced.map((row) => row.objectId))]);
    for (const { partitionId, endOffset } of entries) onCompacted(partitionId, endOffset);
    return bytes;
  }
}

/** Entries with bytes, as columns of their own, and the markers among them. */
function entriesOfShare({ index, start, end }: SourceShare) {
  const withBytes: number[] = [];
  const markers: StoredMarker[] = [];
  for (let n = start; n < end; n += 1) {
    if (!isMarker(index.kinds[n]!)) withBytes.push(n);
    else markers.push({ offset: index.baseOffsets[n]!, marker: index.marker(n) });
  }
  const words = (column: Uint32Array) => Uint32Array.from(withBytes, (n) => column[n]!);
  const columns = {
    count: withBytes.length,
    baseOffsets: Float64Array.from(withBytes, (n) => index.baseOffsets[n]!),
    maxTimestamps: Float64Array.from(withBytes, (n) => index.maxTimestamps[n]!),
    offsetSpans: words(index.offsetSpans),
    positions: words(index.positions),
    lengths: words(index.lengths),
    blockPositions: words(index.blockPositions),
    kinds: Uint8Array.from(withBytes, (n) => index.kinds[n]!),
  };
  return { columns, markers };
}

const NO_RANGE = { position: 0, start: 0, end: 0, bytes: new Uint8Array(0) };

function storedRange(
  { object, partitionId }: SourceShare,
  columns: ReturnType<typeof entriesOfShare>['columns'],
  range: Omit<Range, 'length'> & Pick<StoredRange, 'bytes' | 'markers'>,
): StoredRange {
  const { position, start, end, bytes, markers } = range;
  return {
    object,
    partitionId,
    position,
    bytes,
    positions: columns.positions.slice(start, end),
    lengths: columns.lengths.slice(start, end),
    blockPositions: columns.blockPositions.slice(start, end),
    baseOffsets: columns.baseOffsets.slice(start, end),
    placed: columns.kinds.slice(start, end).map((kind) => (kind === EntryKind.PLACED ? 1 : 0)),
    markers,
  };
}
