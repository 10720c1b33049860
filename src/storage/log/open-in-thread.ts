// The log without threads: the same objects as open-log.ts puts together, in the caller's own thread, over a given
// disk and metadata. For tests and simulation, where time, chance and faults come from outside.
import type { SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { isFileKey } from '../paths.ts';
import { type ByteSource, objectSource, tooShort } from './byte-source.ts';
import type { Disk } from './disk.ts';
import {
  type FollowingOptions,
  type FrontOptions,
  type OpenedFront,
  openFront,
  sequencerSettings,
} from './open-front.ts';
import { type SequencerHost, startSequencer } from './sequencer-host.ts';
import type { SequencerPort } from './sequencer-port.ts';
import { SlabPool } from './slab.ts';
import { StoreSequencer } from './store-sequencer.ts';

export interface InThreadOptions
  extends Omit<FrontOptions, 'sequencer' | 'slabs' | 'source' | 'local' | 'metadata'> {
  readonly metadata: SqliteMetadata;
  /** The local WAL's disk; undefined: flushes become objects of `store`. */
  readonly disk?: Disk;
  /** Puts itself between front and sequencer, to lose replies. */
  readonly wrapSequencer?: (port: SequencerPort) => SequencerPort;
}

export interface InThreadLog extends OpenedFront {
  readonly host: SequencerHost;
  readonly slabs: SlabPool;
  readonly source: ByteSource;
  stop(): Promise<void>;
}

export async function openInThread(options: InThreadOptions): Promise<InThreadLog> {
  const { settings, metadata, clusterId, clock, logger, store, disk } = options;
  const slabs = SlabPool.create(settings['log.slab.bytes'], settings['log.slab.count']);
  // Objects are sealed only by flushes, and those come after the front is there.
  const front: { opened?: OpenedFront } = {};
  const host = startSequencer({
    settings: sequencerSettings(settings, clusterId),
    metadata,
    slabs,
    clock,
    logger,
    ...(disk === undefined ? {} : { disk }),
    onSealed: (objectId) => front.opened?.reader.sealed(objectId),
    onMarkers: (commit) => front.opened?.log.committed([commit]),
  });
  const objects = objectSource(store);
  const source = disk === undefined ? objects : localSource(disk, objects);
  const sequencer = options.wrapSequencer?.(host.sequencer) ?? host.sequencer;
  const local = disk !== undefined;
  const opened = await openFront({ ...options, sequencer, slabs, source, local });
  front.opened = opened;
  return {
    ...opened,
    host,
    slabs,
    source,
    async stop() {
      await opened.log.stop();
      await host.stop();
    },
  };
}

export interface SharedInThreadOptions
  extends Omit<FrontOptions, 'sequencer' | 'slabs' | 'source' | 'local'> {
  readonly following: FollowingOptions;
  /** {@link COMMIT_HORIZON_MS} of the store's sequencer. */
  readonly commitHorizonMs: number;
}

export interface SharedInThreadLog extends OpenedFront {
  readonly slabs: SlabPool;
  readonly source: ByteSource;
  stop(): Promise<void>;
}

/** A broker among several on one metadata store; flushes become objects of the store. */
export async function openSharedInThread(
  options: SharedInThreadOptions,
): Promise<SharedInThreadLog> {
  const { settings, metadata, clock, logger, store } = options;
  const slabs = SlabPool.create(settings['log.slab.bytes'], settings['log.slab.count']);
  const giveUpMs = settings['log.put.give.up.ms'];
  const sequencer = new StoreSequencer({
    metadata: metadata.log,
    clock,
    logger,
    giveUpMs,
    horizonMs: options.commitHorizonMs,
  });
  const source = objectSource(store);
  const opened = await openFront({ ...options, sequencer, slabs, source, local: false });
  return {
    ...opened,
    slabs,
    source,
    async stop() {
      await opened.log.stop();
      await sequencer.stop();
      await opened.stopFollowing();
    },
  };
}

/** Write-ahead files from the disk, all else from the store. */
function localSource(disk: Disk, objects: ByteSource): ByteSource {
  return {
    async read(object, reads, options) {
      if (!isFileKey(object.key)) return objects.read(object, reads, options);
      const file = disk.open(object.key, 'existing');
      try {
        for (const { position, into } of reads) {
          if (file.pread(into, position) < into.length)
            throw tooShort(object.key, position, into.length);
        }
      } finally {
        file.close();
      }
    },
  };
}
