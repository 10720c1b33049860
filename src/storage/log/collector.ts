// Deletes what nothing refers to, in the one order that is safe: unreference in a transaction → wait the grace →
// delete the bytes → forget the row. And sweeps orphans, which writers that died left behind: a key is first claimed
// in the unique index that commits use, so a late commit and the sweep can't both win (L10).
// Not for: why something is unreferenced (retention.ts, compactor.ts, deleted topics).

import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { LogObject, ObjectsMetadata } from '../../metadata/objects.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { storeFor } from '../objects/purposes.ts';
import { clusterPrefix, keyBefore, parseKey, streamPrefix, walPrefix } from '../paths.ts';

export interface CollectorOptions {
  readonly clusterId: string;
  readonly store: ObjectStore;
  readonly objects: ObjectsMetadata;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** The metadata store's clock, by which objects were given up (`LogMetadata.storeMs`). */
  readonly storeMs?: () => Promise<number | undefined>;
  /** Unreferenced objects keep their bytes this long: readers with old plans finish, a backup stays whole. */
  readonly graceMs: number;
  /** A key younger than this is no orphan yet: its writer may still commit. */
  readonly orphanAgeMs: number;
  /** False while the metadata's restore isn't confirmed: what was written after its backup has no row. Default: true. */
  readonly mayDelete?: () => Promise<boolean>;
  /** Takes local write-ahead files back (rename or removal is the sequencer's). */
  readonly retireFiles: (keys: readonly string[]) => Promise<void>;
  /** Told once files and objects are gone: whoever holds them open lets go. */
  readonly onGone: (keys: readonly string[]) => void;
  /** Told before bytes go: caches let go of them. */
  readonly onDeleted: (objectIds: readonly number[]) => void;
  /** Told of partitions that hold fewer bytes, after the transaction. */
  readonly onFreed: (partitionIds: readonly number[]) => Promise<void>;
}

/** Rows handled in one transaction (a few milliseconds), keys deleted in one request. */
const ROWS_AT_ONCE = 500;
/** Slices per pass: more wait for the next. */
const MAX_SLICES = 100;
const WEEK_MS = 7 * 24 * 60 * 60_000;

export class Collector {
  readonly #options: CollectorOptions;
  #lastWholeSweepMs = -Infinity;

  constructor(options: CollectorOptions) {
    this.#options = { ...options, store: storeFor(options.store, 'maintenance') };
  }

  /** Drops expired rows, gives up what is unreferenced, deletes what was given up long enough ago. */
  async collect(): Promise<{ readonly deleted: number }> {
    if (!(await this.#mayDelete())) return { deleted: 0 };
    await this.#unreference();
    return { deleted: await this.#delete() };
  }

  async #mayDelete(): Promise<boolean> {
    if ((await this.#options.mayDelete?.()) !== false) return true;
    this.#options.logger.warn(
      {},
      'this metadata was restored from a backup: nothing is swept or deleted until floe doctor --confirm',
    );
    return false;
  }

  async #unreference(): Promise<void> {
    const { objects, clock, logger, onFreed } = this.#options;
    for (let slice = 0; slice < MAX_SLICES; slice += 1) {
      const freed = await objects.dropExpired(ROWS_AT_ONCE);
      if (freed.length === 0) break;
      await onFreed(freed.map(({ partitionId }) => partitionId));
    }
    const claimed = await objects.claimUnreferenced(clock.now(), ROWS_AT_ONCE);
    if (claimed.length > 0) logger.debug({ objects: claimed.length }, 'log objects given up');
  }

  async #delete(): Promise<number> {
    const { objects, clock, storeMs, graceMs, metrics } = this.#options;
    const beforeMs = ((await storeMs?.()) ?? clock.now()) - graceMs;
    let deleted = 0;
    for (let slice = 0; slice < MAX_SLICES; slice += 1) {
      const found = await objects.deletable(beforeMs, ROWS_AT_ONCE);
      if (found.length === 0) break;
      await this.#deleteBytes(found);
      deleted += found.length;
    }
    if (deleted > 0)
      metrics.count('floe_log_objects_deleted_total', 'Log objects deleted.', {}, deleted);
    return deleted;
  }

  async #deleteBytes(found: readonly LogObject[]): Promise<void> {
    const { objects, store, retireFiles, onDeleted, onGone } = this.#options;
    const objectIds = found.map(({ objectId }) => objectId);
    const referenced = await objects.entriesOf(objectIds);
    assert(referenced.length === 0, 'L10: no referenced object is deleted');
    onDeleted(objectIds);
    const keysOf = (kind: LogObject['kind']) =>
      found.filter((object) => object.kind === kind).map(({ key }) => key);
    await store.delete(keysOf('object'));
    await retireFiles(keysOf('file'));
    onGone(found.map(({ key }) => key));
    await objects.forget(objectIds);
  }

  /**
   * Claims keys of the store that no row knows: the last two horizons each time, everything once a week (and after
   * a start). Their bytes go with the next collections, after the grace.
   */
  async sweep(): Promise<{ readonly claimed: number }> {
    if (!(await this.#mayDelete())) return { claimed: 0 };
    const { clusterId, clock, orphanAgeMs } = this.#options;
    const nowMs = clock.now();
    const whole = nowMs - this.#lastWholeSweepMs >= WEEK_MS;
    const fromMs = whole ? 0 : nowMs - 3 * orphanAgeMs;
    let claimed = 0;
    for (const prefix of [walPrefix(clusterId), streamPrefix(clusterId)])
      claimed += await this.#sweepPrefix(prefix, { fromMs, beforeMs: nowMs - orphanAgeMs });
    if (whole) this.#lastWholeSweepMs = nowMs;
    await this.#abortUploads(nowMs - orphanAgeMs);
    return { claimed };
  }

  /** Uploads in parts that their writers left when they died: what has arrived of them is paid for and never seen. */
  async #abortUploads(beforeMs: number): Promise<void> {
    const { store, clusterId, logger, metrics } = this.#options;
    const aborted = await store.abortUploads?.(clusterPrefix(clusterId), beforeMs);
    if (aborted === undefined || aborted === 0) return;
    logger.info({ uploads: aborted }, 'unfinished uploads given up');
    metrics.count('floe_log_uploads_aborted_total', 'Uploads of dead writers.', {}, aborted);
  }

  async #sweepPrefix(
    prefix: string,
    { fromMs, beforeMs }: { readonly fromMs: number; readonly beforeMs: number },
  ): Promise<number> {
    const { store, clusterId } = this.#options;
    let claimed = 0;
    let keys: string[] = [];
    for await (const { key } of store.list(prefix, { after: keyBefore(prefix, fromMs) })) {
      const parsed = parseKey(clusterId, key);
      // What isn't ours by name is left alone; keys ascend by time, so the rest is younger.
      if (parsed?.kind !== 'wal' && parsed?.kind !== 'stream') continue;
      if (parsed.timeMs > beforeMs) break;
      if (keys.push(key) < ROWS_AT_ONCE) continue;
      claimed += await this.#claim(keys);
      keys = [];
    }
    return claimed + (keys.length > 0 ? await this.#claim(keys) : 0);
  }

  async #claim(keys: readonly string[]): Promise<number> {
    const { objects, clock, logger, metrics } = this.#options;
    const claimed = await objects.claimKeys(keys, clock.now());
    if (claimed.length === 0) return 0;
    logger.info({ keys: claimed.length, first: claimed[0] }, 'orphans found');
    metrics.count('floe_log_orphans_total', 'Keys that no commit refers to.', {}, claimed.length);
    return claimed.length;
  }
}
