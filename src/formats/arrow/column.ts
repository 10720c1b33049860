// The part that all column builders share: length, null flags, row rollback, reuse of buffers.
//
// A column holds values in Arrow's layout (one slot per row, offsets for what varies in length), with two
// deviations that make appending cheap: null flags are a byte each and exist only once a null came, and a
// column may lag behind its parent, in which case the missing rows are null (`padTo`). Decoders therefore never
// touch the columns a record doesn't mention. Not for: reading values back row by row (`valueAt` is for tests,
// partition tuples and dead letters).
import { assert } from '../../base/assert.ts';
import type { IcebergType } from '../iceberg/types.ts';
import { ValueCodes } from './value-codes.ts';

/** Slots of a fresh column; buffers double from here and are kept by `clear`. */
export const INITIAL_CAPACITY = 1024;

/** Selected rows, in order: the argument of `gather`. */
export type RowSelection = Int32Array;

/** A growable column of one Iceberg type. Row numbers are slots of this column, not of the table. */
export abstract class Column {
  readonly type: IcebergType;
  /** Rows so far, nulls included. */
  length = 0;
  nullCount = 0;
  /** Rows that fit the buffers. Like `flags` for this folder, and for code that is written out (avro/inline-reads.ts). */
  capacity = INITIAL_CAPACITY;
  /** 1 valid, 0 null, one byte a row; null while no row is null. Readers want `validity`. */
  flags: Uint8Array | null = null;
  /** What readers of files note of equal values; null where nobody asked for it. */
  codes: ValueCodes | null = null;
  /** Flags of rows that were cleared: most columns that had a null will have one again. */
  #spare: Uint8Array | null = null;

  constructor(type: IcebergType) {
    this.type = type;
  }

  /** True when row `row` has a value. */
  isValid(row: number): boolean {
    return this.flags === null || this.flags[row] === 1;
  }

  /** One byte a row (1 valid, 0 null), or null when no row is null. Valid until the next append. */
  get validity(): Uint8Array | null {
    return this.nullCount === 0 ? null : this.flags;
  }

  appendNull(): void {
    if (this.flags === null) {
      this.padTo(this.length + 1);
      return;
    }
    const row = this.claim();
    this.flags[row] = 0;
    this.nullCount++;
    this.padValues(row, row + 1);
  }

  /** Appends nulls until `length` rows are there; does nothing when they are. */
  padTo(length: number): void {
    const from = this.length;
    if (length <= from) return;
    this.reserve(length);
    const flags = this.flags ?? this.#freshFlags(from);
    fillRange(flags, 0, from, length);
    this.nullCount += length - from;
    this.length = length;
    this.padValues(from, length);
  }

  /** Forgets the rows from `length` on, and children without a row: undoes what failed half-way. */
  truncate(length: number): void {
    if (this.flags !== null) {
      for (let row = length; row < this.length; row++) if (this.flags[row] === 0) this.nullCount--;
    }
    this.length = Math.min(length, this.length);
    this.codes?.truncate(this.length);
    this.truncateValues(this.length);
  }

  /** Forgets all rows and keeps the buffers. */
  clear(): void {
    this.length = 0;
    this.nullCount = 0;
    this.codes?.clear();
    this.#spare = this.flags ?? this.#spare;
    this.flags = null;
    this.truncateValues(0);
  }

  /** Makes room for `length` rows. */
  reserve(length: number): void {
    if (length <= this.capacity) return;
    let capacity = this.capacity;
    while (capacity < length) capacity *= 2;
    this.capacity = capacity;
    if (this.flags !== null) this.flags = grown(this.flags, capacity);
    this.grow(capacity);
  }

  /** The given rows of this one, in that order: in a new column, or in `target`, which an earlier gather returned. */
  gather(rows: RowSelection, target: Column = this.createLike()): Column {
    target.clear();
    target.reserve(rows.length);
    this.gatherInto(target, rows);
    if (this.codes !== null) this.codes.gather(rows, (target.codes ??= new ValueCodes()));
    assert(target.length === rows.length, 'gather takes every selected row');
    return target;
  }

  /** Copies the flags of the selected rows; the values are `gatherInto`'s business. */
  protected gatherFlags(target: Column, rows: RowSelection): void {
    target.length = rows.length;
    const flags = this.validity;
    if (flags === null) return;
    const copied = new Uint8Array(target.capacity);
    let nulls = 0;
    for (let i = 0; i < rows.length; i++) {
      const flag = flags[rows[i]!]!;
      copied[i] = flag;
      nulls += 1 - flag;
    }
    target.flags = copied;
    target.nullCount = nulls;
  }

  /**
   * Counts `count` more rows at once, for readers of files; their values (offsets too, also those of nulls) are written
   * by the caller. `flags`: 1 valid, 0 null, one byte a row; null when all are valid. Returns the first row.
   */
  extend(count: number, flags: Uint8Array | null): number {
    const from = this.length;
    const length = from + count;
    this.reserve(length);
    if (flags !== null && this.flags === null) this.#freshFlags(from);
    if (flags === null) this.flags?.fill(1, from, length);
    else {
      this.flags!.set(flags.subarray(0, count), from);
      let valid = 0;
      for (let i = 0; i < count; i++) valid += flags[i]!;
      this.nullCount += count - valid;
    }
    this.length = length;
    return from;
  }

  /** Flags that say of the rows so far that they have values; what lies beyond them is written before it counts. */
  #freshFlags(rows: number): Uint8Array {
    const spare = this.#spare;
    const flags = spare?.length === this.capacity ? spare : new Uint8Array(this.capacity);
    this.#spare = null;
    this.flags = flags;
    return flags.fill(1, 0, rows);
  }

  /** Counts one more row, which has a value, and returns its number. Values must be written by the caller. */
  protected claim(): number {
    const row = this.length;
    if (row === this.capacity) this.reserve(row + 1);
    if (this.flags !== null) this.flags[row] = 1;
    this.length = row + 1;
    return row;
  }

  /** Bytes of the rows so far in Arrow's layout, for size limits. */
  abstract byteSize(): number;
  /** The value of a row as plain data: long and timestamps bigint, bytes Uint8Array, null for null. */
  abstract valueAt(row: number): unknown;
  /** An empty column of the same type, nested ones too. */
  abstract createLike(): Column;
  protected abstract gatherInto(target: Column, rows: RowSelection): void;
  protected abstract grow(capacity: number): void;
  /** Completes the layout for null rows `[from, to)`: offsets. What stands in a null's slot is never read. */
  protected abstract padValues(from: number, to: number): void;
  protected abstract truncateValues(length: number): void;
}

/** Ranges up to this length are filled one by one: shorter than the cost of a native call. */
const LOOP_FILL = 16;

/** Sets `array[from, to)`: a column that few rows mention is padded by many short runs and some long ones. */
export function fillRange(
  array: Uint8Array | Int32Array,
  value: number,
  from: number,
  to: number,
): void {
  if (to - from > LOOP_FILL) array.fill(value, from, to);
  else for (let i = from; i < to; i++) array[i] = value;
}

type Growable = Uint8Array | Int32Array | Float32Array | Float64Array;

/** `array` with room for `capacity` elements, contents kept. */
export function grown<T extends Growable>(array: T, capacity: number): T {
  const larger = new (array.constructor as new (length: number) => T)(capacity);
  larger.set(array as never);
  return larger;
}
