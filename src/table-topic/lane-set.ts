// The lanes that one node runs of a table: some partitions, split over as many lanes as there are workers to feed. The
// coordinator's node has one, and each node that partitions were given to.
// Not for: when they run (staging.ts, lane-host.ts), which partitions they have (placement.ts).
import type { Metrics } from '../base/metrics.ts';
import { quarantinedPartitions } from '../metadata/quarantine.ts';
import type { TopicDirectory } from '../metadata/topic-directory.ts';
import type { Topic } from '../metadata/topics.ts';
import { Lane, type LaneBinding, type LaneDeps, type LaneTable } from './lane.ts';
import { letterTopic } from './letter-topics.ts';
import type { TableProgress } from './progress.ts';
import { letterTopicName, resolveTopicConfigs } from './settings/index.ts';
import { countStaged } from './table-metrics.ts';

export interface LaneSetDeps extends LaneDeps {
  readonly metrics: Metrics;
  /** Lanes per table at most: what the workers can do side by side. */
  readonly lanes: number;
  /** File name prefixes of jobs under way in this process. */
  readonly jobsUnderWay: Set<string>;
  readonly directory: TopicDirectory;
}

/** What the lanes of one table stage under. */
export interface LaneSetTable {
  readonly topic: Topic;
  readonly progress: TableProgress;
  readonly binding: LaneBinding;
  readonly epoch: number;
  readonly generation: () => number;
}

/** What all lanes of a table on this node share. */
export function laneTable(deps: LaneSetDeps, table: LaneSetTable): LaneTable {
  const { topic, progress, binding, epoch, generation } = table;
  const { partitions, topicId, name, version } = topic;
  const config = resolveTopicConfigs(topic.config);
  return {
    topicId,
    topicName: name,
    epoch,
    configEpoch: version,
    binding,
    config,
    generation,
    partitionId: (partition) => partitions[partition]!,
    stagedEnd: (partition) => progress.stagedEnd(partition),
    setStagedEnd: (partition, offset) => progress.setStagedEnd(partition, offset),
    staged: (bytes, result) => {
      progress.stagedBytes += bytes;
      countStaged(deps.metrics, result);
    },
    openLetters: (partition) => progress.openLetters(partition),
    reloadLetters: () => progress.loadLetters(),
    letterTopic: () => letterTopic(deps, letterTopicName(name, config)),
    jobsUnderWay: deps.jobsUnderWay,
  };
}

/** Those of `partitions` (indices) that lanes read: quarantined ones stay where they are. */
export function readPartitions(topic: Topic, partitions: Iterable<number>): readonly number[] {
  const quarantined = quarantinedPartitions(topic);
  return [...partitions].filter((partition) => !quarantined.has(partition));
}

/** Lanes over `partitions` (indices), each with an even share. */
export function makeLanes(
  deps: LaneSetDeps,
  table: LaneTable,
  partitions: readonly number[],
): readonly Lane[] {
  const count = Math.min(deps.lanes, partitions.length);
  return Array.from({ length: count }, (_, lane) => {
    const own = partitions.filter((_partition, at) => at % count === lane);
    return new Lane(deps, table, own);
  });
}

/** Waits for all, then throws the first failure: no lane is left running behind the state's back. */
export async function settleAll(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
