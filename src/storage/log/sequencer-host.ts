// Everything that lives in the sequencer's thread, put together in one place: used by sequencer-thread.ts, and as it
// is by tests and simulation, which have no threads.
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { FlushRow } from '../../metadata/log.ts';
import type { SqliteMetadata } from '../../metadata/sqlite/index.ts';
import type { Disk } from './disk.ts';
import { DiskSpace } from './disk-space.ts';
import { recoverFiles } from './recover.ts';
import { Sealer } from './seal.ts';
import { Sequencer } from './sequencer.ts';
import type { SlabPool } from './slab.ts';
import { Upkeep } from './upkeep.ts';
import { WalFiles } from './wal-file.ts';

/** Plain data: crosses the thread's border. */
export interface SequencerSettings {
  readonly clusterId: string;
  readonly fileBytes: number;
  readonly fileCommits: number;
  readonly extendBytes: number;
  readonly recycleFiles: number;
  readonly directIo: boolean;
  readonly reserveBytes: number;
  readonly ballastBytes: number;
  readonly producerExpirationMs: number;
  /** A shared metadata store: how long commits are kept for those who follow, and a commit is tried. */
  readonly followHorizonMs: number;
  readonly giveUpMs: number;
}

export interface SequencerHostOptions {
  readonly settings: SequencerSettings;
  readonly metadata: SqliteMetadata;
  readonly slabs: SlabPool;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Local WAL; undefined when flushes arrive durable. */
  readonly disk?: Disk;
  readonly onSealed?: (objectId: number) => void;
  /** Ends of transactions, in commit order with the replies to flushes. */
  readonly onMarkers?: (commit: FlushRow) => void;
}

export interface SequencerHost {
  readonly sequencer: Sequencer;
  readonly wal?: WalFiles;
  stop(): Promise<void>;
}

/** Fronts that retry a commit do so for at most this long. */
const RETRY_HORIZON_MS = 600_000;

/** Recovers what an earlier life left, then takes flushes. @throws FloeError, the system's errors. */
export function startSequencer(options: SequencerHostOptions): SequencerHost {
  const { settings, metadata, slabs, clock, logger, disk, onMarkers } = options;
  const { clusterId } = settings;
  const local = disk === undefined ? undefined : startLocal(options, disk);
  const sequencer = new Sequencer({
    metadata,
    clusterId,
    slabs,
    clock,
    logger,
    fileCommits: settings.fileCommits,
    ...local,
    ...(onMarkers === undefined ? {} : { onMarkers }),
  });
  const retryHorizonMs = disk === undefined ? RETRY_HORIZON_MS : 0;
  const { producerExpirationMs } = settings;
  const upkeep = new Upkeep({ metadata, clock, logger, producerExpirationMs, retryHorizonMs });
  return {
    sequencer,
    ...(local === undefined ? {} : { wal: local.wal }),
    async stop() {
      upkeep.stop();
      await sequencer.stop();
      while (metadata.log.checkpoint(10_000));
    },
  };
}

function startLocal(options: SequencerHostOptions, disk: Disk) {
  const { settings, metadata, clock, logger, onSealed } = options;
  const { clusterId, fileBytes, extendBytes, recycleFiles, reserveBytes, ballastBytes } = settings;
  const { log } = metadata;
  const firstNumber = Math.max(0, ...log.files().map((file) => file.generation)) + 1;
  const wal = new WalFiles({
    disk,
    clusterId,
    fileBytes,
    extendBytes,
    recycleFiles,
    direct: settings.directIo,
    firstNumber,
    logger,
  });
  // After the replies of the flushes that filled the file, which leave as microtasks: told the other way round, a front
  // would take their entries for those of an object that is never sealed.
  const tell = (objectId: number) => setImmediate(() => onSealed?.(objectId));
  const sealer = new Sealer({ log, wal, clusterId, logger, onSealed: tell });
  const recovered = recoverFiles({ log, wal, sealer, clusterId, logger });
  logger.info({ ...recovered, damaged: recovered.damaged.length }, 'write-ahead files recovered');
  const release = () => wal.dropFree();
  const space = new DiskSpace({ disk, clock, logger, reserveBytes, ballastBytes, release });
  return { wal, sealer, space };
}
