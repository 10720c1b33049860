// Rewrites scattered, dead and small shares into stream objects, one object a step, off the produce path. A step reads
// its sources, writes the object, and swaps rows in one transaction that checks the sources; a step that fails leaves
// an orphan for the sweep and nothing else. Also turns the objects of single flushes (S3) into stream objects.
// Not for: when steps run (maintenance.ts), deletion of what was replaced (collector.ts).
import type { Clock } from '../../base/clock.ts';
import { isFloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource } from '../../base/prng.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import type { FlushRow, LogMetadata, ObjectEntry } from '../../metadata/log.ts';
import type { ObjectsMetadata, ObjectUse } from '../../metadata/objects.ts';
import {
  endOffset,
  entriesOf,
  openIndex,
  type PackedIndex,
  partitionsIn,
} from '../../metadata/packed-index.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { storeFor } from '../objects/purposes.ts';
import { streamKey } from '../paths.ts';
import type { ByteSource } from './byte-source.ts';
import { type ChoiceLimits, type CompactionJob, chooseJob } from './compact-choice.ts';
import { loadIndex, objectOf } from './object-entries.ts';
import { layoutStream, type SourceShare, shareOf } from './stream-layout.ts';
import { fillStream } from './stream-writer.ts';
import { BLOCK_HEADER_BYTES, clusterTag } from './wal-format.ts';

export interface CompactorOptions {
  readonly clusterId: string;
  readonly store: ObjectStore;
  readonly source: ByteSource;
  readonly metadata: {
    readonly log: Pick<LogMetadata, 'partitions'>;
    readonly objects: ObjectsMetadata;
  };
  readonly limits: ChoiceLimits;
  /** Target size of a block with its header; several, or one, are a read call. */
  readonly blockBytes: number;
  /** Size of reads from the source. Default: 1 MiB. */
  readonly rangeBytes?: number;
  /** How many are under way at once: a store takes its time, however small they are. Default: 1. */
  readonly parallelReads?: number;
  /** Objects of single flushes wait for one another this long, unless they fill an object. Default: their least age. */
  readonly gatherMs?: number;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** The right to maintain the log, which every swap asserts. Undefined: nobody else could. */
  readonly lease?: LeaseToken;
  /** Makes the bytes of a laid-out object. Default: {@link fillStream}; the simulated month has sizes only. */
  readonly fill?: typeof fillStream;
  /** Told which objects lost rows, after the swap. */
  readonly onReplaced: (objectIds: readonly number[]) => void;
}

/** As much as two read calls of a spinning disk cost. */
const RANGE_BYTES = 1024 * 1024;
/** Objects looked at per step. */
const LOOK_AT_ONCE = 16;
/** A merge makes shares at least this part of the fan-in larger: with less, bytes are written too often on their way. */
const WORTH_SHARE = 0.5;
/** Unsealed objects taken together at most: what a broker at rest writes in two minutes. */
const MAX_OPEN_SOURCES = 512;

/** Rows or flushes that give way, and what of them is kept. */
interface Work {
  readonly rows: readonly ObjectEntry[];
  readonly openObjects: readonly number[];
  /** Newest commit in them. */
  readonly openCommit?: number;
  readonly shares: readonly SourceShare[];
}

export class Compactor {
  readonly #options: CompactorOptions;
  readonly #tag: Uint8Array;
  /** What is left of sealed objects, as of the last look. */
  readonly #uses = new Map<number, ObjectUse>();
  readonly #settled = new Set<number>();
  /** Objects whose rewriting failed for what they hold: left alone until a restart. */
  readonly #damaged = new Set<number>();
  /** The same of unsealed objects, which are taken in order only: every other step leaves them out. */
  #openDamaged = false;
  /** Objects of a merge, by tier; more while those that were looked at had too few partitions in common. */
  readonly #fanIns = new Map<number, number>();
  #seen = new Set<number>();
  #after = 0;
  #job: CompactionJob | undefined;
  #buffer = new Uint8Array(0);

  constructor(options: CompactorOptions) {
    this.#options = { ...options, store: storeFor(options.store, 'compaction') };
    this.#tag = clusterTag(options.clusterId);
  }

  /**
   * Does one object's worth of work. @returns bytes written, 0 when there was nothing to do.
   * @throws FloeError; after `corrupt` and `not-found` the next step leaves alone what failed, so that one damaged
   * object doesn't keep all others from being rewritten.
   */
  async step(): Promise<number> {
    await this.#look();
    const { limits, gatherMs = limits.minAgeMs } = this.#options;
    const skipOpen = this.#openDamaged;
    this.#openDamaged = false;
    const open = skipOpen ? undefined : await this.#openWork(gatherMs);
    if (open !== undefined) {
      return this.#orLeave(this.#rewrite(open), () => {
        this.#openDamaged = true;
      });
    }
    this.#job ??= this.#choose();
    if (this.#job === undefined) {
      this.#buffer = new Uint8Array(0);
      return 0;
    }
    const job = this.#job;
    const done = await this.#orLeave(this.#rewriteSealed(job), () => {
      for (const objectId of job.objectIds) this.#damaged.add(objectId);
      this.#forgetJob(job);
    });
    return done ?? this.step();
  }

  /** Objects of single flushes become one stream object at once, however young. @returns bytes written. */
  async gather(): Promise<number> {
    const open = await this.#openWork(0);
    return open === undefined ? 0 : this.#rewrite(open);
  }

  async #orLeave<T>(work: Promise<T>, leave: () => void): Promise<T> {
    try {
      return await work;
    } catch (caught) {
      if (isFloeError(caught, 'corrupt', 'not-found')) {
        this.#options.logger.error({ error: caught.message }, 'damaged log object, not rewritten');
        leave();
      }
      throw caught;
    }
  }

  /** Undefined when the job had nothing left. */
  async #rewriteSealed(job: CompactionJob): Promise<number | undefined> {
    const work = await this.#sealedWork(job);
    if (work !== undefined) return this.#rewrite(work);
    this.#forgetJob(job);
    return undefined;
  }

  #choose(): CompactionJob | undefined {
    const uses = [...this.#uses.values()]
      .filter(({ object }) => !this.#damaged.has(object.objectId))
      .sort((a, b) => a.object.objectId - b.object.objectId);
    const { clock, limits } = this.#options;
    const fanInOf = (tier: number) => this.#fanIns.get(tier) ?? limits.fanIn;
    return chooseJob(uses, clock.now(), { limits, settled: this.#settled, fanInOf });
  }

  #forgetJob({ objectIds }: CompactionJob): void {
    this.#job = undefined;
    for (const objectId of objectIds) this.#uses.delete(objectId);
  }

  /** Looks at the next few objects; after a whole round those that are gone are forgotten. */
  async #look(): Promise<void> {
    for (;;) {
      const found = await this.#options.metadata.objects.uses(this.#after, LOOK_AT_ONCE);
      for (const use of found) {
        this.#uses.set(use.object.objectId, use);
        this.#seen.add(use.object.objectId);
      }
      const round = found.length < LOOK_AT_ONCE;
      this.#after = round ? 0 : found.at(-1)!.object.objectId;
      if (!round) return;
      for (const known of [this.#uses, this.#settled, this.#damaged])
        for (const objectId of known.keys()) if (!this.#seen.has(objectId)) known.delete(objectId);
      this.#seen = new Set();
      return;
    }
  }

  /** The next rows of a job, up to one object; undefined when none are left or it isn't worth it. */
  async #sealedWork(job: CompactionJob): Promise<Work | undefined> {
    const rows = await this.#options.metadata.objects.entriesOf(job.objectIds);
    if (rows.length === 0 || !this.#pays(job, rows)) return undefined;
    const taken: ObjectEntry[] = [];
    let bytes = 0;
    for (const row of rows) {
      if (taken.length > 0 && bytes + row.bytes > this.#options.limits.objectBytes) break;
      taken.push(row);
      bytes += row.bytes;
    }
    return { rows: taken, openObjects: [], shares: await this.#sharesOf(taken) };
  }

  /** A merge of objects that share few partitions would do little but move bytes. */
  #pays({ reason, objectIds, tier = 0 }: CompactionJob, rows: readonly ObjectEntry[]): boolean {
    if (reason !== 'merge') return true;
    const { fanIn: least, maxFanIn = least } = this.#options.limits;
    const fanIn = this.#fanIns.get(tier) ?? least;
    const partitions = new Set(rows.map((row) => row.partitionId)).size;
    if (rows.length >= partitions * Math.max(2, least * WORTH_SHARE)) return true;
    // With those that came later they may have partitions in common.
    if (fanIn * 2 <= maxFanIn && objectIds.length === fanIn) {
      this.#fanIns.set(tier, fanIn * 2);
      return false;
    }
    this.#fanIns.delete(tier);
    for (const objectId of objectIds) this.#settled.add(objectId);
    return false;
  }

  async #sharesOf(rows: readonly ObjectEntry[]): Promise<SourceShare[]> {
    const logStarts = await this.#logStarts(rows.map((row) => row.partitionId));
    const indexes = new Map<string, PackedIndex>();
    const shares: SourceShare[] = [];
    for (const row of rows) {
      const logStart = logStarts.get(row.partitionId);
      if (logStart === undefined || row.endOffset <= logStart) continue;
      const key = `${row.objectId}:${row.indexPosition}`;
      const index = indexes.get(key) ?? (await loadIndex(this.#options.source, row, 'maintenance'));
      indexes.set(key, index);
      const range = entriesOf(index, row.partitionId);
      const share = shareOf(row, objectOf(row), { index, range }, logStart);
      if (share !== undefined) shares.push(share);
    }
    return shares;
  }

  async #logStarts(partitionIds: readonly number[]): Promise<Map<number, number>> {
    const logs = await this.#options.metadata.log.partitions([...new Set(partitionIds)]);
    return new Map(logs.map((log) => [log.partitionId, log.logStartOffset]));
  }

  /** Objects of single flushes, oldest first, up to one object: when they fill it or the oldest has waited long enough. */
  async #openWork(gatherMs: number): Promise<Work | undefined> {
    const { metadata, limits, clock } = this.#options;
    const open = await metadata.objects.list('open', 0, MAX_OPEN_SOURCES);
    const minAgeMs = Math.min(limits.minAgeMs, gatherMs);
    const chosen: number[] = [];
    let bytes = 0;
    let full = open.length === MAX_OPEN_SOURCES;
    for (const object of open) {
      if (object.kind !== 'object') continue;
      if (clock.now() - object.createdMs < minAgeMs) break;
      full ||= bytes + object.bytes > limits.objectBytes;
      if (chosen.length > 0 && bytes + object.bytes > limits.objectBytes) break;
      chosen.push(object.objectId);
      bytes += object.bytes;
    }
    const oldest = open.find(({ objectId }) => objectId === chosen[0]);
    if (oldest === undefined) return undefined;
    if (!full && clock.now() - oldest.createdMs < gatherMs) return undefined;
    const flushes = await metadata.objects.flushesOf(chosen);
    const openCommit = flushes.at(-1)?.commitNumber ?? 0;
    const shares = await this.#sharesOfFlushes(flushes);
    return { rows: [], openObjects: chosen, openCommit, shares };
  }

  async #sharesOfFlushes(flushes: readonly FlushRow[]): Promise<SourceShare[]> {
    const opened = flushes.map((flush) => ({ flush, index: openIndex(flush.index) }));
    const partitionIds = opened.flatMap(({ index }) => partitionsIn(index));
    const logStarts = await this.#logStarts(partitionIds);
    const shares: SourceShare[] = [];
    for (const { flush, index } of opened) {
      for (const partitionId of partitionsIn(index)) {
        const logStart = logStarts.get(partitionId);
        if (logStart === undefined) continue;
        const range = entriesOf(index, partitionId);
        const row = {
          partitionId,
          baseOffset: index.baseOffsets[range[0]]!,
          endOffset: endOffset(index, range[1] - 1),
          commitNumber: flush.commitNumber,
        };
        const share = shareOf(row, objectOf(flush), { index, range }, logStart);
        if (share !== undefined) shares.push(share);
      }
    }
    // Commit order is offset order within a partition.
    return shares.sort((a, b) => a.partitionId - b.partitionId || a.commitNumber - b.commitNumber);
  }

  async #rewrite(work: Work): Promise<number> {
    const { clusterId, store, source, clock, ids, metadata, blockBytes } = this.#options;
    const {
      rangeBytes = RANGE_BYTES,
      parallelReads: parallel = 1,
      fill = fillStream,
    } = this.#options;
    const layout = layoutStream(work.shares, blockBytes - BLOCK_HEADER_BYTES);
    const body = await fill(layout, {
      source,
      clusterTag: this.#tag,
      memory: (bytes) => this.#memory(bytes),
      rangeBytes,
      parallel,
    });
    const bytes = body.reduce((sum, part) => sum + part.length, 0);
    const key = streamKey(clusterId, { timeMs: clock.now(), id: ids.uuid() });
    await store.put(key, body, { ifNoneMatch: true });
    const { rows: replaced, openObjects, openCommit } = work;
    const { entries } = layout;
    const { lease } = this.#options;
    let objectId: number;
    try {
      const nowMs = clock.now();
      objectId = await metadata.objects.replace({
        object: { key, bytes },
        entries,
        replaced,
        openObjects,
        ...(openCommit === undefined ? {} : { openCommit }),
        ...(lease === undefined ? {} : { lease }),
        nowMs,
      });
    } catch (caught) {
      // A source changed meanwhile: the object is an orphan, the job is looked at afresh.
      if (this.#job !== undefined) this.#forgetJob(this.#job);
      if (isFloeError(caught, 'conflict')) return bytes;
      throw caught;
    }
    this.#swapped(work, bytes);
    await this.#learn(objectId);
    return bytes;
  }

  /** What was just made may be merged with its like long before the round comes to it. */
  async #learn(objectId: number): Promise<void> {
    const [use] = await this.#options.metadata.objects.uses(objectId - 1, 1);
    if (use?.object.objectId !== objectId) return;
    this.#uses.set(objectId, use);
    this.#seen.add(objectId);
  }

  /** Used again from object to object until there is nothing to do. */
  #memory(bytes: number): Uint8Array {
    if (this.#buffer.length < bytes) this.#buffer = new Uint8Array(bytes);
    return this.#buffer;
  }

  #swapped({ rows, openObjects, shares }: Work, bytes: number): void {
    const { metrics, logger, onReplaced } = this.#options;
    const sources = [...new Set([...openObjects, ...rows.map((row) => row.objectId)])];
    metrics.count('floe_log_compacted_bytes_total', 'Bytes written by compaction.', {}, bytes);
    logger.debug({ sources: sources.length, shares: shares.length, bytes }, 'log compacted');
    onReplaced(sources);
  }
}
