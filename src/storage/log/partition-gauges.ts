// What an operator sees of all partitions at once: bytes, by topic for the largest, and how far transactions that are open
// keep readers of committed records behind. Counted when it is asked for: nothing is kept for it.
import type { Metrics } from '../../base/metrics.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import type { FrontPartitions } from './front-partitions.ts';

/** So many topics are told of by name: labels are a bounded set. */
const LARGEST = 50;

export function observePartitions(
  partitions: Pick<FrontPartitions, 'eachSize' | 'stableLag'>,
  topics: Pick<TopicDirectory, 'byPartition'>,
  metrics: Pick<Metrics, 'expose' | 'observeGauge'>,
): void {
  metrics.observeGauge(
    'floe_log_stable_lag_records',
    'Records of the partition that waits most for open transactions: last stable offset to high watermark.',
    () => partitions.stableLag,
  );
  metrics.expose(() => {
    let whole = 0;
    const byTopic = new Map<string, number>();
    partitions.eachSize((partitionId, sizeBytes) => {
      const topic = topics.byPartition(partitionId)?.topic.name;
      if (topic === undefined) return;
      whole += sizeBytes;
      byTopic.set(topic, (byTopic.get(topic) ?? 0) + sizeBytes);
    });
    const largest = [...byTopic].sort(([, a], [, b]) => b - a).slice(0, LARGEST);
    return [
      '# HELP floe_log_bytes Bytes that partitions hold in the log.',
      '# TYPE floe_log_bytes gauge',
      `floe_log_bytes ${whole}`,
      `# HELP floe_log_topic_bytes The same of a topic, of the ${LARGEST} largest.`,
      '# TYPE floe_log_topic_bytes gauge',
      // Names of topics need no escaping.
      ...largest.map(([topic, bytes]) => `floe_log_topic_bytes{topic="${topic}"} ${bytes}`),
      '',
    ].join('\n');
  });
}
