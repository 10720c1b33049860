// Groups the rows of finished columns by partition tuple: the tuple of each row once, columns gathered once.
// Not for: which rows belong to the job (worker.ts) or writing files.
import type { Column } from '../formats/arrow/column.ts';
import type { StructColumn } from '../formats/arrow/nested-columns.ts';
import type { TableColumns } from '../formats/arrow/table-columns.ts';
import { type BoundPartitionSpec, bindSpec, partitionKey } from '../formats/iceberg/partition.ts';
import { findField } from '../formats/iceberg/schema.ts';
import type { PartitionSpec, PartitionValue, Schema } from '../formats/iceberg/types.ts';
import { bigintFromBytes } from '../formats/iceberg/value.ts';

export interface RowGroup {
  readonly partition: readonly PartitionValue[];
  /** Ascending row numbers; undefined for all rows. */
  readonly rows: Int32Array | undefined;
}

export interface Clustered {
  readonly groups: readonly RowGroup[];
  /** Rows from here on would open more than the allowed number of partitions; the row count if none would. */
  readonly cut: number;
}

/** Reads a source column as partition values; one level after the other for nested sources. */
type SourceReader = (row: number) => PartitionValue;

export class Clusterer {
  readonly #spec: BoundPartitionSpec;
  readonly #schema: Schema;

  constructor(spec: PartitionSpec, schema: Schema) {
    this.#spec = bindSpec(spec, schema);
    this.#schema = schema;
  }

  get partitioned(): boolean {
    return this.#spec.fields.length > 0;
  }

  /** `columns` must be aligned. */
  cluster(columns: TableColumns, maxGroups: number): Clustered {
    const { rowCount } = columns;
    if (!this.partitioned) {
      const groups = rowCount === 0 ? [] : [{ partition: [], rows: undefined }];
      return { groups, cut: rowCount };
    }
    const transforms = this.#spec.fields.map((bound) => {
      const source = sourceReader(columns, this.#schema, bound.field['source-id']);
      return memoised(source, bound.apply);
    });
    const index = new Map<string, number>();
    const tuples: PartitionValue[][] = [];
    const counts: number[] = [];
    const groupOf = new Int32Array(rowCount);
    let cut = rowCount;
    for (let row = 0; row < rowCount; row += 1) {
      const tuple = transforms.map((transform) => transform(row));
      const key = partitionKey(this.#spec.specId, tuple);
      let group = index.get(key);
      if (group === undefined) {
        if (tuples.length >= maxGroups) {
          cut = row;
          break;
        }
        group = tuples.length;
        index.set(key, group);
        tuples.push(tuple);
        counts.push(0);
      }
      counts[group]! += 1;
      groupOf[row] = group;
    }
    return { groups: collect(tuples, counts, groupOf.subarray(0, cut)), cut };
  }
}

function collect(
  tuples: readonly PartitionValue[][],
  counts: readonly number[],
  groupOf: Int32Array,
): RowGroup[] {
  if (tuples.length === 1) return [{ partition: tuples[0]!, rows: undefined }];
  const groups = tuples.map((partition, group) => ({
    partition,
    rows: new Int32Array(counts[group]!),
  }));
  const filled = new Int32Array(tuples.length);
  for (let row = 0; row < groupOf.length; row += 1) {
    const group = groupOf[row]!;
    groups[group]!.rows[filled[group]!++] = row;
  }
  return groups;
}

/** Neighbouring rows mostly share their source value: the transform runs when it changes. */
function memoised(
  source: SourceReader,
  apply: (value: PartitionValue) => PartitionValue,
): (row: number) => PartitionValue {
  let lastSource: PartitionValue = null;
  let lastResult: PartitionValue = apply(null);
  return (row) => {
    const value = source(row);
    if (value !== lastSource || value instanceof Uint8Array) {
      lastSource = value;
      lastResult = apply(value);
    }
    return lastResult;
  };
}

function sourceReader(columns: TableColumns, schema: Schema, sourceId: number): SourceReader {
  const field = findField(schema, sourceId);
  // A void field's source may be gone.
  if (field === undefined) return () => null;
  const chain: Column[] = [];
  for (let at: typeof field | undefined = field; at !== undefined; ) {
    chain.unshift(columns.byId(at.id)!);
    at = at.parentId === undefined ? undefined : findField(schema, at.parentId);
  }
  const leaf = chain.at(-1)!;
  const parents = chain.slice(0, -1) as StructColumn[];
  const decimal = typeof leaf.type === 'string' && leaf.type.startsWith('decimal');
  return (row) => {
    for (const parent of parents) if (!parent.isValid(row)) return null;
    const value = leaf.valueAt(row);
    if (decimal && value !== null) return bigintFromBytes(value as Uint8Array);
    return value as PartitionValue;
  };
}
