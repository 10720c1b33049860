// One log over a store of sizes on the virtual clock: flushes are placed and committed as they come, and the product's
// maintenance (retention, collection, sweep, compaction) runs beside them as it does in a broker. Not for: when flushes go
// out (flushes.ts), what readers ask for (tail.ts, catch-up.ts).
import { ManualClock } from '../../src/base/clock.ts';
import { type Logger, silentLogger } from '../../src/base/log.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { type IdSource, type Prng, seededIds, seededPrng } from '../../src/base/prng.ts';
import { resolveSettings, type Values } from '../../src/base/settings.ts';
import type { LeaseToken } from '../../src/metadata/leases.ts';
import { type ByteSource, objectSource } from '../../src/storage/log/byte-source.ts';
import type { CompactorOptions } from '../../src/storage/log/compactor.ts';
import {
  Maintenance,
  type MaintenanceOptions,
  type MaintenancePart,
} from '../../src/storage/log/maintenance.ts';
import { maintenanceSettings } from '../../src/storage/log/maintenance-settings.ts';
import { readSettings, readsOf } from '../../src/storage/log/read-settings.ts';
import { LogReader } from '../../src/storage/log/reader.ts';
import { logSettings } from '../../src/storage/log/settings.ts';
import { sourceReads } from '../../src/storage/log/stream-writer.ts';
import { buildFooter, clusterTag } from '../../src/storage/log/wal-format.ts';
import { objectSettings } from '../../src/storage/objects/settings.ts';
import { walKey } from '../../src/storage/paths.ts';
import type { Flush } from './flushes.ts';
import { SimulatedMetadata } from './metadata.ts';
import { bodyOf, SimulatedStore } from './store.ts';
import { MIB } from './workload.ts';

export const CLUSTER_ID = 'month';
/** When the month begins. */
export const START_MS = Date.UTC(2026, 0, 1);

export const definitions = {
  ...logSettings,
  ...readSettings,
  ...maintenanceSettings,
  ...objectSettings,
};
export type MonthSettings = Values<typeof definitions>;

/** The product's defaults but for `changed`. */
export function monthSettings(changed: Readonly<Record<string, string>> = {}): MonthSettings {
  return resolveSettings(definitions, changed);
}

/**
 * Processor time of a maintainer per MiB that it rewrites: a read and a PUT take about 1 ms each in the S3 client, checks
 * and copies half of one (docs/benchmarks.md, "The log over S3").
 */
const REWRITE_CPU_MS_PER_MIB = 2.5;

/** Nothing fails in this month: what would be a warning in life is a mistake of the simulation. */
const strictLogger: Logger = {
  ...silentLogger,
  warn: (facts, message) => fail(facts, message),
  error: (facts, message) => fail(facts, message),
  child: () => strictLogger,
};

function fail(facts: object, message: string): never {
  throw new Error(`${message}: ${JSON.stringify(facts)}`);
}

export interface LogWorldOptions {
  readonly partitionIds: readonly number[];
  readonly retentionMs: number;
  readonly settings: MonthSettings;
  readonly seed: number;
  readonly maintainers?: number;
}

/** What maintainers do: time of rewriting without the wait for a turn, objects and bytes written. */
export interface Busy {
  busyMs: number;
  rewrites: number;
  bytesWritten: number;
}

export class LogWorld {
  readonly clock = new ManualClock(START_MS);
  readonly prng: Prng;
  readonly store: SimulatedStore;
  readonly source: ByteSource;
  readonly metadata: SimulatedMetadata;
  readonly settings: MonthSettings;
  readonly busy: Busy = { busyMs: 0, rewrites: 0, bytesWritten: 0 };
  readonly #reader: LogReader;
  readonly #ids: IdSource;
  readonly #options: LogWorldOptions;
  #maintenance: readonly Maintenance[] = [];

  constructor(options: LogWorldOptions) {
    const { settings, seed, partitionIds, retentionMs } = options;
    this.#options = options;
    this.settings = settings;
    this.prng = seededPrng(seed);
    this.#ids = seededIds(this.prng);
    const { clock, prng } = this;
    this.store = new SimulatedStore({ clock, prng, partBytes: settings['s3.part.bytes'] });
    this.source = objectSource(this.store);
    this.metadata = new SimulatedMetadata({ clock, partitionIds, retentionMs });
    this.#reader = new LogReader({
      clusterTag: clusterTag(CLUSTER_ID),
      source: this.source,
      metadata: { log: this.metadata, objects: this.metadata },
      settings: readsOf(settings, true),
      logger: silentLogger,
      metrics: noMetrics,
    });
    this.#maintenance = [
      this.#maintain('maintenance/log', 'rest'),
      ...Array.from({ length: options.maintainers ?? 1 }, (_, n) =>
        this.#maintain(`maintenance/compaction/${n}`, 'compaction'),
      ),
    ];
  }

  #maintain(name: string, part: MaintenancePart): Maintenance {
    const { clock, prng, store, source, metadata, settings } = this;
    const lease: LeaseToken = { name, epoch: 1 };
    const options: Omit<MaintenanceOptions, 'metadata' | 'cleaner'> = {
      clusterId: CLUSTER_ID,
      store,
      source,
      reader: this.#reader,
      settings: { ...settings, 'log.read.gap.bytes': settings['log.read.store.gap.bytes'] },
      clock,
      ids: this.#ids,
      prng,
      logger: strictLogger,
      metrics: noMetrics,
      policy: () => ({ retentionMs: this.#options.retentionMs, retentionBytes: -1 }),
      pin: () => Infinity,
      onMoved: () => {},
      onCompacted: () => {},
      onAbortsGone: () => {},
      retireFiles: async () => {},
      compacted: () => [],
      endOf: () => undefined,
      roll: async () => {},
      hasRoom: () => true,
      lease,
      part,
      fill: fillOfSizes(this),
    };
    const cluster = { bytes: async () => 0, nowMs: async () => clock.now() };
    const domains = { cluster, log: metadata, objects: metadata };
    return new Maintenance({
      ...options,
      metadata: domains as unknown as MaintenanceOptions['metadata'],
      cleaner: { stop: async () => {} } as unknown as MaintenanceOptions['cleaner'],
    });
  }

  /** A flush has been PUT and commits. */
  flush(flush: Flush): void {
    const key = walKey(CLUSTER_ID, { timeMs: this.clock.now(), id: this.#ids.uuid() });
    const { row, bytes } = this.metadata.commit(key, flush);
    this.store.for('produce').place(key, bytes);
    this.#reader.follow(row);
  }

  async stop(): Promise<void> {
    let stopped = false;
    const stopping = Promise.all(this.#maintenance.map((one) => one.stop())).then(() => {
      stopped = true;
    });
    while (!stopped) await this.clock.advance(1_000);
    await stopping;
    await this.#reader.stop();
  }
}

/** What fillStream does, without bytes: the same reads in the same order, the same time of the processor. */
function fillOfSizes({ clock, busy }: LogWorld): NonNullable<CompactorOptions['fill']> {
  return async (layout, { source, clusterTag: clusterId, rangeBytes, parallel }) => {
    const startedMs = clock.monotonic();
    const waiting = sourceReads(layout, rangeBytes);
    const read = async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift())
        for (const { position, length } of next.ranges)
          await source.read(next.object, [{ position, into: bodyOf(length) }], {
            purpose: 'maintenance',
          });
    };
    await Promise.all(Array.from({ length: parallel }, read));
    await clock.sleep((layout.footerPosition / MIB) * REWRITE_CPU_MS_PER_MIB);
    busy.busyMs += clock.monotonic() - startedMs;
    busy.rewrites += 1;
    busy.bytesWritten += layout.footerPosition;
    const identity = { clusterId, generation: 0 };
    const footer = buildFooter(layout.footerPosition, layout.index.bytes, identity);
    return [bodyOf(layout.footerPosition), footer];
  };
}
