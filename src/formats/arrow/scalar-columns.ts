// Columns of fixed-width scalars: boolean, int and date, long and the times, float, double.
// 64-bit integers live as two 32-bit halves in one buffer, so that appending never makes a BigInt.
import type { IcebergType } from '../iceberg/types.ts';
import { Column, grown, INITIAL_CAPACITY, type RowSelection } from './column.ts';

const TWO_32 = 4_294_967_296;

/** boolean, one byte a value. */
export class BooleanColumn extends Column {
  readonly kind = 'boolean';
  values = new Uint8Array(INITIAL_CAPACITY);

  append(value: boolean): void {
    const row = this.claim();
    this.values[row] = value ? 1 : 0;
  }

  byteSize(): number {
    return this.length;
  }

  valueAt(row: number): boolean | null {
    return this.isValid(row) ? this.values[row] === 1 : null;
  }

  createLike(): BooleanColumn {
    return new BooleanColumn(this.type);
  }

  protected gatherInto(target: BooleanColumn, rows: RowSelection): void {
    this.gatherFlags(target, rows);
    const { values } = this;
    const copied = target.values;
    for (let i = 0; i < rows.length; i++) copied[i] = values[rows[i]!]!;
  }

  protected grow(capacity: number): void {
    this.values = grown(this.values, capacity);
  }

  protected padValues(): void {}

  protected truncateValues(): void {}
}

/** int and date (days since the epoch). */
export class Int32Column extends Column {
  readonly kind = 'int32';
  values = new Int32Array(INITIAL_CAPACITY);

  append(value: number): void {
    const row = this.claim();
    this.values[row] = value;
  }

  byteSize(): number {
    return this.length * 4;
  }

  valueAt(row: number): number | null {
    return this.isValid(row) ? this.values[row]! : null;
  }

  createLike(): Int32Column {
    return new Int32Column(this.type);
  }

  protected gatherInto(target: Int32Column, rows: RowSelection): void {
    this.gatherFlags(target, rows);
    const { values } = this;
    const copied = target.values;
    for (let i = 0; i < rows.length; i++) copied[i] = values[rows[i]!]!;
  }

  protected grow(capacity: number): void {
    this.values = grown(this.values, capacity);
  }

  protected padValues(): void {}

  protected truncateValues(): void {}
}

/** long, time (microseconds of the day), timestamp and timestamptz (microseconds since the epoch), the _ns ones. */
export class Int64Column extends Column {
  readonly kind = 'int64';
  /** Low and high half of row i at 2i and 2i + 1: little-endian 64-bit integers. */
  halves = new Int32Array(INITIAL_CAPACITY * 2);

  /** `value` must be a safe integer. */
  append(value: number): void {
    const row = this.claim() * 2;
    this.halves[row] = value;
    this.halves[row + 1] = Math.floor(value / TWO_32);
  }

  /** The 64-bit integer with these halves. */
  appendHalves(low: number, high: number): void {
    const row = this.claim() * 2;
    this.halves[row] = low;
    this.halves[row + 1] = high;
  }

  appendBigInt(value: bigint): void {
    this.appendHalves(Number(value & 0xffffffffn) | 0, Number(value >> 32n));
  }

  /** The rows so far as 64-bit integers over the same memory. Valid until the next append. */
  bigints(): BigInt64Array {
    return new BigInt64Array(this.halves.buffer, this.halves.byteOffset, this.length);
  }

  byteSize(): number {
    return this.length * 8;
  }

  valueAt(row: number): bigint | null {
    return this.isValid(row) ? this.bigints()[row]! : null;
  }

  createLike(): Int64Column {
    return new Int64Column(this.type);
  }

  protected gatherInto(target: Int64Column, rows: RowSelection): void {
    this.gatherFlags(target, rows);
    const { halves } = this;
    const copied = target.halves;
    for (let i = 0; i < rows.length; i++) {
      const from = rows[i]! * 2;
      copied[2 * i] = halves[from]!;
      copied[2 * i + 1] = halves[from + 1]!;
    }
  }

  protected grow(capacity: number): void {
    this.halves = grown(this.halves, capacity * 2);
  }

  protected padValues(): void {}

  protected truncateValues(): void {}
}

/** float or double. */
export class FloatColumn extends Column {
  readonly kind: 'float32' | 'float64';
  values: Float32Array | Float64Array;

  constructor(type: IcebergType) {
    super(type);
    this.kind = type === 'float' ? 'float32' : 'float64';
    this.values =
      type === 'float' ? new Float32Array(INITIAL_CAPACITY) : new Float64Array(INITIAL_CAPACITY);
  }

  append(value: number): void {
    const row = this.claim();
    this.values[row] = value;
  }

  byteSize(): number {
    return this.length * this.values.BYTES_PER_ELEMENT;
  }

  valueAt(row: number): number | null {
    return this.isValid(row) ? this.values[row]! : null;
  }

  createLike(): FloatColumn {
    return new FloatColumn(this.type);
  }

  protected gatherInto(target: FloatColumn, rows: RowSelection): void {
    this.gatherFlags(target, rows);
    const { values } = this;
    const copied = target.values;
    for (let i = 0; i < rows.length; i++) copied[i] = values[rows[i]!]!;
  }

  protected grow(capacity: number): void {
    this.values = grown(this.values, capacity);
  }

  protected padValues(): void {}

  protected truncateValues(): void {}
}
