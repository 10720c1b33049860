// Small everything, so that slabs, files, caches and objects turn over many times in one simulated run.
import { resolveSettings } from '../../src/base/settings.ts';
import { maintenanceSettings } from '../../src/storage/log/maintenance-settings.ts';
import type { LogSettings } from '../../src/storage/log/open-front.ts';
import { readSettings } from '../../src/storage/log/read-settings.ts';
import { logSettings } from '../../src/storage/log/settings.ts';

export const CLUSTER_ID = 'AAAAAAAAAAAAAAAAAAAAAA';

export const SETTINGS: LogSettings = {
  ...resolveSettings({ ...logSettings, ...readSettings }, {}),
  'log.slab.bytes': 16_384,
  'log.slab.count': 8,
  'log.tail.bytes': 32_768,
  'log.in.flight.bytes': 40_000,
  'log.wal.file.bytes': 20_000,
  'log.wal.extend.bytes': 8_192,
  'log.wal.recycle.files': 1,
  'log.disk.reserve.bytes': 0,
  'log.disk.ballast.bytes': 0,
  'log.flush.bytes': 8_192,
  'log.flush.age.ms': 50,
  'log.put.hedge.ms': 200,
  'log.put.give.up.ms': 2_000,
  'log.read.cache.bytes': 1_048_576,
  'log.read.cold.cache.bytes': 1_048_576,
};

export const MAINTENANCE = {
  ...resolveSettings(maintenanceSettings, {}),
  'log.read.gap.bytes': SETTINGS['log.read.gap.bytes'],
  'log.read.store.range.bytes': SETTINGS['log.read.store.range.bytes'],
  'log.retention.check.interval.ms': 300,
  'log.collect.interval.ms': 200,
  'log.sweep.interval.ms': 2_000,
  'log.delete.grace.ms': 400,
  'log.orphan.age.ms': 8_000,
  'log.compact.interval.ms': 150,
  'log.compact.age.ms': 200,
  'log.compact.object.bytes': 65_536,
  'log.compact.block.bytes': 4_096,
  'log.compact.fan.in': 3,
  'log.cleaner.backoff.ms': 100,
  'log.cleaner.dedupe.buffer.size': 24 * 16,
};
/** Compacted by key whenever anything is there to be compacted. */
export const CLEAN_POLICY = {
  minLagMs: 0,
  maxLagMs: Infinity,
  minDirtyRatio: 0,
  deleteRetentionMs: 500,
  segmentMs: 100,
  segmentBytes: 5_000,
};
/** Within this, what was just given up is on its way out. */
export const GRACE_MS = 3_000;
/** Every second partition keeps so much. */
export const RETENTION_BYTES = 30_000;
