// Data and delete files of an index as text: what of them a later commit must know. Metrics are left out.
import type { DataFile, FileMetrics, PartitionValue } from '../../formats/iceberg/types.ts';
import { type ValueJson, valueFromJson, valueToJson } from '../stage.ts';

const NO_METRICS: FileMetrics = {
  columnSizes: new Map(),
  valueCounts: new Map(),
  nullValueCounts: new Map(),
  nanValueCounts: new Map(),
  lowerBounds: new Map(),
  upperBounds: new Map(),
};

type Kept = Omit<DataFile, 'metrics' | 'partition' | 'keyMetadata' | 'splitOffsets'>;

export function formatFile({ metrics: _m, splitOffsets: _s, keyMetadata: _k, ...file }: DataFile) {
  return JSON.stringify({ ...file, partition: file.partition.map(valueToJson) });
}

export function parseFile(text: string): DataFile {
  const { partition, ...kept } = JSON.parse(text) as Kept & {
    readonly partition: readonly ValueJson[];
  };
  return {
    ...kept,
    partition: partition.map(valueFromJson) as readonly PartitionValue[],
    metrics: NO_METRICS,
  };
}
