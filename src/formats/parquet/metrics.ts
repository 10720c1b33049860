// What a manifest says about a data file's columns, from the statistics of all its chunks.
// Source: Iceberg table spec, data_file; limits as in the reference implementation's default metrics modes.
import type { FileMetrics } from '../iceberg/types.ts';
import { icebergLower, icebergUpper } from './bounds.ts';
import type { MetricsConfig, MetricsMode } from './layout.ts';
import type { Leaf } from './leaves.ts';
import type { LeafStatistics } from './statistics.ts';

/** A column of the file with what was counted over its chunks. */
export interface MeasuredLeaf {
  readonly leaf: Leaf;
  readonly statistics: LeafStatistics;
  /** Stored bytes. */
  readonly size: number;
}

/** Floe's own columns always have metrics: time and offset are what queries prune by. */
function modeOf({ fieldId, topLevel }: Leaf, index: number, config: MetricsConfig): MetricsMode {
  const own = config.byField.get(fieldId);
  if (own !== undefined) return own;
  const counted = index < config.maxColumns || topLevel.startsWith('_kafka_');
  return counted ? config.standard : 'none';
}

/** Repeated leaves have counts but no bounds, as no reader prunes by them. */
export function metricsOf(leaves: readonly MeasuredLeaf[], config: MetricsConfig): FileMetrics {
  const metrics = {
    columnSizes: new Map<number, number>(),
    valueCounts: new Map<number, number>(),
    nullValueCounts: new Map<number, number>(),
    nanValueCounts: new Map<number, number>(),
    lowerBounds: new Map<number, Uint8Array>(),
    upperBounds: new Map<number, Uint8Array>(),
  };
  leaves.forEach(({ leaf, statistics, size }, i) => {
    const id = leaf.fieldId;
    metrics.columnSizes.set(id, size);
    const mode = modeOf(leaf, i, config);
    if (mode === 'none') return;
    const { valueCount, nullCount, nanCount, min, max } = statistics;
    metrics.valueCounts.set(id, valueCount);
    metrics.nullValueCounts.set(id, nullCount);
    if (leaf.type === 'float' || leaf.type === 'double') metrics.nanValueCounts.set(id, nanCount);
    if (mode === 'counts' || leaf.maxRepetition > 0 || min === undefined || max === undefined) {
      return;
    }
    const length = mode === 'full' ? Number.POSITIVE_INFINITY : mode;
    metrics.lowerBounds.set(id, icebergLower(leaf, min, length));
    const upper = icebergUpper(leaf, max, length);
    if (upper !== undefined) metrics.upperBounds.set(id, upper);
  });
  return metrics;
}
