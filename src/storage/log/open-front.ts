// Everything of the log that lives in a front thread, put together: reader, topic directory, flush target, front.
// Used by open-log.ts for real and by open-in-thread.ts for tests and simulation.
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import type { Values } from '../../base/settings.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { TransactionsMetadata } from '../../metadata/transactions.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { ByteSource } from './byte-source.ts';
import type { FlushPolicy } from './flush-policy.ts';
import { type FlushTarget, localTarget } from './flush-target.ts';
import { FrontLog } from './front-log.ts';
import { objectTarget } from './object-target.ts';
import type { readSettings } from './read-settings.ts';
import { LogReader } from './reader.ts';
import type { SequencerSettings } from './sequencer-host.ts';
import type { SequencerPort } from './sequencer-port.ts';
import type { logSettings } from './settings.ts';
import type { SlabPool } from './slab.ts';
import { clusterTag } from './wal-format.ts';

export type LogSettings = Values<typeof logSettings> & Values<typeof readSettings>;

export interface FrontOptions {
  readonly metadata: Metadata;
  readonly clusterId: string;
  readonly store: ObjectStore;
  readonly sequencer: SequencerPort;
  readonly slabs: SlabPool;
  readonly source: ByteSource;
  /** True when the sequencer writes the bytes itself. */
  readonly local: boolean;
  readonly settings: LogSettings;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface OpenedFront {
  readonly log: FrontLog;
  readonly reader: LogReader;
  readonly directory: TopicDirectory;
}

export async function openFront(options: FrontOptions): Promise<OpenedFront> {
  const { settings, metadata, clusterId, source, logger, metrics, local } = options;
  const reader = new LogReader({
    clusterTag: clusterTag(clusterId),
    source,
    metadata,
    settings,
    logger,
    metrics,
  });
  await loadRecent(reader, metadata);
  const directory = await TopicDirectory.load(metadata.topics);
  const log = await FrontLog.open({
    slabs: options.slabs,
    target: targetOf(options),
    policy: flushPolicy(settings, local),
    metadata: metadata.log,
    topics: directory,
    reader,
    clock: options.clock,
    prng: options.prng,
    logger,
    metrics,
    tailBytes: settings['log.tail.bytes'],
    inFlightBytes: settings['log.in.flight.bytes'],
    readCopyBytes: settings['log.read.copy.bytes'],
  });
  return { log, reader, directory };
}

/**
 * The metadata whose ends of transactions are visible in `log` when they are answered: watermarks have moved, readers
 * of committed records have been woken.
 */
export function withVisibleEnds(metadata: Metadata, log: Pick<FrontLog, 'whenApplied'>): Metadata {
  const transactions: Pick<TransactionsMetadata, 'apply'> = {
    async apply(requests, nowMs) {
      const outcomes = await metadata.transactions.apply(requests, nowMs);
      const commitNumber = Math.max(-1, ...outcomes.map((outcome) => outcome.commitNumber ?? -1));
      if (commitNumber >= 0) await log.whenApplied(commitNumber);
      return outcomes;
    },
  };
  const overlay = <T extends object>(target: T, own: Partial<T>): T =>
    new Proxy(target, {
      get: (inner, name) => {
        const found: unknown = own[name as keyof T] ?? Reflect.get(inner, name);
        return typeof found === 'function' ? found.bind(inner) : found;
      },
    });
  return overlay(metadata, { transactions: overlay(metadata.transactions, transactions) });
}

function targetOf(options: FrontOptions): FlushTarget {
  const { settings, sequencer, clock, local } = options;
  if (local) return localTarget(sequencer, clock);
  return objectTarget({
    ...options,
    hedgeMs: settings['log.put.hedge.ms'],
    giveUpMs: settings['log.put.give.up.ms'],
  });
}

const ROWS_AT_ONCE = 1_000;

/** The indexes of objects that aren't sealed: what commits since the last seal brought. */
export async function loadRecent(
  reader: Pick<LogReader, 'follow'>,
  metadata: Pick<Metadata, 'log'>,
): Promise<void> {
  for (let after = 0; ; ) {
    const rows = await metadata.log.flushesAfter(after, ROWS_AT_ONCE);
    for (const row of rows) reader.follow(row);
    if (rows.length < ROWS_AT_ONCE) return;
    after = rows.at(-1)!.commitNumber;
  }
}

/** The folder of a local store; undefined for any other. */
export function localRoot(store: ObjectStore): string | undefined {
  return store.uri.startsWith('file:') ? fileURLToPath(store.uri) : undefined;
}

function flushPolicy(settings: LogSettings, local: boolean): FlushPolicy {
  if (local) return { kind: 'group' };
  return {
    kind: 'object',
    flushBytes: settings['log.flush.bytes'],
    ageMs: settings['log.flush.age.ms'],
    idleMs: settings['log.flush.idle.ms'],
    rate: settings['log.flush.rate'],
    parallel: settings['log.flush.parallel'],
  };
}

export function sequencerSettings(settings: LogSettings, clusterId: string): SequencerSettings {
  return {
    clusterId,
    fileBytes: settings['log.wal.file.bytes'],
    fileCommits: settings['log.wal.file.commits'],
    extendBytes: settings['log.wal.extend.bytes'],
    recycleFiles: settings['log.wal.recycle.files'],
    directIo: settings['log.direct.io'],
    reserveBytes: settings['log.disk.reserve.bytes'],
    ballastBytes: settings['log.disk.ballast.bytes'],
    producerExpirationMs: settings['producer.id.expiration.ms'],
  };
}
