// The rows of columns in a table's sort order, as row numbers: each sort field is one stable pass over the rows, from
// the last field to the first, by radix where values are of fixed width. No object per row, no comparison of rows.
// Not for: moving the rows (TableColumns.gather).
// Source: Iceberg table spec, "Sorting": floats order −NaN, −∞ … ∞, NaN; text and bytes by their bytes.
import { assert } from '../../base/assert.ts';
import { parseTransform } from '../iceberg/transform.ts';
import type { PartitionValue, SortField, SortOrder } from '../iceberg/types.ts';
import { BytesColumn, FixedColumn } from './byte-columns.ts';
import type { Column, RowSelection } from './column.ts';
import { codeColumn } from './partition.ts';
import { BooleanColumn, FloatColumn, Int32Column, Int64Column } from './scalar-columns.ts';
import type { TableColumns } from './table-columns.ts';

/** Rows of fewer runs of equal prefixes than this are compared one by one rather than by a further radix pass. */
const INSERTION_ROWS = 16;

/**
 * `rows` (by default all of `columns`) in the order's order; the very `rows` when they are in it already.
 * Fields whose column the schema no longer has are passed over.
 */
export function sortRows(
  columns: TableColumns,
  order: SortOrder,
  rows: RowSelection = identity(columns.rowCount),
): RowSelection {
  columns.align();
  let sorted = rows;
  for (const field of order.fields.toReversed()) {
    const column = columns.byId(field['source-id']);
    if (column === undefined) continue;
    assert(column.length === columns.rowCount, 'a sort column is not inside a list or map');
    sorted = sortBy(column, field, sorted);
  }
  return sorted;
}

function identity(count: number): Int32Array {
  const rows = new Int32Array(count);
  for (let row = 0; row < count; row++) rows[row] = row;
  return rows;
}

/** One stable pass. */
function sortBy(column: Column, field: SortField, rows: RowSelection): RowSelection {
  const { name } = parseTransform(field.transform);
  if (name === 'void' || name === 'unknown') return rows;
  const descending = field.direction === 'desc';
  const nullsFirst = field['null-order'] === 'nulls-first';
  if (name !== 'identity') {
    const ranks = transformRanks(column, field.transform);
    return placeNulls(rows, ranks.isValid, {
      nullsFirst,
      sort: (valid) => radix(valid, [word(ranks.ofRow)], descending),
    });
  }
  return placeNulls(rows, (row) => column.isValid(row), {
    nullsFirst,
    sort: (valid) => sortValues(column, valid, descending),
  });
}

/** Nulls keep their order at one end; the others are sorted. */
function placeNulls(
  rows: RowSelection,
  isValid: (row: number) => boolean,
  {
    nullsFirst,
    sort,
  }: { readonly nullsFirst: boolean; readonly sort: (valid: RowSelection) => RowSelection },
): RowSelection {
  let nulls = 0;
  for (let i = 0; i < rows.length; i++) if (!isValid(rows[i]!)) nulls++;
  if (nulls === 0) return sort(rows);
  const none = new Int32Array(nulls);
  const valid = new Int32Array(rows.length - nulls);
  let toNone = 0;
  let toValid = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    if (isValid(row)) valid[toValid++] = row;
    else none[toNone++] = row;
  }
  const placed = new Int32Array(rows.length);
  placed.set(none, nullsFirst ? 0 : valid.length);
  placed.set(sort(valid), nullsFirst ? nulls : 0);
  return placed;
}

/** One word of every row's key: `array[row * stride + offset] ^ flip`, as an unsigned 32-bit number. */
interface Word {
  readonly array: Int32Array;
  readonly stride: number;
  readonly offset: number;
  readonly flip: number;
}

/** The least significant word first. */
type Words = readonly Word[];

const SIGN = 0x80000000 | 0;
const ALL = 0xffffffff | 0;

const word = (array: Int32Array, flip = 0, stride = 1, offset = 0): Word => ({
  array,
  stride,
  offset,
  flip,
});

function sortValues(column: Column, rows: RowSelection, descending: boolean): RowSelection {
  if (column instanceof Int32Column) return radix(rows, [word(column.values, SIGN)], descending);
  if (column instanceof Int64Column) {
    const { halves } = column;
    return radix(rows, [word(halves, 0, 2), word(halves, SIGN, 2, 1)], descending);
  }
  if (column instanceof FloatColumn) return radix(rows, floatWords(column), descending);
  if (column instanceof BooleanColumn) {
    return radix(rows, [word(Int32Array.from(column.values))], descending);
  }
  if (column instanceof FixedColumn) {
    const { data, width } = column;
    const signed = String(column.type).startsWith('decimal');
    const starts = new Int32Array(column.length + 1);
    for (let row = 0; row <= column.length; row++) starts[row] = row * width;
    return sortBytes(rows, { data, signed, descending, offsets: starts });
  }
  assert(column instanceof BytesColumn, 'a sort column holds primitives');
  const { data, offsets } = column;
  return sortBytes(rows, { data, signed: false, descending, offsets });
}

/** IEEE bits so that they order as unsigned integers: negative ones are flipped whole, others get the sign bit. */
function floatWords(column: FloatColumn): Words {
  const { values, length } = column;
  const wide = column.kind === 'float64';
  const bits = new Int32Array(values.buffer, values.byteOffset, values.byteLength / 4);
  const high = new Int32Array(length);
  const low = new Int32Array(wide ? length : 0);
  for (let row = 0; row < length; row++) {
    const top = wide ? bits[2 * row + 1]! : bits[row]!;
    high[row] = top ^ ((top >> 31) | SIGN);
    if (wide) low[row] = bits[2 * row]! ^ (top >> 31);
  }
  return wide ? [word(low), word(high)] : [word(high)];
}

const BUCKETS = 1 << 16;
const counts = new Int32Array(BUCKETS);

/** Least significant digits first, 16 bits a pass; a digit that all rows share costs a look. */
function radix(rows: RowSelection, words: Words, descending: boolean): RowSelection {
  let from = rows;
  let spare: Int32Array | undefined;
  for (const one of words) {
    const flip = descending ? one.flip ^ ALL : one.flip;
    for (let shift = 0; shift < 32; shift += 16) {
      const into = digitPass(from, { ...one, flip }, { shift, spare });
      if (into === from) continue;
      spare = from === rows ? undefined : from;
      from = into;
    }
  }
  return from;
}

/** One counting pass into `spare` or a new array; the very `rows` when they are in order already. */
function digitPass(
  rows: RowSelection,
  { array, stride, offset, flip }: Word,
  { shift, spare }: { readonly shift: number; readonly spare: Int32Array | undefined },
): RowSelection {
  const { length } = rows;
  counts.fill(0);
  let ordered = true;
  let last = 0;
  let low = BUCKETS;
  let high = 0;
  for (let i = 0; i < length; i++) {
    const value = ((array[rows[i]! * stride + offset]! ^ flip) >>> shift) & 0xffff;
    if (value < last) ordered = false;
    last = value;
    if (value < low) low = value;
    if (value > high) high = value;
    counts[value]!++;
  }
  if (ordered) return rows;
  let at = 0;
  for (let bucket = low; bucket <= high; bucket++) {
    const count = counts[bucket]!;
    counts[bucket] = at;
    at += count;
  }
  const into = spare ?? new Int32Array(length);
  for (let i = 0; i < length; i++) {
    const row = rows[i]!;
    into[counts[((array[row * stride + offset]! ^ flip) >>> shift) & 0xffff]!++] = row;
  }
  return into;
}

interface ByteKeys {
  readonly data: Uint8Array;
  /** Row i is `data[offsets[i], offsets[i + 1])`. */
  readonly offsets: Int32Array;
  /** Big-endian two's complement: the first byte's top bit means negative. */
  readonly signed: boolean;
  readonly descending: boolean;
}

/** Bytes of a key's prefix; one of them holds the length where that is enough to tell values apart. */
const PREFIX_BYTES = 8;

/**
 * By the first bytes after what all have in common; where values are longer than those, then whole within runs that
 * agree there.
 */
function sortBytes(rows: RowSelection, keys: ByteKeys): RowSelection {
  if (rows.length < 2) return rows;
  const { data, offsets, descending } = keys;
  const { common, longest } = commonPrefix(rows, keys);
  const isShort = longest - common < PREFIX_BYTES;
  const sign = keys.signed && common === 0 ? SIGN : 0;
  const heads = new Int32Array(offsets.length);
  const tails = new Int32Array(offsets.length);
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    const start = offsets[row]! + common;
    const end = offsets[row + 1]!;
    let head = 0;
    let tail = 0;
    for (let at = start; at < start + 4; at++) head = (head << 8) | (at < end ? data[at]! : 0);
    for (let at = start + 4; at < start + 8; at++) tail = (tail << 8) | (at < end ? data[at]! : 0);
    heads[row] = head ^ sign;
    // A shorter value comes before one that goes on with zeros.
    tails[row] = isShort ? (tail & 0xffffff00) | (end - start) : tail;
  }
  const sorted = radix(rows, [word(tails), word(heads)], descending);
  if (isShort) return sorted;
  const same = (a: number, b: number) => heads[a] === heads[b] && tails[a] === tails[b];
  return sortRuns(sorted, same, (a, b) => compareFrom(keys, common, a, b));
}

function commonPrefix(rows: RowSelection, { data, offsets }: ByteKeys) {
  const first = offsets[rows[0]!]!;
  let common = offsets[rows[0]! + 1]! - first;
  let longest = common;
  for (let i = 1; i < rows.length; i++) {
    const from = offsets[rows[i]!]!;
    const length = offsets[rows[i]! + 1]! - from;
    if (length > longest) longest = length;
    if (length < common) common = length;
    let at = 0;
    while (at < common && data[from + at] === data[first + at]) at++;
    common = at;
  }
  return { common, longest };
}

function compareFrom(
  { data, offsets, descending }: ByteKeys,
  skip: number,
  a: number,
  b: number,
): number {
  let x = offsets[a]! + skip;
  let y = offsets[b]! + skip;
  const endX = offsets[a + 1]!;
  const endY = offsets[b + 1]!;
  for (; x < endX && y < endY; x++, y++) {
    if (data[x] !== data[y]) return descending ? data[y]! - data[x]! : data[x]! - data[y]!;
  }
  const rest = endX - x - (endY - y);
  return descending ? -rest : rest;
}

/** Sorts each run of rows that are the `same` so far; stable, as ties stay in their order. */
function sortRuns(
  rows: RowSelection,
  same: (a: number, b: number) => boolean,
  compare: (a: number, b: number) => number,
): RowSelection {
  let sorted: Int32Array | undefined;
  for (let from = 0; from < rows.length; ) {
    let to = from + 1;
    let ordered = true;
    while (to < rows.length && same(rows[from]!, rows[to]!)) {
      ordered &&= compare(rows[to - 1]!, rows[to]!) <= 0;
      to++;
    }
    if (!ordered) {
      // A copy: `rows` may be the caller's own.
      sorted ??= Int32Array.from(rows);
      const run = sorted.subarray(from, to);
      if (run.length <= INSERTION_ROWS) insertionSort(run, compare);
      else run.set(Array.from(run).sort(compare));
    }
    from = to;
  }
  return sorted ?? rows;
}

function insertionSort(run: Int32Array, compare: (a: number, b: number) => number): void {
  for (let i = 1; i < run.length; i++) {
    const row = run[i]!;
    let at = i;
    while (at > 0 && compare(run[at - 1]!, row) > 0) {
      run[at] = run[at - 1]!;
      at--;
    }
    run[at] = row;
  }
}

/** Transformed values by their rank among the distinct ones. */
function transformRanks(column: Column, transform: string) {
  const { codes, values } = codeColumn(column, parseTransform(transform));
  const byValue = values.map((_, code) => code).filter((code) => values[code] !== null);
  byValue.sort((a, b) => compareValues(values[a]!, values[b]!));
  const ranks = new Int32Array(values.length);
  byValue.forEach((code, rank) => {
    ranks[code] = rank;
  });
  const ofRow = codes.map((code) => ranks[code]!);
  return { ofRow, isValid: (row: number) => values[codes[row]!] !== null };
}

function compareValues(a: Exclude<PartitionValue, null>, b: Exclude<PartitionValue, null>): number {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b);
  if (typeof a === 'string' && typeof b === 'string') {
    return Buffer.compare(Buffer.from(a), Buffer.from(b));
  }
  return a < b ? -1 : a > b ? 1 : 0;
}
