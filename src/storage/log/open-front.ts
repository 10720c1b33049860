// Everything of the log that lives in a front thread, put together: reader, topic directory, flush target, front.
// Used by open-log.ts for real and by open-in-thread.ts for tests and simulation.
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../base/clock.ts';
import type { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import type { Values } from '../../base/settings.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { TransactionsMetadata } from '../../metadata/transactions.ts';
import type { Versions } from '../../metadata/versions.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { ByteSource } from './byte-source.ts';
import { objectFlushPolicy } from './flush-policy.ts';
import { type FlushTarget, localTarget } from './flush-target.ts';
import { Follower } from './follower.ts';
import { FrontLog } from './front-log.ts';
import { LogStarts } from './log-starts.ts';
import { objectTarget } from './object-target.ts';
import { ObjectsWatch } from './objects-watch.ts';
import { type readSettings, readsOf } from './read-settings.ts';
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
  /** Given: other brokers commit to the same log, and are followed. */
  readonly following?: FollowingOptions;
}

export interface FollowingOptions {
  /** The store no longer keeps what this node lacks: it can only start again. */
  readonly onFatal: (error: FloeError) => void;
}

export interface OpenedFront {
  readonly log: FrontLog;
  readonly reader: LogReader;
  readonly directory: TopicDirectory;
  /** Undefined where nobody else commits. */
  readonly follower?: Follower;
  /** Ends what {@link openFront} has started, after `log` has stopped. */
  stopFollowing(): Promise<void>;
}

export async function openFront(options: FrontOptions): Promise<OpenedFront> {
  const { settings, metadata, clusterId, source, logger, metrics, local, clock } = options;
  const shared = { clock, rowsLifetimeMs: settings['log.follow.rows.lifetime.ms'] };
  const reader = new LogReader({
    clusterTag: clusterTag(clusterId),
    source,
    metadata,
    settings: readsOf(settings, !local),
    logger,
    metrics,
    ...(options.following === undefined ? {} : { shared }),
  });
  // First: what comes after it is followed, whatever the rest was loaded with.
  const snapshot = await metadata.log.snapshot();
  await loadRecent(reader, metadata, snapshot.lastCommit);
  const directory = await TopicDirectory.load(metadata);
  const log = new FrontLog({
    ...options,
    snapshot,
    target: targetOf(options),
    policy: local ? { kind: 'group' } : objectFlushPolicy(settings),
    metadata: metadata.log,
    topics: directory,
    reader,
    tailBytes: settings['log.tail.bytes'],
    inFlightBytes: settings['log.in.flight.bytes'],
    readCopyBytes: settings['log.read.copy.bytes'],
  });
  const opened = { log, reader, directory };
  if (options.following === undefined) return { ...opened, async stopFollowing() {} };
  return { ...opened, ...(await startFollowing(options, opened, snapshot.versions)) };
}

async function startFollowing(
  { settings, metadata, clock, logger, metrics, following }: FrontOptions,
  { log, reader, directory }: Pick<OpenedFront, 'log' | 'reader' | 'directory'>,
  versions: Versions,
): Promise<Pick<OpenedFront, 'follower' | 'stopFollowing'>> {
  const watch = new ObjectsWatch({
    objects: metadata.objects,
    reader,
    front: log,
    clock,
    logger,
    everyMs: settings['log.follow.objects.ms'],
  });
  const everyMs = settings['log.follow.starts.ms'];
  const follower = new Follower({
    metadata: metadata.log,
    front: log,
    topics: directory,
    starts: new LogStarts({ log, metadata, clock, logger, versions, everyMs }),
    versions,
    clock,
    logger,
    metrics,
    pollMs: settings['log.follow.poll.ms'],
    idleMs: settings['log.follow.idle.ms'],
    isCurrent: () => watch.isCurrent(),
    onFatal: following!.onFatal,
  });
  log.follow(follower);
  try {
    // Objects that were sealed while recent commits were loaded.
    await watch.start();
    await follower.caughtUp();
  } catch (caught) {
    await follower.stop();
    await watch.stop();
    throw caught;
  }
  return {
    follower,
    async stopFollowing() {
      await follower.stop();
      await watch.stop();
    },
  };
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
    hedgeShare: settings['log.put.hedge.share'],
    giveUpMs: settings['log.put.give.up.ms'],
  });
}

const ROWS_AT_ONCE = 1_000;

/** The indexes of objects that aren't sealed: what commits since the last seal brought, up to `lastCommit`. */
export async function loadRecent(
  reader: Pick<LogReader, 'follow'>,
  metadata: Pick<Metadata, 'log'>,
  lastCommit = Infinity,
): Promise<void> {
  for (let after = 0; ; ) {
    const rows = await metadata.log.flushesAfter(after, ROWS_AT_ONCE);
    for (const row of rows) {
      if (row.commitNumber > lastCommit) return;
      reader.follow(row);
    }
    if (rows.length < ROWS_AT_ONCE) return;
    after = rows.at(-1)!.commitNumber;
  }
}

/** The folder of a local store; undefined for any other. */
export function localRoot(store: ObjectStore): string | undefined {
  return store.uri.startsWith('file:') ? fileURLToPath(store.uri) : undefined;
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
    followHorizonMs: settings['log.follow.horizon.ms'],
    giveUpMs: settings['log.put.give.up.ms'],
  };
}
