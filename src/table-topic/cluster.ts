// Groups the rows of finished columns by partition tuple: the tuple of each row once, columns gathered once.
// Each partition field gives every row a small code; a transform runs once per distinct source value (or hour), not
// once per row. Not for: which rows belong to the job (worker.ts) or writing files.
import type { BytesColumn } from '../formats/arrow/byte-columns.ts';
import type { Column } from '../formats/arrow/column.ts';
import type { StructColumn } from '../formats/arrow/nested-columns.ts';
import type { Int64Column } from '../formats/arrow/scalar-columns.ts';
import type { TableColumns } from '../formats/arrow/table-columns.ts';
import {
  type BoundPartitionField,
  type BoundPartitionSpec,
  bindSpec,
  partitionKey,
} from '../formats/iceberg/partition.ts';
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

/** Code of each row for one partition field, and the partition value behind each code. */
interface Coded {
  readonly codes: Int32Array;
  readonly values: readonly PartitionValue[];
}

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
    const coded = this.#spec.fields.map((field) => codeField(columns, this.#schema, field));
    const index = new Map<number, number>();
    const firstRows: number[] = [];
    const counts: number[] = [];
    const groupOf = new Int32Array(rowCount);
    let cut = rowCount;
    let lastKey = -1;
    let group = -1;
    for (let row = 0; row < rowCount; row += 1) {
      let key = 0;
      for (const { codes, values } of coded) key = key * values.length + codes[row]!;
      if (key !== lastKey) {
        lastKey = key;
        group = index.get(key) ?? -1;
        if (group === -1) {
          if (firstRows.length >= maxGroups) {
            cut = row;
            break;
          }
          group = firstRows.length;
          index.set(key, group);
          firstRows.push(row);
          counts.push(0);
        }
      }
      counts[group]! += 1;
      groupOf[row] = group;
    }
    const tuples = firstRows.map((row) => coded.map(({ codes, values }) => values[codes[row]!]!));
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

/** Hands out codes: equal partition values get equal ones. */
class Codes {
  readonly values: PartitionValue[] = [];
  readonly #byValue = new Map<string, number>();
  readonly #apply: (value: PartitionValue) => PartitionValue;
  #none = -1;

  constructor(apply: (value: PartitionValue) => PartitionValue) {
    this.#apply = apply;
  }

  /** Code of a source value. */
  of(source: PartitionValue): number {
    const value = this.#apply(source);
    const key = partitionKey(0, [value]);
    let code = this.#byValue.get(key);
    if (code === undefined) {
      code = this.values.length;
      this.values.push(value);
      this.#byValue.set(key, code);
    }
    return code;
  }

  /** Code of null. */
  get none(): number {
    if (this.#none === -1) this.#none = this.of(null);
    return this.#none;
  }
}

function codeField(columns: TableColumns, schema: Schema, bound: BoundPartitionField): Coded {
  const { rowCount } = columns;
  const codes = new Codes(bound.apply);
  const result = new Int32Array(rowCount);
  const field = findField(schema, bound.field['source-id']);
  // A void field's source may be gone.
  if (field === undefined) return { codes: result.fill(codes.none), values: codes.values };
  const chain: Column[] = [];
  for (let at: typeof field | undefined = field; at !== undefined; ) {
    chain.unshift(columns.byId(at.id)!);
    at = at.parentId === undefined ? undefined : findField(schema, at.parentId);
  }
  const leaf = chain.pop()!;
  const codeAt = coder(leaf, codes, bound.transform.name);
  const parents = chain as StructColumn[];
  const flat = parents.length === 0 && leaf.validity === null;
  for (let row = 0; row < rowCount; row += 1) {
    const present = flat || (parents.every((one) => one.isValid(row)) && leaf.isValid(row));
    result[row] = present ? codeAt(row) : codes.none;
  }
  return { codes: result, values: codes.values };
}

/** Microseconds of the finest time transform: within one hour all of them give one value. */
const HOUR_MICROS = 3_600_000_000;
const TIME_TRANSFORMS: ReadonlySet<string> = new Set(['year', 'month', 'day', 'hour']);

/** Code of a row that has a value, remembered by something cheaper than the value where there is. */
function coder(leaf: Column, codes: Codes, transform: string): (row: number) => number {
  const known = new Map<unknown, number>();
  const remembered = (key: unknown, row: number) => {
    let code = known.get(key);
    if (code === undefined) {
      code = codes.of(sourceValue(leaf, row));
      known.set(key, code);
    }
    return code;
  };
  const micros = leaf.type === 'timestamp' || leaf.type === 'timestamptz';
  if (micros && TIME_TRANSFORMS.has(transform)) {
    const { halves } = leaf as Int64Column;
    let lastHour = Number.NaN;
    let last = 0;
    return (row) => {
      const low = halves[2 * row]! >>> 0;
      // Rounding past 2^53 is far from the border of an hour only by chance: those values go one by one.
      const value = halves[2 * row + 1]! * 4_294_967_296 + low;
      if (!Number.isSafeInteger(value)) return codes.of(sourceValue(leaf, row));
      const hour = Math.floor(value / HOUR_MICROS);
      if (hour !== lastHour) {
        lastHour = hour;
        last = remembered(hour, row);
      }
      return last;
    };
  }
  if (leaf.type === 'string') {
    const column = leaf as BytesColumn;
    // Latin-1 is a faithful key for any bytes, and by far the fastest text to make of them.
    return (row) => remembered(latin1(column, row), row);
  }
  return (row) => {
    const value = sourceValue(leaf, row);
    return value instanceof Uint8Array ? codes.of(value) : remembered(value, row);
  };
}

function latin1({ data, offsets }: BytesColumn, row: number): string {
  const start = offsets[row]!;
  return Buffer.from(data.buffer, data.byteOffset + start, offsets[row + 1]! - start).toString(
    'latin1',
  );
}

/** The value in Iceberg's form (formats/iceberg/types.ts, PartitionValue). */
function sourceValue(leaf: Column, row: number): PartitionValue {
  const value = leaf.valueAt(row);
  const decimal = typeof leaf.type === 'string' && leaf.type.startsWith('decimal');
  return decimal ? bigintFromBytes(value as Uint8Array) : (value as PartitionValue);
}
