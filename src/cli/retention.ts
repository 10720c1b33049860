// What retention may delete, put together from the topic's configs and from what its table still needs.
import type { TopicConfigs } from '../broker/index.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { Log } from '../storage/log/log.ts';
import type { RetentionPolicy } from '../storage/log/retention.ts';
import type { TableTopics } from '../table-topic/index.ts';

/** The policy of a partition's topic; undefined where nothing expires by time or size. */
export function retentionPolicy(
  directory: TopicDirectory,
  configs: TopicConfigs,
): (partitionId: number) => RetentionPolicy | undefined {
  return (partitionId) => {
    const config = directory.byPartition(partitionId)?.topic.config;
    if (config === undefined) return undefined;
    if (!configs.effective(config, 'cleanup.policy').split(',').includes('delete'))
      return undefined;
    return {
      retentionMs: Number(configs.effective(config, 'retention.ms')),
      retentionBytes: Number(configs.effective(config, 'retention.bytes')),
    };
  };
}

/**
 * The offset that a partition's table still needs; Infinity where there is none, where it lags too far behind (M3),
 * and while the disk is nearly full: tables then hold nothing back.
 */
export function retentionPin(
  tables: Pick<TableTopics, 'retentionPin' | 'retentionHoldBytes'>,
  { log, hasRoom }: { readonly log: Pick<Log, 'sizeOf'>; readonly hasRoom: () => boolean },
): (partitionId: number) => number {
  return (partitionId) => {
    const pinned = hasRoom() ? tables.retentionPin(partitionId) : undefined;
    if (pinned === undefined || log.sizeOf(partitionId) > tables.retentionHoldBytes(partitionId))
      return Infinity;
    return pinned;
  };
}
