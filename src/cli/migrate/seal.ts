// Brings the log of a stopped node to rest: write-ahead files are sealed as at a start, objects of single flushes become
// stream objects, rows are brought up to memory. Afterwards every byte of the log lies in a sealed object with entries,
// and no row of a flush is needed. What a start of the same node would do, so it does no harm if nothing follows.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import type { IdSource } from '../../base/prng.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { objectSource } from '../../storage/log/byte-source.ts';
import { Compactor } from '../../storage/log/compactor.ts';
import { compactionOf } from '../../storage/log/maintenance.ts';
import { localRoot, sequencerSettings } from '../../storage/log/open-front.ts';
import { openSqliteBackend } from '../../storage/log/sequencer-backend.ts';
import { SlabPool } from '../../storage/log/slab.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';
import type { ServerSettings } from '../compose/node.ts';

export interface SealOptions {
  readonly dataDir: string;
  readonly clusterId: string;
  readonly store: ObjectStore;
  readonly settings: ServerSettings;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
}

/** Nothing is flushed: the pool is only there because the sequencer has one. */
const NO_SLAB_BYTES = 4_096;

/** @throws FloeError `corrupt` naming what can't be sealed. */
export async function sealLog(options: SealOptions): Promise<void> {
  const { dataDir, clusterId, store, settings, logger } = options;
  const root = localRoot(store);
  const backend = openSqliteBackend({
    dataDir,
    producerExpirationMs: settings['producer.id.expiration.ms'],
    logger,
  });
  try {
    backend.start({
      settings: { ...sequencerSettings(settings, clusterId), ballastBytes: 0 },
      slabs: SlabPool.create(NO_SLAB_BYTES, 1).shared,
      ...(root === undefined ? {} : { walRoot: root }),
      onSealed: () => {},
      onMarkers: () => {},
    });
    await gatherFlushes(backend.metadata, options);
    await assertSealed(backend.metadata);
  } finally {
    await backend.stop();
  }
}

async function gatherFlushes(metadata: Metadata, options: SealOptions): Promise<void> {
  const { store, settings } = options;
  const compactor = new Compactor({
    ...options,
    ...compactionOf(settings, true),
    source: objectSource(store),
    metadata,
    metrics: noMetrics,
    blockBytes: settings['log.compact.block.bytes'],
    onReplaced: () => {},
  });
  while ((await compactor.gather()) > 0);
}

async function assertSealed({ objects }: Metadata): Promise<void> {
  const [open] = await objects.list('open', 0, 1);
  if (open === undefined) return;
  throw new FloeError(
    'corrupt',
    `${open.key} can't be sealed (its bytes or the disk are damaged): start the node once and see its log, then migrate`,
  );
}
