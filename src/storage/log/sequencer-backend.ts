// What the sequencer's thread hosts: a metadata store and the sequencer on it. Embedded: SQLite in the data directory,
// flushes go into local write-ahead files or arrive as objects. In a cluster: postgres-backend.ts, loaded where it is
// needed only.
import { join } from 'node:path';
import { systemClock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { FlushRow } from '../../metadata/log.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import type { PostgresSettings } from '../../metadata/postgres/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { nodeDisk } from './disk.ts';
import { type SequencerHost, type SequencerSettings, startSequencer } from './sequencer-host.ts';
import type { SequencerPort } from './sequencer-port.ts';
import { type SharedSlabs, SlabPool } from './slab.ts';

/** Which metadata store: crosses the thread's border. */
export type MetadataChoice =
  | { readonly kind: 'sqlite' }
  | {
      readonly kind: 'postgres';
      /** `postgres://user:password@host:port/database`. */
      readonly url: string;
      readonly settings: PostgresSettings;
      /** How this broker shows among the server's connections. */
      readonly applicationName: string;
      /** For tests: a server that would lose acked commits on power failure is taken. */
      readonly unsafeServer?: boolean;
    };

export interface BackendOptions {
  readonly dataDir: string;
  readonly producerExpirationMs: number;
  readonly logger: Logger;
}

export interface BackendStart {
  readonly settings: SequencerSettings;
  readonly slabs: SharedSlabs;
  /** Directory of the local WAL; undefined when flushes arrive durable. */
  readonly walRoot?: string;
  readonly onSealed: (objectId: number) => void;
  readonly onMarkers: (commit: FlushRow) => void;
}

export interface SequencerBackend {
  readonly metadata: Metadata;
  /** Recovers what an earlier life left and lets flushes in. @throws FloeError, the system's errors. */
  start(options: BackendStart): SequencerPort;
  /** After what was submitted; frees everything. */
  stop(): Promise<void>;
}

/** @throws the system's errors. */
export function openSqliteBackend(options: BackendOptions): SequencerBackend {
  const { dataDir, producerExpirationMs, logger } = options;
  const metadata = openSqliteMetadata(join(dataDir, METADATA_FILE), { producerExpirationMs });
  let host: SequencerHost | undefined;
  return {
    metadata,
    start({ settings, slabs, walRoot, onSealed, onMarkers }) {
      host = startSequencer({
        settings,
        metadata,
        slabs: SlabPool.attach(slabs),
        clock: systemClock,
        logger,
        ...(walRoot === undefined ? {} : { disk: nodeDisk(walRoot) }),
        onSealed,
        onMarkers,
      });
      return host.sequencer;
    },
    async stop() {
      await host?.stop();
      metadata.database.checkpoint();
      metadata.close();
    },
  };
}

/** The database's file within the data directory. */
export const METADATA_FILE = 'metadata.db';
