// Puts the log together for real: sequencer thread, reader thread, front. Where bytes go follows from the store:
// a local folder (`file://`) has the write-ahead files of the sequencer, any other store gets an object per flush.
import { fileURLToPath } from 'node:url';
import type { MessagePort } from 'node:worker_threads';
import type { Clock } from '../../base/clock.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { Logger, LogLevel } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import type { Values } from '../../base/settings.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { connectMetadata } from '../../metadata/remote.ts';
import { TopicDirectory } from '../../metadata/topic-directory.ts';
import { claimCluster, newClusterId } from '../cluster.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { objectSource } from './byte-source.ts';
import type { FlushPolicy } from './flush-policy.ts';
import { type FlushTarget, localTarget } from './flush-target.ts';
import { FrontLog } from './front-log.ts';
import { objectTarget } from './object-target.ts';
import type { readSettings } from './read-settings.ts';
import { LogReader } from './reader.ts';
import { startReaderThread } from './reader-thread.ts';
import { SequencerClient } from './sequencer-client.ts';
import type { SequencerSettings } from './sequencer-host.ts';
import type { logSettings } from './settings.ts';
import { SlabPool } from './slab.ts';
import { clusterTag } from './wal-format.ts';

export type LogSettings = Values<typeof logSettings> & Values<typeof readSettings>;

export interface OpenLogOptions {
  /** Holds metadata and lock; one process at a time. */
  readonly dataDir: string;
  readonly store: ObjectStore;
  readonly settings: LogSettings;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly logLevel: LogLevel;
  readonly metrics: Metrics;
  /** A thread died of a bug. Default: the error is thrown, which ends the process. */
  readonly onFatal?: (error: Error) => void;
}

export interface OpenedLog extends Component {
  readonly log: FrontLog;
  readonly metadata: Metadata;
  readonly directory: TopicDirectory;
  readonly clusterId: string;
  readonly reader: LogReader;
  /** Metadata for one more thread: hand the port over, there `connectMetadata(port)`. */
  connectMetadata(): MessagePort;
  /** The collector's last step for local files. */
  retireFiles(keys: readonly string[]): Promise<void>;
  /** Flushes what was admitted, checkpoints, frees the data directory. */
  stop(): Promise<void>;
}

/** @throws FloeError `conflict`: data directory in use, or storage and metadata of different clusters. */
export async function openLog(options: OpenLogOptions): Promise<OpenedLog> {
  const { settings, store, clock, ids } = options;
  const client = await SequencerClient.open({
    data: {
      dataDir: options.dataDir,
      logLevel: options.logLevel,
      producerExpirationMs: settings['producer.id.expiration.ms'],
    },
    onFatal: options.onFatal ?? rethrow,
  });
  try {
    const port = client.connect();
    const metadata = connectMetadata(port);
    const { clusterId } = await claimCluster(store, {
      expectedId: await metadata.cluster.clusterId(),
      newId: newClusterId(ids),
      nowMs: clock.now(),
    });
    await metadata.cluster.keepClusterId(clusterId);
    const opened = await assemble(options, { client, metadata, clusterId });
    return {
      ...opened,
      async stop() {
        await opened.stop();
        await client.stop();
        port.close();
      },
    };
  } catch (caught) {
    await client.stop();
    throw caught;
  }
}

interface Parts {
  readonly client: SequencerClient;
  readonly metadata: Metadata;
  readonly clusterId: string;
}

async function assemble(options: OpenLogOptions, parts: Parts): Promise<OpenedLog> {
  const { settings, store, clock, logger, metrics, prng } = options;
  const { client, metadata, clusterId } = parts;
  const slabs = SlabPool.create(settings['log.slab.bytes'], settings['log.slab.count']);
  const root = localRoot(store);
  await client.start({
    settings: sequencerSettings(settings, clusterId),
    slabs: slabs.shared,
    ...(root === undefined ? {} : { walRoot: root }),
  });
  const thread = root === undefined ? undefined : startReaderThread({ files: root, objects: root });
  const reader = new LogReader({
    clusterTag: clusterTag(clusterId),
    source: thread?.source ?? objectSource(store),
    metadata,
    settings,
    logger,
    metrics,
  });
  client.onSealed = (objectId) => reader.sealed(objectId);
  await loadRecent(reader, metadata);
  const directory = await TopicDirectory.load(metadata.topics);
  const log = await FrontLog.open({
    slabs,
    target: targetOf(options, { client, slabs, clusterId, local: root !== undefined }),
    policy: flushPolicy(settings, root !== undefined),
    metadata: metadata.log,
    topics: directory,
    reader,
    clock,
    prng,
    logger,
    metrics,
    tailBytes: settings['log.tail.bytes'],
    inFlightBytes: settings['log.in.flight.bytes'],
  });
  return {
    log,
    metadata,
    directory,
    clusterId,
    reader,
    connectMetadata: () => client.connect(),
    retireFiles: (keys) => client.retireFiles(keys),
    async stop() {
      await log.stop();
      await thread?.stop();
    },
  };
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

function targetOf(
  { store, settings, clock, ids, logger, metrics }: OpenLogOptions,
  more: {
    readonly client: SequencerClient;
    readonly slabs: SlabPool;
    readonly clusterId: string;
    readonly local: boolean;
  },
): FlushTarget {
  const { client: sequencer, slabs, clusterId, local } = more;
  if (local) return localTarget(sequencer, clock);
  return objectTarget({
    store,
    sequencer,
    slabs,
    clusterId,
    clock,
    ids,
    logger,
    metrics,
    hedgeMs: settings['log.put.hedge.ms'],
    giveUpMs: settings['log.put.give.up.ms'],
  });
}

export function flushPolicy(settings: LogSettings, local: boolean): FlushPolicy {
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
    extendBytes: settings['log.wal.extend.bytes'],
    recycleFiles: settings['log.wal.recycle.files'],
    reserveBytes: settings['log.disk.reserve.bytes'],
    ballastBytes: settings['log.disk.ballast.bytes'],
    producerExpirationMs: settings['producer.id.expiration.ms'],
  };
}

function rethrow(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}
