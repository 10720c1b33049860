// The canonical form of a key, in one place: column buffers of a worker, columns read back from Parquet files and the
// keys of Kafka records all go through `KeyHasher`, so equal keys have equal hashes wherever they were met.
// A value is a byte that says null or not, then its type's form: integers, dates and times as 8 bytes (so int → long
// keeps its keys), floats as doubles with one zero and one NaN, decimals as 16 bytes unscaled (so a wider precision
// keeps them), uuid and fixed as they are, text and binary with their length before them. Columns follow each other.
// Not for: the hash itself (sip-hash.ts), which columns are the key (id-columns.ts).
import { assert } from '../../base/assert.ts';
import { BytesColumn, FixedColumn } from '../../formats/arrow/byte-columns.ts';
import type { Column } from '../../formats/arrow/column.ts';
import {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../../formats/arrow/scalar-columns.ts';
import { type HashKey, SipHash128 } from './sip-hash.ts';

/** Where the form of one key is put together. */
class Scratch {
  bytes = new Uint8Array(256);
  view = new DataView(this.bytes.buffer);
  length = 0;

  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.length + more));
    larger.set(this.bytes.subarray(0, this.length));
    this.bytes = larger;
    this.view = new DataView(larger.buffer);
  }
}

type Append = (row: number, to: Scratch) => void;

/** Longest part of a fixed-width form. */
const FIXED_ROOM = 32;

function appender(column: Column): Append {
  if (column instanceof Int32Column) {
    return (row, to) => {
      const value = column.values[row]!;
      to.view.setInt32(to.length, value, true);
      to.view.setInt32(to.length + 4, value >> 31, true);
      to.length += 8;
    };
  }
  if (column instanceof Int64Column) {
    return (row, to) => {
      to.view.setInt32(to.length, column.halves[2 * row]!, true);
      to.view.setInt32(to.length + 4, column.halves[2 * row + 1]!, true);
      to.length += 8;
    };
  }
  if (column instanceof BytesColumn) return (row, to) => appendBytes(column, row, to);
  if (column instanceof FixedColumn) {
    const { width } = column;
    return (row, to) => {
      to.reserve(width + FIXED_ROOM);
      for (let n = 0; n < width; n += 1) to.bytes[to.length + n] = column.data[row * width + n]!;
      to.length += width;
    };
  }
  if (column instanceof FloatColumn) {
    return (row, to) => {
      const value = column.values[row]!;
      // Adding zero turns −0 into 0; every NaN is written as the same one.
      to.view.setFloat64(to.length, Number.isNaN(value) ? Number.NaN : value + 0, true);
      to.length += 8;
    };
  }
  assert(column instanceof BooleanColumn, 'K2: a key is made of primitive columns');
  return (row, to) => {
    to.bytes[to.length] = column.values[row]!;
    to.length += 1;
  };
}

function appendBytes(column: BytesColumn, row: number, to: Scratch): void {
  const start = column.offsets[row]!;
  const end = column.offsets[row + 1]!;
  to.reserve(end - start + FIXED_ROOM);
  to.view.setUint32(to.length, end - start, true);
  const at = to.length + 4 - start;
  for (let n = start; n < end; n += 1) to.bytes[at + n] = column.data[n]!;
  to.length = at + end;
}

/** Hashes the keys that stand in some columns, row by row; the last hash is `hash.h0` to `hash.h3`. */
export class KeyHasher {
  readonly hash: SipHash128;
  readonly #columns: readonly Column[];
  readonly #appends: readonly Append[];
  readonly #scratch = new Scratch();

  /** `columns` in the order of the id columns. */
  constructor(columns: readonly Column[], key: HashKey) {
    this.hash = new SipHash128(key);
    this.#columns = columns;
    this.#appends = columns.map(appender);
  }

  /** True when a part of the key in `row` is null. Columns may lag behind: what isn't there yet is null. */
  hasNull(row: number): boolean {
    for (const column of this.#columns)
      if (row >= column.length || !column.isValid(row)) return true;
    return false;
  }

  /** Hashes the key in `row`. */
  row(row: number): void {
    const to = this.#scratch;
    to.length = 0;
    for (let n = 0; n < this.#columns.length; n += 1) {
      const column = this.#columns[n]!;
      to.reserve(FIXED_ROOM);
      if (row >= column.length || !column.isValid(row)) {
        to.bytes[to.length] = 0;
        to.length += 1;
        continue;
      }
      to.bytes[to.length] = 1;
      to.length += 1;
      this.#appends[n]!(row, to);
    }
    this.hash.hash(to.bytes, to.length);
  }
}
