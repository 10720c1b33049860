// Rewrites scattered, dead and small shares into stream objects, one object a step, off the produce path. A step reads
// its sources, writes the object, and swaps rows in one transaction that checks the sources; a step that fails leaves
// an orphan for the sweep and nothing else. Also turns the objects of single flushes (S3) into stream objects.
// Under a lease it is one of several maintainers (decision 0040): each claims what its next piece of work rewrites and
// leaves alone what others have claimed. Flushes are rewritten side by side and swapped one piece after the other, in the
// order of their commits, so that rows of a partition have no gap between them.
// Not for: when steps run (maintenance.ts), deletion of what was replaced (collector.ts).
import type { Clock } from '../../base/clock.ts';
import { isFloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource } from '../../base/prng.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import type { FlushRow, LogMetadata, NewObjectEntry, ObjectEntry } from '../../metadata/log.ts';
import type { LogObject, ObjectsMetadata, ObjectUse } from '../../metadata/objects.ts';
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
import { Claims, flushObjects } from './claims.ts';
import { type ChoiceLimits, type CompactionJob, chooseJob } from './compact-choice.ts';
import { loadIndex, objectOf } from './object-entries.ts';
import { damagedObject, isDamage, SetAside } from './set-aside.ts';
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
  /** The right to rewrite, which every claim and swap asserts. Undefined: nobody else could. */
  readonly lease?: LeaseToken;
  /** A swap that comes later than this after its object was begun is refused: well below the age of orphans. */
  readonly swapWithinMs?: number;
  /** Ends a wait for others. */
  readonly signal?: AbortSignal;
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

/** A written object and what its rows are to be. */
interface Made {
  readonly key: string;
  readonly bytes: number;
  readonly begunMs: number;
  readonly entries: readonly NewObjectEntry[];
}

export class Compactor {
  readonly #options: CompactorOptions;
  readonly #tag: Uint8Array;
  readonly #claims: Claims;
  /** What is left of sealed objects, as of the last look. */
  readonly #uses = new Map<number, ObjectUse>();
  readonly #settled = new Set<number>();
  /** Sealed objects whose rewriting failed for what they hold. */
  readonly #damaged: SetAside;
  /** The same of unsealed ones, by the oldest of them: they are taken in order only. */
  readonly #openDamaged: SetAside;
  /** Objects of a merge, by tier; more while those that were looked at had too few partitions in common. */
  readonly #fanIns = new Map<number, number>();
  #seen = new Set<number>();
  #after = 0;
  /** What is newer is looked at in each step: it may be merged long before the round comes to it, whoever made it. */
  #newest: number | undefined;
  #job: CompactionJob | undefined;
  #buffer = new Uint8Array(0);

  constructor(options: CompactorOptions) {
    this.#options = { ...options, store: storeFor(options.store, 'compaction') };
    this.#tag = clusterTag(options.clusterId);
    this.#claims = new Claims({ ...options, objects: options.metadata.objects });
    this.#damaged = new SetAside(options.clock);
    this.#openDamaged = new SetAside(options.clock);
  }

  /** Objects, or rows of unsealed ones, that couldn't be read when they were last tried. */
  get damaged(): number {
    return this.#damaged.size + this.#openDamaged.size;
  }

  /**
   * Does one object's worth of work. @returns bytes written, 0 when there was nothing to do.
   * @throws FloeError; after `corrupt` and `not-found` the next steps leave alone for a while what failed, so that one
   * damaged object doesn't keep all others from being rewritten.
   */
  async step(): Promise<number> {
    for (;;) {
      await this.#look();
      const bytes = await this.#tryStep();
      if (bytes !== undefined) return bytes;
    }
  }

  /** Undefined when there was nothing left to do about it, or another maintainer was quicker: it made progress. */
  async #tryStep(): Promise<number | undefined> {
    const { limits, gatherMs = limits.minAgeMs } = this.#options;
    const others = await this.#claims.others();
    const open = await this.#chooseOpen(gatherMs, others);
    if (open.length > 0) return this.#rewriteOpen(open);
    const job = this.#job ?? this.#choose(others);
    if (job === undefined) return this.#rest();
    if (this.#job === undefined) {
      if (!(await this.#claims.take(job.objectIds))) return undefined;
      if (!(await this.#areInUse(job.objectIds))) return undefined;
      this.#job = job;
    }
    return this.#orLeave(this.#rewriteSealed(job), (damaged) => {
      const found = damaged !== undefined && job.objectIds.includes(damaged);
      for (const objectId of found ? [damaged] : job.objectIds) this.#damaged.add(objectId);
      this.#forgetJob(job);
    });
  }

  /**
   * Objects of single flushes become one stream object at once, however young. @returns bytes written: 0 also when what
   * they hold can't be read, which isn't the business of whoever wanted more to be sealed.
   */
  async gather(): Promise<number> {
    for (;;) {
      const open = await this.#chooseOpen(0, await this.#claims.others());
      if (open.length === 0) return this.#job === undefined ? this.#rest() : 0;
      try {
        const bytes = await this.#rewriteOpen(open);
        if (bytes !== undefined) return bytes;
      } catch (caught) {
        if (!isDamage(caught)) throw caught;
        return 0;
      }
    }
  }

  /** Nothing to do: memory and claims are given back. */
  async #rest(): Promise<0> {
    this.#buffer = new Uint8Array(0);
    await this.#claims.release();
    return 0;
  }

  /** Undefined when another maintainer was quicker. */
  async #rewriteOpen(objectIds: readonly number[]): Promise<number | undefined> {
    if (!(await this.#claims.takeOpen(objectIds, this.#job?.objectIds))) return undefined;
    const work = this.#openWork(objectIds).then((found) => this.#rewrite(found));
    return this.#orLeave(work, () => this.#openDamaged.add(objectIds[0]!));
  }

  /** @param leave is told which object it was, if that is known */
  async #orLeave<T>(work: Promise<T>, leave: (damaged: number | undefined) => void): Promise<T> {
    try {
      return await work;
    } catch (caught) {
      if (isDamage(caught)) {
        const { logger, source } = this.#options;
        const damaged = damagedObject(caught);
        if (damaged !== undefined) source.distrust?.(damaged.key);
        leave(damaged?.objectId);
        logger.error({ error: caught.message }, 'damaged log object, not rewritten for now');
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

  #choose(others: ReadonlySet<number>): CompactionJob | undefined {
    const uses = [...this.#uses.values()]
      .filter(({ object: { objectId } }) => !this.#damaged.has(objectId) && !others.has(objectId))
      .sort((a, b) => a.object.objectId - b.object.objectId);
    const { clock, limits } = this.#options;
    const fanInOf = (tier: number) => this.#fanIns.get(tier) ?? limits.fanIn;
    return chooseJob(uses, clock.now(), { limits, settled: this.#settled, fanInOf });
  }

  #forgetJob({ objectIds }: CompactionJob): void {
    this.#job = undefined;
    for (const objectId of objectIds) this.#uses.delete(objectId);
  }

  /** Looks at what is new, and at the next few of all; after a whole round those that are gone are forgotten. */
  async #look(): Promise<void> {
    while (this.#newest !== undefined) {
      const { length } = await this.#lookAfter(this.#newest);
      if (length < LOOK_AT_ONCE) break;
    }
    const found = await this.#lookAfter(this.#after);
    const round = found.length < LOOK_AT_ONCE;
    this.#after = round ? 0 : found.at(-1)!.object.objectId;
    if (!round) return;
    for (const known of [this.#uses, this.#settled, this.#damaged])
      for (const objectId of known.keys()) if (!this.#seen.has(objectId)) known.delete(objectId);
    this.#seen = new Set();
  }

  async #lookAfter(afterId: number): Promise<readonly ObjectUse[]> {
    const found = await this.#options.metadata.objects.uses(afterId, LOOK_AT_ONCE);
    for (const use of found) {
      const { objectId } = use.object;
      this.#uses.set(objectId, use);
      this.#seen.add(objectId);
      if (this.#newest !== undefined) this.#newest = Math.max(this.#newest, objectId);
    }
    return found;
  }

  /** Whether all of these objects still hold something; those that don't, which others have rewritten, are forgotten. */
  async #areInUse(objectIds: readonly number[]): Promise<boolean> {
    const rows = await this.#options.metadata.objects.entriesOf(objectIds);
    const inUse = new Set(rows.map(({ objectId }) => objectId));
    const stale = objectIds.filter((objectId) => !inUse.has(objectId));
    for (const objectId of stale) this.#uses.delete(objectId);
    return stale.length === 0;
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

  /** A merge of objects that share few partitions, or hold what lies far apart in them, would do little but move bytes. */
  #pays({ reason, objectIds, tier = 0 }: CompactionJob, rows: readonly ObjectEntry[]): boolean {
    if (reason !== 'merge') return true;
    const { fanIn: least, maxFanIn = least } = this.#options.limits;
    const fanIn = this.#fanIns.get(tier) ?? least;
    if (rows.length >= rowsAfter(rows) * Math.max(2, least * WORTH_SHARE)) return true;
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

  /**
   * Objects of single flushes, the oldest that others have not claimed, up to one object: when they fill it, when another's
   * follow, or when the oldest has waited long enough.
   */
  async #chooseOpen(gatherMs: number, others: ReadonlySet<number>): Promise<readonly number[]> {
    const { limits, clock } = this.#options;
    const { objects } = this.#options.metadata;
    const minAgeMs = Math.min(limits.minAgeMs, gatherMs);
    const chosen: LogObject[] = [];
    let bytes = 0;
    let full = false;
    for await (const object of flushObjects(objects, MAX_OPEN_SOURCES)) {
      if (others.has(object.objectId)) {
        if (chosen.length === 0) continue;
        full = true;
        break;
      }
      if (clock.now() - object.createdMs < minAgeMs) break;
      bytes += object.bytes;
      full ||= bytes > limits.objectBytes || chosen.length === MAX_OPEN_SOURCES;
      if (full && chosen.length > 0) break;
      chosen.push(object);
    }
    const [oldest] = chosen;
    for (const objectId of this.#openDamaged.keys())
      if (objectId !== oldest?.objectId) this.#openDamaged.delete(objectId);
    if (oldest === undefined || this.#openDamaged.has(oldest.objectId)) return [];
    if (!full && clock.now() - oldest.createdMs < gatherMs) return [];
    return chosen.map(({ objectId }) => objectId);
  }

  async #openWork(openObjects: readonly number[]): Promise<Work> {
    const flushes = await this.#options.metadata.objects.flushesOf(openObjects);
    const openCommit = flushes.at(-1)?.commitNumber ?? 0;
    const shares = await this.#sharesOfFlushes(flushes);
    return { rows: [], openObjects, openCommit, shares };
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
    const { clusterId, store, source, clock, ids, blockBytes } = this.#options;
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
    const begunMs = clock.now();
    const key = streamKey(clusterId, { timeMs: begunMs, id: ids.uuid() });
    await store.put(key, body, { ifNoneMatch: true });
    const objectId = await this.#swap(work, { key, bytes, begunMs, entries: layout.entries });
    if (objectId === undefined) return bytes;
    this.#swapped(work, bytes);
    this.#newest ??= objectId - 1;
    return bytes;
  }

  /** @returns the new object's id; undefined when a source changed meanwhile: it is an orphan then. */
  async #swap(work: Work, made: Made): Promise<number | undefined> {
    const { metadata, clock, metrics, lease, swapWithinMs = Infinity } = this.#options;
    const { rows: replaced, openObjects, openCommit } = work;
    const { key, bytes, entries } = made;
    const notAfterMs = made.begunMs + swapWithinMs;
    try {
      await this.#claims.turn(openObjects, notAfterMs);
      return await metadata.objects.replace({
        object: { key, bytes },
        entries,
        replaced,
        openObjects,
        ...(openCommit === undefined ? {} : { openCommit }),
        ...(lease === undefined ? {} : { lease, claimed: true, notAfterMs }),
        nowMs: clock.now(),
      });
    } catch (caught) {
      // The job is looked at afresh.
      if (this.#job !== undefined) this.#forgetJob(this.#job);
      if (!isFloeError(caught, 'conflict')) throw caught;
      metrics.count(
        'floe_log_compaction_lost_bytes_total',
        'Bytes that compaction wrote in vain: a source changed, or whoever had claimed older flushes died.',
        {},
        bytes,
      );
      return undefined;
    }
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
    for (const objectId of sources) this.#damaged.delete(objectId);
    onReplaced(sources);
  }
}

/** How many rows these become together: those of a partition that follow one another are one. */
function rowsAfter(rows: readonly ObjectEntry[]): number {
  return rows.filter(({ partitionId, baseOffset }, n) => {
    const before = rows[n - 1];
    return before?.partitionId !== partitionId || before.endOffset !== baseOffset;
  }).length;
}
