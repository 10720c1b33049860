// Puts the log together for real: sequencer thread, reader thread, front. Where bytes go follows from the stores:
// with SQLite a local folder (`file://`) has the write-ahead files of the sequencer; any other store, and every store of a
// cluster (PostgreSQL), gets an object per flush. In a cluster the other brokers are followed from the start.
import type { MessagePort } from 'node:worker_threads';
import type { Clock } from '../../base/clock.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { Logger, LogLevel } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { IdSource, Prng } from '../../base/prng.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { connectMetadata } from '../../metadata/remote.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import { claimCluster, newClusterId } from '../cluster.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { ByteSource } from './byte-source.ts';
import { nodeDisk } from './disk.ts';
import { roomyBytes } from './disk-space.ts';
import type { Follower } from './follower.ts';
import type { FrontLog } from './front-log.ts';
import {
  type LogSettings,
  localRoot,
  openFront,
  sequencerSettings,
  withVisibleEnds,
} from './open-front.ts';
import type { LogReader } from './reader.ts';
import { startReaderThread } from './reader-thread.ts';
import type { MetadataChoice } from './sequencer-backend.ts';
import { SequencerClient } from './sequencer-client.ts';
import { SlabPool } from './slab.ts';
import { type ZoneSource, zoneSource } from './zone-source.ts';

export { type LogSettings, loadRecent } from './open-front.ts';

export interface OpenLogOptions {
  /** Holds the lock, embedded the metadata, else nothing that can't be lost; one process at a time. */
  readonly dataDir: string;
  /** Default: SQLite in the data directory. */
  readonly metadata?: MetadataChoice;
  readonly store: ObjectStore;
  readonly settings: LogSettings;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly logLevel: LogLevel;
  readonly metrics: Metrics;
  /**
   * A thread died of a bug, or this broker can't follow the others any more and has to start again. Default: the error
   * is thrown, which ends the process.
   */
  readonly onFatal?: (error: Error) => void;
}

export interface OpenedLog extends Component {
  readonly log: FrontLog;
  readonly metadata: Metadata;
  readonly directory: TopicDirectory;
  readonly clusterId: string;
  readonly reader: LogReader;
  /** Brings what other brokers commit, and is told of their hints; undefined where nobody else commits. */
  readonly follower?: Follower;
  /** Where stored bytes are read from: background work reads there, too. */
  readonly source: ByteSource;
  /** Where the store isn't a local folder: who of the zone reads what, to be set by whoever knows the cluster. */
  readonly zone?: ZoneSource;
  /** Calls back when this node has changed what other nodes keep copies of. Returns how to stop that. */
  onMetadataRaised(listener: () => void): () => void;
  /** Metadata for one more thread: hand the port over, there `connectMetadata(port)`. */
  connectMetadata(): MessagePort;
  /** The collector's last step for local files. */
  retireFiles(keys: readonly string[]): Promise<void>;
  /** Seals the write-ahead file that is being filled, so that what lies in it can be compacted. */
  roll(): Promise<void>;
  /** False when the disk of a local store is so full that Produce is about to be refused. */
  hasRoom(): boolean;
  /** Flushes what was admitted, checkpoints, frees the data directory. */
  stop(): Promise<void>;
}

/** @throws FloeError `conflict`: data directory in use, or storage and metadata of different clusters. */
export async function openLog(options: OpenLogOptions): Promise<OpenedLog> {
  const { settings, store, clock, ids, metadata: choice = { kind: 'sqlite' } } = options;
  const client = await SequencerClient.open({
    data: {
      dataDir: options.dataDir,
      logLevel: options.logLevel,
      producerExpirationMs: settings['producer.id.expiration.ms'],
      metadata: choice,
    },
    onFatal: options.onFatal ?? rethrow,
  });
  try {
    const port = client.connect();
    const onRaised = new Set<() => void>();
    const metadata = connectMetadata(port, () => {
      for (const listener of onRaised) listener();
    });
    const { clusterId } = await claimCluster(store, {
      expectedId: await metadata.cluster.clusterId(),
      newId: newClusterId(ids),
      nowMs: clock.now(),
    });
    await metadata.cluster.keepClusterId(clusterId);
    const shared = choice.kind === 'postgres';
    const opened = await assemble(options, { client, metadata, clusterId, shared });
    return {
      ...opened,
      onMetadataRaised(listener) {
        onRaised.add(listener);
        return () => onRaised.delete(listener);
      },
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
  /** Other brokers use the same stores. */
  readonly shared: boolean;
}

async function assemble(
  options: OpenLogOptions,
  parts: Parts,
): Promise<Omit<OpenedLog, 'onMetadataRaised'>> {
  const { settings, store } = options;
  const { client, metadata, clusterId, shared } = parts;
  const slabs = SlabPool.create(settings['log.slab.bytes'], settings['log.slab.count']);
  const root = shared ? undefined : localRoot(store);
  await client.start({
    settings: sequencerSettings(settings, clusterId),
    slabs: slabs.shared,
    ...(root === undefined ? {} : { walRoot: root }),
  });
  const thread =
    root === undefined
      ? undefined
      : startReaderThread({
          files: root,
          objects: root,
          direct: settings['log.direct.io'],
        });
  const zone = thread === undefined ? zoneSource(options) : undefined;
  const source = thread?.source ?? zone!;
  const local = root !== undefined;
  const following = { onFatal: options.onFatal ?? rethrow };
  const front = await openFront({
    ...options,
    ...parts,
    sequencer: client,
    slabs,
    source,
    local,
    ...(shared ? { following } : {}),
  });
  client.onSealed = (objectId) => front.reader.sealed(objectId);
  client.onMarkers = (commit) => front.log.committed([commit]);
  return {
    ...front,
    metadata: withVisibleEnds(metadata, front.log),
    clusterId,
    source,
    ...(zone === undefined ? {} : { zone }),
    connectMetadata: () => client.connect(),
    retireFiles: (keys) => client.retireFiles(keys),
    roll: () => client.roll(),
    hasRoom: () =>
      root === undefined ||
      nodeDisk(root).freeBytes() >= roomyBytes(sequencerSettings(settings, clusterId)),
    async stop() {
      // Flushes that are on their way may wait for commits of others.
      await front.log.stop();
      await front.stopFollowing();
      await thread?.stop();
    },
  };
}

function rethrow(error: Error): void {
  setImmediate(() => {
    throw error;
  });
}
