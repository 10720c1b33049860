// What a manifest list says about each partition field of a manifest: bounds, null and NaN flags.
// Source: Iceberg table spec, "Manifest Lists", field_summary.
import type { BoundPartitionSpec } from './partition.ts';
import type { PartitionValue } from './types.ts';
import { compareValues, encodeSingleValue, type PrimitiveValue } from './value.ts';

export interface PartitionFieldSummary {
  readonly containsNull: boolean;
  readonly containsNan: boolean | undefined;
  /** Single-value binary form; absent when every value is null or NaN. */
  readonly lowerBound: Uint8Array | undefined;
  readonly upperBound: Uint8Array | undefined;
}

/** One summary per field of the spec, over the tuples of a manifest's files (deleted ones too, as the spec asks). */
export function summarisePartitions(
  spec: BoundPartitionSpec,
  partitions: readonly (readonly PartitionValue[])[],
): PartitionFieldSummary[] {
  return spec.fields.map(({ resultType }, index) =>
    summarise(
      resultType,
      partitions.map((partition) => partition[index] ?? null),
    ),
  );
}

function summarise(type: string, values: readonly PartitionValue[]): PartitionFieldSummary {
  let containsNull = false;
  let containsNan = false;
  let lower: PrimitiveValue | undefined;
  let upper: PrimitiveValue | undefined;
  for (const value of values) {
    if (value === null) containsNull = true;
    else if (Number.isNaN(value)) containsNan = true;
    else {
      if (lower === undefined || compareValues(value, lower) < 0) lower = value;
      if (upper === undefined || compareValues(value, upper) > 0) upper = value;
    }
  }
  return {
    containsNull,
    containsNan,
    lowerBound: lower === undefined ? undefined : encodeSingleValue(type, lower),
    upperBound: upper === undefined ? undefined : encodeSingleValue(type, upper),
  };
}
