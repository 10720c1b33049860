// Which rows belong to which partition: transforms evaluated over whole columns, then rows grouped by tuple.
// Per row only a cheap key is computed (a unit of time, a bucket, the value itself); the transform of the
// specification runs once per distinct key.
// Not for: what transforms mean (formats/iceberg/transform.ts).
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import { byteValues } from '../byte-values.ts';
import { murmur3 } from '../iceberg/murmur3.ts';
import { compileTransform, parseTransform, type Transform } from '../iceberg/transform.ts';
import type { PartitionSpec, PartitionValue, PrimitiveTypeName } from '../iceberg/types.ts';
import { bigintFromBytes, floorDiv } from '../iceberg/value.ts';
import { BytesColumn, FixedColumn } from './byte-columns.ts';
import type { Column } from './column.ts';
import { Int32Column, Int64Column } from './scalar-columns.ts';
import type { TableColumns } from './table-columns.ts';

export interface PartitionGroup {
  /** In the order of the spec's fields. */
  readonly values: readonly PartitionValue[];
  /** Rows of this partition, ascending: for `TableColumns.gather`. */
  readonly rows: Int32Array;
}

export interface PartitionedRows {
  /** In the order of each partition's first row. */
  readonly groups: readonly PartitionGroup[];
  /** The first row that would have opened one partition too many; the row count if none would. */
  readonly cut: number;
}

/** A code per row, and the partition value of each code. */
export interface Coded {
  readonly codes: Int32Array;
  readonly values: readonly PartitionValue[];
}

/**
 * The rows of `columns` by partition, as many from the front as open no more than `maxPartitions` (a wild clock
 * would open one per record). An unpartitioned spec gives one group of all rows.
 * @throws FloeError `invalid` when a source column is missing (except of a void field: its source may be gone).
 */
export function partitionRows(
  columns: TableColumns,
  spec: PartitionSpec,
  maxPartitions = Number.MAX_SAFE_INTEGER,
): PartitionedRows {
  columns.align();
  const { rowCount } = columns;
  if (rowCount === 0) return { groups: [], cut: 0 };
  const fields = spec.fields.map((field) => {
    const transform = parseTransform(field.transform);
    const column = columns.byId(field['source-id']);
    if (transform.name === 'void') return { codes: new Int32Array(rowCount), values: [null] };
    if (column === undefined) {
      throw new FloeError('invalid', `partition field "${field.name}" has no source column`);
    }
    assert(column.length === rowCount, 'a partition source is not inside a list or map');
    return codeColumn(column, transform);
  });
  const { codes, tuples } = combine(fields, rowCount);
  // Codes count up by first appearance, so the first one past the limit is where to cut.
  const found = tuples.length > maxPartitions ? codes.indexOf(maxPartitions) : rowCount;
  const groups = groupRows(codes.subarray(0, found), tuples.slice(0, maxPartitions));
  return { groups, cut: found };
}

/** Pairs of codes up to this many are looked up in an array. */
const DENSE_PAIRS = 1 << 20;

/** Brings the codes of all fields together into one code per distinct tuple, counting up by first appearance. */
function combine(fields: readonly Coded[], rowCount: number) {
  // A field's codes count up by first appearance themselves.
  let codes = fields[0]?.codes ?? new Int32Array(rowCount);
  let tuples: PartitionValue[][] = fields[0]?.values.map((value) => [value]) ?? [[]];
  for (const field of fields.slice(1)) {
    const count = field.values.length;
    const known = pairTable(tuples.length * count);
    const next = new Int32Array(rowCount);
    const nextTuples: PartitionValue[][] = [];
    for (let row = 0; row < rowCount; row++) {
      const pair = codes[row]! * count + field.codes[row]!;
      let code = known.get(pair);
      if (code === -1) {
        code = nextTuples.length;
        known.set(pair, code);
        nextTuples.push([...tuples[codes[row]!]!, field.values[field.codes[row]!]!]);
      }
      next[row] = code;
    }
    codes = next;
    tuples = nextTuples;
  }
  return { codes, tuples };
}

/** Codes by pair; −1 for one that wasn't seen. */
function pairTable(pairs: number): {
  get(pair: number): number;
  set(pair: number, code: number): void;
} {
  if (pairs <= DENSE_PAIRS) {
    const codes = new Int32Array(pairs).fill(-1);
    return {
      get: (pair) => codes[pair]!,
      set: (pair, code) => {
        codes[pair] = code;
      },
    };
  }
  const codes = new Map<number, number>();
  return { get: (pair) => codes.get(pair) ?? -1, set: (pair, code) => void codes.set(pair, code) };
}

function groupRows(codes: Int32Array, tuples: readonly PartitionValue[][]): PartitionGroup[] {
  const counts = new Int32Array(tuples.length);
  for (let row = 0; row < codes.length; row++) counts[codes[row]!]!++;
  const groups = tuples.map((values, code) => ({ values, rows: new Int32Array(counts[code]!) }));
  counts.fill(0);
  for (let row = 0; row < codes.length; row++) {
    const code = codes[row]!;
    groups[code]!.rows[counts[code]!++] = row;
  }
  return groups;
}

type Key = number | string | bigint | boolean;

/** A value as transforms take it: decimals as their unscaled integer. */
function partitionSource(column: Column, row: number): PartitionValue {
  const value = column.valueAt(row) as PartitionValue;
  const isDecimal = typeof column.type === 'string' && column.type.startsWith('decimal');
  return isDecimal && value !== null ? bigintFromBytes(value as Uint8Array) : value;
}

/** Distinct transformed values of a column, and for each row which one it has. Nulls are a value. */
export function codeColumn(column: Column, transform: Transform): Coded {
  const apply = compileTransform(transform, column.type as PrimitiveTypeName);
  const keyOf = keyFunction(column, transform);
  const codes = new Int32Array(column.length);
  const values: PartitionValue[] = [];
  // Different keys may give one value (days of a month); values are told apart by their text.
  const byValue = new Map<string, number>();
  const byKey = new Map<Key | null, number>();
  const codeOf = (row: number) => {
    const value = apply(partitionSource(column, row));
    const text = value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
    const id = `${value === null ? '' : typeof value}:${text}`;
    let code = byValue.get(id);
    if (code === undefined) {
      code = values.push(value) - 1;
      byValue.set(id, code);
    }
    return code;
  };
  let lastKey: Key | null | undefined;
  let lastCode = 0;
  for (let row = 0; row < column.length; row++) {
    const key = column.isValid(row) ? keyOf(row) : null;
    if (key !== lastKey) {
      lastKey = key;
      const known = byKey.get(key);
      lastCode = known ?? codeOf(row);
      if (known === undefined) byKey.set(key, lastCode);
    }
    codes[row] = lastCode;
  }
  return { codes, values };
}

const TWO_32 = 4_294_967_296;
const HOUR_MICROS = 3_600_000_000;
const HOUR_NANOS = 3_600_000_000_000n;

/** A key per row that is at least as fine as the transform. */
function keyFunction(column: Column, { name, argument }: Transform): (row: number) => Key {
  if (name === 'bucket') return bucketKey(column, argument);
  if (column instanceof Int32Column) return (row) => column.values[row]!;
  if (column instanceof Int64Column) return int64Key(column, name);
  if (column instanceof BytesColumn) return byteKey(column);
  if (column instanceof FixedColumn) {
    return (row) => Buffer.from(column.bytesAt(row)).toString('latin1');
  }
  return (row) => column.valueAt(row) as Key;
}

/** Numbers distinct values by hash, compared byte for byte: far cheaper than a string per row. */
function byteKey(column: BytesColumn): (row: number) => number {
  const { hashOf, same } = byteValues(column);
  let table = new Int32Array(1 << 10);
  let mask = table.length - 1;
  /** The row each number was given at. */
  const rows: number[] = [];
  const grow = () => {
    table = new Int32Array(table.length * 4);
    mask = table.length - 1;
    for (const [number, row] of rows.entries()) {
      let probe = hashOf(row) & mask;
      while (table[probe] !== 0) probe = (probe + 1) & mask;
      table[probe] = number + 1;
    }
  };
  return (row) => {
    let probe = hashOf(row) & mask;
    for (let found = table[probe]!; found !== 0; found = table[probe]!) {
      if (same(row, rows[found - 1]!)) return found - 1;
      probe = (probe + 1) & mask;
    }
    table[probe] = rows.push(row);
    if (rows.length * 2 > mask) grow();
    return rows.length - 1;
  };
}

function int64Key(column: Int64Column, name: Transform['name']): (row: number) => Key {
  const { halves } = column;
  const isTime = name === 'hour' || name === 'day' || name === 'month' || name === 'year';
  if (!isTime) {
    return (row) => {
      const low = halves[2 * row]!;
      const high = halves[2 * row + 1]!;
      // Safe integers as numbers, others as bigint: never equal to one another.
      if (high >= -0x200000 && high < 0x200000) return high * TWO_32 + (low >>> 0);
      return (BigInt(high) << 32n) | BigInt(low >>> 0);
    };
  }
  const nanos = String(column.type).endsWith('_ns');
  const exactTicks = nanos ? HOUR_NANOS : BigInt(HOUR_MICROS);
  return (row) => {
    const low = halves[2 * row]! >>> 0;
    const high = halves[2 * row + 1]!;
    // Below 2^53 a double divides by an hour without reaching the next integer; beyond, and for nanoseconds, exact.
    if (!nanos && high >= -0x200000 && high < 0x200000) {
      return Math.floor((high * TWO_32 + low) / HOUR_MICROS);
    }
    return Number(floorDiv((BigInt(high) << 32n) | BigInt(low), exactTicks));
  };
}

/** Appendix B: integers and times hash as 8-byte longs, bytes and text as they are. */
function bucketKey(column: Column, buckets: number): (row: number) => Key {
  const bucket = (bytes: Uint8Array) => (murmur3(bytes) & 0x7fffffff) % buckets;
  const eight = new Int32Array(2);
  const eightBytes = new Uint8Array(eight.buffer);
  if (column instanceof Int32Column) {
    return (row) => {
      eight[0] = column.values[row]!;
      eight[1] = column.values[row]! >> 31;
      return bucket(eightBytes);
    };
  }
  if (column instanceof Int64Column && !String(column.type).endsWith('_ns')) {
    return (row) => {
      eight[0] = column.halves[2 * row]!;
      eight[1] = column.halves[2 * row + 1]!;
      return bucket(eightBytes);
    };
  }
  if (column instanceof BytesColumn) return (row) => bucket(column.bytesAt(row));
  const apply = compileTransform(
    { name: 'bucket', argument: buckets },
    column.type as PrimitiveTypeName,
  );
  return (row) => apply(partitionSource(column, row)) as number;
}
