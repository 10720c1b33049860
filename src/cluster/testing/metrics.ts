// Metrics that count and can be asked. For tests.
import type { Metrics } from '../../base/metrics.ts';

export interface CountingMetrics extends Metrics {
  /** Of a counter over all its labels, or of a gauge now. */
  value(name: string): number;
}

export function countingMetrics(): CountingMetrics {
  const counts = new Map<string, number>();
  const gauges = new Map<string, () => number>();
  return {
    count: (name, _help, _labels, by = 1) => void counts.set(name, (counts.get(name) ?? 0) + by),
    gauge: (name, _help, value) => void gauges.set(name, () => value),
    observeGauge: (name, _help, read) => void gauges.set(name, read),
    expose() {},
    seconds() {},
    value: (name) => gauges.get(name)?.() ?? counts.get(name) ?? 0,
  };
}
