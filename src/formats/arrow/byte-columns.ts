// Columns of bytes: string and binary (offsets and data), and fixed width (uuid, fixed, decimal).
// Strings arrive as UTF-8 and stay UTF-8; whoever appends has checked them.
import { assert } from '../../base/assert.ts';
import type { IcebergType } from '../iceberg/types.ts';
import { Column, fillRange, grown, INITIAL_CAPACITY, type RowSelection } from './column.ts';
import { isUtf8Range } from './utf8.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Data bytes of one column, at most: offsets are 32 bits. Writers close row groups far below it. */
export const MAX_COLUMN_BYTES = 2 ** 31 - 1;

/** Copies up to this length byte by byte: shorter than the cost of a native call. */
const LOOP_COPY_BYTES = 128;

/** string or binary. */
export class BytesColumn extends Column {
  readonly kind = 'bytes';
  /** Row i is `data[offsets[i], offsets[i + 1])`. */
  offsets = new Int32Array(INITIAL_CAPACITY + 1);
  data = new Uint8Array(INITIAL_CAPACITY * 8);

  /** Copies `source[start, end)`. */
  append(source: Uint8Array, start: number, end: number): void {
    const row = this.claim();
    const from = this.offsets[row]!;
    const to = from + end - start;
    if (to > this.data.length) this.reserveBytes(to);
    const data = this.data;
    if (end - start <= LOOP_COPY_BYTES) {
      for (let i = start, j = from; i < end; ) data[j++] = source[i++]!;
    } else {
      data.set(source.subarray(start, end), from);
    }
    this.offsets[row + 1] = to;
  }

  /** Copies `source[start, end)` if it is UTF-8. False: the row is to be rolled back. */
  appendUtf8(source: Uint8Array, start: number, end: number): boolean {
    const length = end - start;
    if (length > LOOP_COPY_BYTES) {
      if (!isUtf8Range(source, start, end)) return false;
      this.append(source, start, end);
      return true;
    }
    const row = this.claim();
    const from = this.offsets[row]!;
    const to = from + length;
    if (to > this.data.length) this.reserveBytes(to);
    const data = this.data;
    // Checked on the way: most text is ASCII.
    let all = 0;
    for (let i = start, j = from; i < end; ) {
      const byte = source[i++]!;
      all |= byte;
      data[j++] = byte;
    }
    this.offsets[row + 1] = to;
    return all < 0x80 || isUtf8Range(source, start, end);
  }

  /** Encodes `text` as UTF-8; lone surrogates become U+FFFD. */
  appendText(text: string): void {
    const row = this.claim();
    const from = this.offsets[row]!;
    if (from + text.length * 3 > this.data.length) this.reserveBytes(from + text.length * 3);
    const { written } = encoder.encodeInto(text, this.data.subarray(from));
    this.offsets[row + 1] = from + written;
  }

  /** Room for `total` data bytes. */
  reserveBytes(total: number): void {
    if (total <= this.data.length) return;
    assert(total <= MAX_COLUMN_BYTES, 'a column of one row group stays below 2 GiB');
    let size = this.data.length;
    while (size < total) size *= 2;
    this.data = grown(this.data, Math.min(size, MAX_COLUMN_BYTES));
  }

  /** A view of the value's bytes; empty for null. Valid until the next append. */
  bytesAt(row: number): Uint8Array {
    return this.data.subarray(this.offsets[row]!, this.offsets[row + 1]!);
  }

  byteSize(): number {
    return this.length * 4 + this.offsets[this.length]!;
  }

  valueAt(row: number): string | Uint8Array | null {
    if (!this.isValid(row)) return null;
    const bytes = this.bytesAt(row);
    return this.type === 'string' ? decoder.decode(bytes) : bytes.slice();
  }

  createLike(): BytesColumn {
    return new BytesColumn(this.type);
  }

  protected gatherInto(target: BytesColumn, rows: RowSelection): void {
    this.gatherFlags(target, rows);
    const { offsets, data } = this;
    const ends = target.offsets;
    let total = 0;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      total += offsets[row + 1]! - offsets[row]!;
      ends[i + 1] = total;
    }
    target.reserveBytes(total);
    const copied = target.data;
    for (let i = 0, to = 0; i < rows.length; i++) {
      const row = rows[i]!;
      const start = offsets[row]!;
      const end = offsets[row + 1]!;
      if (end - start <= LOOP_COPY_BYTES) {
        for (let from = start; from < end; ) copied[to++] = data[from++]!;
      } else {
        copied.set(data.subarray(start, end), to);
        to += end - start;
      }
    }
  }

  protected grow(capacity: number): void {
    this.offsets = grown(this.offsets, capacity + 1);
  }

  protected padValues(from: number, to: number): void {
    fillRange(this.offsets, this.offsets[from]!, from + 1, to + 1);
  }

  protected truncateValues(): void {}
}

/** Bytes of one value: 16 for uuid and decimal (big-endian two's complement), L for fixed[L]. */
function fixedWidth(type: IcebergType): number {
  if (type === 'uuid') return 16;
  if (typeof type === 'string' && type.startsWith('decimal(')) return 16;
  const match = typeof type === 'string' ? /^fixed\[(\d+)\]$/.exec(type) : null;
  assert(match !== null, 'a fixed-width column is uuid, decimal or fixed[L]');
  return Number(match[1]);
}

/** uuid, fixed[L], and decimal as 16 bytes of big-endian two's complement. */
export class FixedColumn extends Column {
  readonly kind = 'fixed';
  readonly width: number;
  data: Uint8Array;

  constructor(type: IcebergType) {
    super(type);
    this.width = fixedWidth(type);
    this.data = new Uint8Array(INITIAL_CAPACITY * this.width);
  }

  /** Copies `width` bytes from `source` at `start`. */
  append(source: Uint8Array, start: number): void {
    const at = this.claim() * this.width;
    for (let i = 0; i < this.width; i++) this.data[at + i] = source[start + i]!;
  }

  /** For decimals: `source[start, end)` is a big-endian two's complement of 1 to 16 bytes, sign-extended here. */
  appendSigned(source: Uint8Array, start: number, end: number): void {
    const at = this.claim() * this.width;
    const pad = this.width - (end - start);
    const sign = start < end && source[start]! & 0x80 ? 0xff : 0;
    for (let i = 0; i < pad; i++) this.data[at + i] = sign;
    for (let i = start, j = at + pad; i < end; ) this.data[j++] = source[i++]!;
  }

  /** For decimals: `value` in big-endian two's complement; it must fit. */
  appendBigInt(value: bigint): void {
    const at = this.claim() * this.width;
    let rest = value;
    for (let i = at + this.width - 1; i >= at; i--) {
      this.data[i] = Number(rest & 0xffn);
      rest >>= 8n;
    }
  }

  bytesAt(row: number): Uint8Array {
    return this.data.subarray(row * this.width, (row + 1) * this.width);
  }

  byteSize(): number {
    return this.length * this.width;
  }

  valueAt(row: number): Uint8Array | null {
    return this.isValid(row) ? this.bytesAt(row).slice() : null;
  }

  createLike(): FixedColumn {
    return new FixedColumn(this.type);
  }

  protected gatherInto(target: FixedColumn, rows: RowSelection): void {
    this.gatherFlags(target, rows);
    const { width, data } = this;
    const copied = target.data;
    for (let i = 0; i < rows.length; i++) {
      const from = rows[i]! * width;
      for (let j = 0; j < width; j++) copied[i * width + j] = data[from + j]!;
    }
  }

  protected grow(capacity: number): void {
    this.data = grown(this.data, capacity * this.width);
  }

  protected padValues(): void {}

  protected truncateValues(): void {}
}
