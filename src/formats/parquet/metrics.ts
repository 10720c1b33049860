// What a manifest says about a data file's columns, from the statistics of all its chunks.
// Source: Iceberg table spec, data_file; limits as in the reference implementation's default metrics modes.
import type { FileMetrics } from '../iceberg/types.ts';
import { icebergLower, icebergUpper } from './bounds.ts';
import type { Leaf } from './leaves.ts';
import type { LeafStatistics } from './statistics.ts';

/** Columns with metrics, counted in schema order; a wide table's manifests would swell otherwise. */
export const METRICS_COLUMNS = 100;

/** Floe's own columns always have metrics: time and offset are what queries prune by. */
const hasMetrics = (leaf: Leaf, index: number) =>
  index < METRICS_COLUMNS || leaf.topLevel.startsWith('_kafka_');

/** `sizes` are the stored bytes of each leaf. Repeated leaves have counts but no bounds, as no reader prunes by them. */
export function metricsOf(
  leaves: readonly Leaf[],
  statistics: readonly LeafStatistics[],
  sizes: readonly number[],
): FileMetrics {
  const metrics = {
    columnSizes: new Map<number, number>(),
    valueCounts: new Map<number, number>(),
    nullValueCounts: new Map<number, number>(),
    nanValueCounts: new Map<number, number>(),
    lowerBounds: new Map<number, Uint8Array>(),
    upperBounds: new Map<number, Uint8Array>(),
  };
  leaves.forEach((leaf, i) => {
    const id = leaf.fieldId;
    metrics.columnSizes.set(id, sizes[i]!);
    if (!hasMetrics(leaf, i)) return;
    const { valueCount, nullCount, nanCount, min, max } = statistics[i]!;
    metrics.valueCounts.set(id, valueCount);
    metrics.nullValueCounts.set(id, nullCount);
    if (leaf.type === 'float' || leaf.type === 'double') metrics.nanValueCounts.set(id, nanCount);
    if (leaf.maxRepetition > 0 || min === undefined || max === undefined) return;
    metrics.lowerBounds.set(id, icebergLower(leaf, min));
    const upper = icebergUpper(leaf, max);
    if (upper !== undefined) metrics.upperBounds.set(id, upper);
  });
  return metrics;
}
