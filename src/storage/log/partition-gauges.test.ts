import { expect, test } from 'vitest';
import { PrometheusMetrics } from '../../base/metrics.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import { observePartitions } from './partition-gauges.ts';

const of = (partitionId: number, sizeBytes: number, lastStableOffset = 9) => ({
  partitionId,
  sizeBytes,
  logStartOffset: 0,
  lastStableOffset,
  highWatermark: 9,
});

test('bytes are told in all and of the fifty largest topics, and who waits most for transactions', async () => {
  const partitions = [of(1, 10), of(2, 30, 4), of(3, 5, 7), of(4, 0)];
  for (let id = 100; id < 150; id += 1) partitions.push(of(id, id));
  const names = new Map([
    [1, 'two'],
    [2, 'two'],
    [3, 'small'],
    [4, 'empty'],
  ]);
  const byPartition = (id: number) => {
    // Partition 120 is being deleted.
    if (id === 120) return undefined;
    return { topic: { name: names.get(id) ?? `t${id}` }, index: 0 };
  };
  const metrics = new PrometheusMetrics();
  const topics = { byPartition } as unknown as TopicDirectory;
  observePartitions({ all: () => partitions.values() as never }, topics, metrics);
  const lines = (await metrics.render()).split('\n');
  expect(lines).toContain('floe_log_stable_lag_records 5');
  const large = (149 * 150 - 99 * 100) / 2 - 120;
  expect(lines).toContain(`floe_log_bytes ${10 + 30 + 5 + large}`);
  const topicLines = lines.filter((line) => line.startsWith('floe_log_topic_bytes{'));
  expect(topicLines).toHaveLength(50);
  expect(topicLines[0]).toBe('floe_log_topic_bytes{topic="t149"} 149');
  expect(topicLines.at(-1)).toBe('floe_log_topic_bytes{topic="two"} 40');
});
