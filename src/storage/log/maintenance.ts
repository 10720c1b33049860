// When the log's background work runs: retention, collection, orphan sweep, compaction. One job at a time, each
// bounded, none while producers press. A failure is logged and tried again at the next turn. In a cluster one node does
// everything but compaction, which all nodes with the role do side by side, each under a lease of its own.
// Not for: what the work is (retention.ts, collector.ts, compactor.ts).
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import type { Values } from '../../base/settings.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import type { PartitionLog } from '../../metadata/log.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { ByteSource } from './byte-source.ts';
import type { CompactedPartition } from './clean-choice.ts';
import { Collector } from './collector.ts';
import { Compactor, type CompactorOptions } from './compactor.ts';
import { KeyCompactor } from './key-compactor.ts';
import type { maintenanceSettings } from './maintenance-settings.ts';
import { localRoot } from './open-front.ts';
import type { OpenedLog } from './open-log.ts';
import type { RangeCleaner } from './range-cleaner.ts';
import { startRangeCleaner } from './range-cleaner-client.ts';
import type { LogReader } from './reader.ts';
import { applyRetention, type RetentionPolicy } from './retention.ts';
import { gaugeStores } from './store-gauges.ts';
import { clusterTag } from './wal-format.ts';

export interface MaintenanceOptions {
  readonly clusterId: string;
  readonly store: ObjectStore;
  readonly source: ByteSource;
  readonly metadata: Pick<Metadata, 'cluster' | 'log' | 'objects'>;
  readonly reader: Pick<LogReader, 'read' | 'replaced' | 'offsetReaching' | 'followedBytes'>;
  readonly settings: Values<typeof maintenanceSettings> & {
    readonly 'log.read.gap.bytes': number;
    readonly 'log.read.store.range.bytes': number;
  };
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly prng: Prng;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** What the topic's configs say; undefined: nothing expires. */
  readonly policy: (partitionId: number) => RetentionPolicy | undefined;
  /** Offsets at or above it are still needed (table topics); Infinity: none. */
  readonly pin: (partitionId: number) => number | Promise<number>;
  /** The front takes over new log starts and sizes. */
  readonly onMoved: (partitions: readonly PartitionLog[]) => void;
  /** Records of a partition below an offset were compacted by key: copies in memory are out of date. */
  readonly onCompacted: (partitionId: number, endOffset: number) => void;
  /** Markers of aborted transactions are about to go. */
  readonly onAbortsGone: (partitionId: number, markerOffsets: readonly number[]) => void;
  readonly retireFiles: (keys: readonly string[]) => Promise<void>;
  /** See {@link Collector}. */
  readonly mayDelete?: () => Promise<boolean>;
  /** Partitions of topics with `cleanup.policy=compact`, as configured now. */
  readonly compacted: () => Iterable<CompactedPartition>;
  /** See {@link KeyCompactor}. */
  readonly endOf: (partitionId: number) => number | undefined;
  /** Where batches are taken apart for them. */
  readonly cleaner: RangeCleaner;
  /** Seals the file that is being filled; see SequencerPort. */
  readonly roll: () => Promise<void>;
  /** False when the local disk is about to be full: then nothing is written that can wait. */
  readonly hasRoom: () => boolean;
  /** Asserted by every swap. Undefined: nobody else could maintain this log. */
  readonly lease?: LeaseToken;
  /** Default: everything. */
  readonly part?: MaintenancePart;
  /** See {@link Compactor}. */
  readonly fill?: CompactorOptions['fill'];
}

/** Of several nodes: `compaction` and nothing else; `rest` is everything but that. */
export type MaintenancePart = 'compaction' | 'rest';

/** A swap comes at the latest at this part of the age of orphans: what is older may be swept. */
const SWAP_WITHIN = 0.5;

interface Job {
  readonly name: string;
  readonly intervalMs: number;
  /** Returns how soon it wants to run again, if sooner than its interval. */
  run(): Promise<number | undefined>;
  dueMs: number;
}

/** Bytes followed at some time. */
interface Pace {
  readonly bytes: number;
  readonly atMs: number;
}

const MIN_PACE_SECONDS = 1;
/** At most so often, and no more often than is collected. */
const GAUGES_EVERY_MS = 60_000;
/** Under load compaction by key goes at one of so many parts of its rate. */
const BUSY_SHARE = 4;

/** Runs the jobs until stopped. */
export class Maintenance implements Component {
  readonly #options: MaintenanceOptions;
  readonly #collector: Collector;
  readonly #compactor: Compactor;
  readonly #jobs: readonly Job[];
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  readonly #paces = new Map<string, Pace>();
  /** The log lies in a local folder. */
  readonly #local: boolean;

  constructor(options: MaintenanceOptions) {
    this.#options = options;
    this.#local = localRoot(options.store) !== undefined;
    const { settings, metadata, reader } = options;
    const onReplaced = (objectIds: readonly number[]) => reader.replaced(objectIds);
    this.#collector = new Collector({
      ...options,
      objects: metadata.objects,
      storeMs: () => metadata.log.storeMs(),
      graceMs: settings['log.delete.grace.ms'],
      orphanAgeMs: settings['log.orphan.age.ms'],
      onDeleted: onReplaced,
      onGone: (keys) => options.source.forget?.(keys),
      onFreed: async (partitionIds) => options.onMoved(await metadata.log.partitions(partitionIds)),
    });
    this.#compactor = new Compactor({
      ...options,
      ...compactionOf(settings, !this.#local),
      blockBytes: settings['log.compact.block.bytes'],
      swapWithinMs: settings['log.orphan.age.ms'] * SWAP_WITHIN,
      signal: this.#stop.signal,
      onReplaced,
    });
    const pace = { bytes: reader.followedBytes, atMs: options.clock.monotonic() };
    for (const job of ['compaction', 'cleaning']) this.#paces.set(job, pace);
    this.#jobs = this.#plan();
    this.#running = this.#loop();
  }

  #plan(): Job[] {
    const { settings, clock, part } = this.#options;
    const job = (name: string, intervalMs: number, run: Job['run']): Job => {
      return { name, intervalMs, run, dueMs: clock.monotonic() + intervalMs };
    };
    const compaction = job('compaction', settings['log.compact.interval.ms'], () =>
      this.#compact(),
    );
    if (part !== 'rest') {
      this.#options.metrics.observeGauge(
        'floe_log_compaction_damaged_objects',
        'Log objects that compaction could not read for what they hold when it last tried.',
        () => this.#compactor.damaged,
      );
    }
    if (part === 'compaction') return [compaction];
    const keyCompactor = this.#makeKeyCompactor();
    return [
      job('retention', settings['log.retention.check.interval.ms'], async () => {
        await this.retain();
        return undefined;
      }),
      job('collection', settings['log.collect.interval.ms'], async () => {
        await this.#collector.collect();
        return undefined;
      }),
      job('sweep', settings['log.sweep.interval.ms'], async () => {
        await this.#collector.sweep();
        return undefined;
      }),
      job('gauges', Math.max(GAUGES_EVERY_MS, settings['log.collect.interval.ms']), async () => {
        const { metadata, metrics } = this.#options;
        await gaugeStores({ metadata, metrics, graceMs: settings['log.delete.grace.ms'] });
        return undefined;
      }),
      ...(part === 'rest' ? [] : [compaction]),
      job('cleaning', settings['log.cleaner.backoff.ms'], () => this.#clean(keyCompactor)),
    ];
  }

  #makeKeyCompactor(): KeyCompactor {
    const { settings, reader, compacted } = this.#options;
    return new KeyCompactor({
      ...this.#options,
      partitions: compacted,
      roll: () => this.#roll(),
      mapBytes: settings['log.cleaner.dedupe.buffer.size'],
      objectBytes: settings['log.compact.object.bytes'],
      blockBytes: settings['log.compact.block.bytes'],
      onReplaced: (objectIds) => reader.replaced(objectIds),
    });
  }

  /** Applies retention now. @returns log starts that moved. */
  retain(): Promise<number> {
    const { metadata, reader, clock, policy, pin, onMoved } = this.#options;
    const offsetReaching = reader.offsetReaching.bind(reader);
    return applyRetention({ log: metadata.log, policy, pin, offsetReaching, onMoved }, clock.now());
  }

  /** Compacts one object's worth; at once again if the rate allows. */
  async #compact(): Promise<number | undefined> {
    // A rewrite frees space only after its sources' grace: until then it takes as much again.
    if ((this.#local && this.#isBusy('compaction')) || !this.#options.hasRoom()) return undefined;
    const bytes = await this.#compactor.step();
    if (bytes === 0) return undefined;
    return (bytes / this.#options.settings['log.compact.rate.bytes']) * 1_000;
  }

  /** A piece of compaction by key. What is due under load goes slower; it never waits for an end of the load. */
  async #clean(keyCompactor: KeyCompactor): Promise<number | undefined> {
    const { settings, hasRoom } = this.#options;
    if (!settings['log.cleaner.enable'] || !hasRoom()) return undefined;
    const bytes = await keyCompactor.step();
    if (bytes === 0) return undefined;
    const rate = settings['log.cleaner.io.max.bytes.per.second'];
    return (bytes / (this.#isBusy('cleaning') ? rate / BUSY_SHARE : rate)) * 1_000;
  }

  /** What is not sealed becomes so: the file that is being filled, or objects of single flushes. */
  async #roll(): Promise<void> {
    await this.#options.roll();
    while ((await this.#compactor.gather()) > 0);
  }

  /** Bytes produced per second since the job last asked, against the limit. */
  #isBusy(job: 'compaction' | 'cleaning'): boolean {
    const { reader, clock, settings } = this.#options;
    const pace = this.#paces.get(job)!;
    const bytes = reader.followedBytes - pace.bytes;
    const seconds = (clock.monotonic() - pace.atMs) / 1_000;
    // Too short a time says nothing.
    if (seconds >= MIN_PACE_SECONDS)
      this.#paces.set(job, { bytes: reader.followedBytes, atMs: clock.monotonic() });
    return bytes > settings['log.compact.busy.bytes'] * Math.max(seconds, MIN_PACE_SECONDS);
  }

  async #loop(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stop.signal.aborted) {
      const next = this.#jobs.reduce((a, b) => (b.dueMs < a.dueMs ? b : a));
      try {
        await clock.sleep(next.dueMs - clock.monotonic(), this.#stop.signal);
      } catch {
        return;
      }
      await this.#run(next);
    }
  }

  async #run(job: Job): Promise<void> {
    const { clock, logger, metrics } = this.#options;
    const begunMs = clock.monotonic();
    let soonMs: number | undefined;
    try {
      soonMs = await job.run();
    } catch (caught) {
      if (caught instanceof Error && caught.name === 'AssertionError') throw caught;
      const { code, message } = FloeError.from(caught);
      metrics.count('floe_log_maintenance_failures_total', 'Failed background jobs.', {
        job: job.name,
      });
      if (!this.#stop.signal.aborted)
        logger.warn({ job: job.name, code, error: message }, 'background work failed');
    }
    // A step over a store is mostly waiting: its time counts. A local one gives the disk a rest as long as the rate asks.
    const fromMs = soonMs === undefined || this.#local ? clock.monotonic() : begunMs;
    job.dueMs = fromMs + Math.min(job.intervalMs, soonMs ?? Infinity);
  }

  /** Finishes the step under way. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#options.cleaner.stop();
  }
}

/** Reads of a store that it has under way at once. */
const PARALLEL_READS = 4;
/** On a store so many times as many objects as usual may go into a merge: their shares are small, and then sorted apart. */
const STORE_FAN_IN = 64;

/** What compaction finds worth doing, and how it reads: of local files, or of a store over the network (`stored`). */
export function compactionOf(
  settings: MaintenanceOptions['settings'],
  stored: boolean,
): Pick<CompactorOptions, 'limits' | 'rangeBytes' | 'parallelReads' | 'gatherMs'> {
  const fanIn = settings['log.compact.fan.in'];
  const share = stored ? 'log.compact.store.share.bytes' : 'log.compact.small.share.bytes';
  return {
    limits: {
      smallRunBytes: settings['log.compact.small.run.bytes'],
      gapBytes: settings['log.read.gap.bytes'],
      smallShareBytes: settings[share],
      fanIn,
      maxFanIn: stored ? fanIn * STORE_FAN_IN : fanIn,
      objectBytes: settings['log.compact.object.bytes'],
      minAgeMs: settings['log.compact.age.ms'],
    },
    ...(stored && {
      rangeBytes: settings['log.read.store.range.bytes'],
      parallelReads: PARALLEL_READS,
      gatherMs: settings['log.compact.gather.ms'],
    }),
  };
}

/** What the composition root adds to an opened log. */
export type MaintainOptions = Pick<
  MaintenanceOptions,
  | 'store'
  | 'settings'
  | 'clock'
  | 'ids'
  | 'prng'
  | 'logger'
  | 'metrics'
  | 'policy'
  | 'pin'
  | 'compacted'
  | 'lease'
  | 'part'
> & {
  /** `batch.decompressed.max.bytes`. */
  readonly maxDecompressedBytes: number;
};

/** Starts the background work of an opened log; stop it before the log. */
export function maintainLog(opened: OpenedLog, options: MaintainOptions): Maintenance {
  return new Maintenance({
    ...options,
    ...opened,
    cleaner: startRangeCleaner({
      clusterTag: clusterTag(opened.clusterId),
      maxDecompressedBytes: options.maxDecompressedBytes,
    }),
    mayDelete: async () => (await opened.metadata.cluster.incarnation()).confirmed,
    endOf: (partitionId) => opened.log.watermarks(partitionId)?.highWatermark,
    onMoved: (partitions) => opened.log.logStartsMoved(partitions),
    onCompacted: (...args) => opened.log.compacted(...args),
    onAbortsGone: (...args) => opened.log.abortsGone(...args),
  });
}
