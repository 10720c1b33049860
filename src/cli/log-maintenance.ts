// Background work of the log, with what only the composition root knows: retention from topic configs and the
// broker's defaults, and the offsets that table topics have still to read.
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { IdSource } from '../base/prng.ts';
import type { Values } from '../base/settings.ts';
import { defaultRetentionMs, topicSettings } from '../broker/index.ts';
import type { Maintenance } from '../storage/log/maintenance.ts';
import { maintainLog } from '../storage/log/maintenance.ts';
import type { OpenedLog } from '../storage/log/open-log.ts';
import type { RetentionPolicy } from '../storage/log/retention.ts';
import type { ObjectStore } from '../storage/objects/index.ts';
import type { serverSettings } from './settings.ts';

export interface LogMaintenanceOptions {
  readonly opened: OpenedLog;
  readonly store: ObjectStore;
  readonly settings: Values<typeof serverSettings>;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Starts it; stop it before the log. */
export function startLogMaintenance(options: LogMaintenanceOptions): Maintenance {
  const { opened, settings } = options;
  return maintainLog(opened, {
    ...options,
    policy: (partitionId) => retentionOf(opened, settings, partitionId),
    pin: (partitionId) => unreadByTable(opened, partitionId),
  });
}

/** Topic configs win over the broker's settings; only topics with `delete` in their cleanup policy expire. */
function retentionOf(
  { directory }: OpenedLog,
  settings: Values<typeof serverSettings>,
  partitionId: number,
): RetentionPolicy | undefined {
  const config = directory.byPartition(partitionId)?.topic.config;
  if (config === undefined) return undefined;
  const cleanup = config['cleanup.policy'];
  const policies =
    cleanup === undefined
      ? settings['log.cleanup.policy']
      : topicSettings['cleanup.policy'].parse(cleanup);
  if (!policies.includes('delete')) return undefined;
  const { 'retention.ms': ms, 'retention.bytes': bytes } = config;
  return {
    retentionMs: ms === undefined ? defaultRetentionMs(settings) : Number(ms),
    retentionBytes: bytes === undefined ? settings['log.retention.bytes'] : Number(bytes),
  };
}

/** First offset that the partition's table has not committed; Infinity where there is no table. */
async function unreadByTable(
  { directory, metadata }: OpenedLog,
  partitionId: number,
): Promise<number> {
  const found = directory.byPartition(partitionId);
  if (found?.topic.config['table.topic.enable'] !== 'true') return Infinity;
  const positions = await metadata.tables.positions(found.topic.topicId);
  const position = positions.find(({ partition }) => partition === found.index);
  // Not started yet: everything is unread.
  return position?.committedEnd ?? 0;
}
