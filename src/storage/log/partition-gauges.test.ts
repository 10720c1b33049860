import { expect, test } from 'vitest';
import { PrometheusMetrics } from '../../base/metrics.ts';
import type { PartitionLog, PartitionTransactions } from '../../metadata/log.ts';
import type { TopicDirectory } from '../../metadata/topic-directory.ts';
import { FrontPartitions } from './front-partitions.ts';
import { observePartitions } from './partition-gauges.ts';

const state = (partitionId: number, sizeBytes: number): PartitionLog => ({
  partitionId,
  sizeBytes,
  logStartOffset: 0,
  highWatermark: 9,
  lastStableOffset: 9,
  maxTimestamp: -1,
});

/** A transaction that began at `firstOffset` and is open. */
const open = (partitionId: number, firstOffset: number): PartitionTransactions => ({
  partitionId,
  open: new Map([[1, firstOffset]]),
  lastAbortedOffset: -1,
});

test('bytes are told in all and of the fifty largest topics, and who waits most for transactions', async () => {
  const states = [state(1, 10), state(2, 30), state(3, 5), state(4, 0)];
  for (let id = 100; id < 150; id += 1) states.push(state(id, id));
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
  const partitions = new FrontPartitions(topics, states, [open(2, 4), open(3, 7)]);
  observePartitions(partitions, topics, metrics);
  const lines = (await metrics.render()).split('\n');
  expect(lines).toContain('floe_log_stable_lag_records 5');
  const large = (149 * 150 - 99 * 100) / 2 - 120;
  expect(lines).toContain(`floe_log_bytes ${10 + 30 + 5 + large}`);
  const topicLines = lines.filter((line) => line.startsWith('floe_log_topic_bytes{'));
  expect(topicLines).toHaveLength(50);
  expect(topicLines[0]).toBe('floe_log_topic_bytes{topic="t149"} 149');
  expect(topicLines.at(-1)).toBe('floe_log_topic_bytes{topic="two"} 40');
});
