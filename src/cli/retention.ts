// What retention may delete and compaction rewrite, put together from the topic's configs and from what its table
// still needs.
import type { TopicConfigs } from '../broker/index.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { CompactedPartition } from '../storage/log/clean-choice.ts';
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

/** Partitions of topics that are compacted by key, with what their configs say. */
export function compactedPartitions(
  directory: TopicDirectory,
  configs: TopicConfigs,
): () => Iterable<CompactedPartition> {
  return function* () {
    for (const { partitions, config } of directory.all()) {
      const value = (name: string) => configs.effective(config, name);
      if (!value('cleanup.policy').split(',').includes('compact')) continue;
      const policy = {
        minLagMs: Number(value('min.compaction.lag.ms')),
        maxLagMs: limit(value('max.compaction.lag.ms')),
        minDirtyRatio: Number(value('min.cleanable.dirty.ratio')),
        deleteRetentionMs: Number(value('delete.retention.ms')),
        segmentMs: limit(value('segment.ms')),
        segmentBytes: Number(value('segment.bytes')),
      };
      for (const partitionId of partitions) yield { partitionId, policy };
    }
  };
}

/** Kafka's Long.MAX stands for no limit. */
function limit(text: string): number {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : Infinity;
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
