// Reads Avro's binary primitives from bytes, with bounds checks and without making objects or BigInts.
// A value that can't be read throws the one preallocated RowFailure; decoders catch it at the row's border, so a
// stream of bad records costs no stack traces.
// Source: Avro specification, "Binary Encoding".
import { RowFailure } from '../arrow/row-failure.ts';

const TWO_32 = 4_294_967_296;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export class AvroCursor {
  bytes: Uint8Array = new Uint8Array(0);
  /** The same bytes. */
  view = new DataView(this.bytes.buffer);
  pos = 0;
  /** First byte that is not the value's. */
  end = 0;
  /** Halves of the last `readLong`: a 64-bit two's complement. */
  low = 0;
  high = 0;
  /** Nested levels of recursive types being read. */
  depth = 0;

  reset(bytes: Uint8Array, start: number, end: number): void {
    if (bytes !== this.bytes) {
      this.bytes = bytes;
      this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.pos = start;
    this.end = end;
    this.depth = 0;
  }

  /** Zig-zag varint of 32 bits. */
  readInt(): number {
    const { bytes, end } = this;
    let pos = this.pos;
    if (pos >= end) RowFailure.raise('truncated');
    let byte = bytes[pos++]!;
    let raw = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      if (pos >= end) RowFailure.raise('truncated');
      byte = bytes[pos++]!;
      if (shift === 28 && byte > 0x0f) RowFailure.raise('int out of range');
      raw |= (byte & 0x7f) << shift;
    }
    this.pos = pos;
    return (raw >>> 1) ^ -(raw & 1);
  }

  /** Zig-zag varint of 64 bits into `low` and `high`. */
  readLong(): void {
    const { bytes, end } = this;
    let pos = this.pos;
    if (pos >= end) RowFailure.raise('truncated');
    let byte = bytes[pos++]!;
    let raw = byte & 0x7f;
    for (let shift = 7; byte >= 0x80 && shift < 28; shift += 7) {
      if (pos >= end) RowFailure.raise('truncated');
      byte = bytes[pos++]!;
      raw |= (byte & 0x7f) << shift;
    }
    this.pos = pos;
    if (byte < 0x80) {
      // At most 28 bits: the common case.
      const value = (raw >>> 1) ^ -(raw & 1);
      this.low = value;
      this.high = value >> 31;
    } else {
      this.#readLongTail(raw);
    }
  }

  #readLongTail(first: number): void {
    const { bytes, end } = this;
    let middle = 0;
    let last = 0;
    let byte = 0x80;
    for (let shift = 0; byte >= 0x80; shift += 7) {
      if (this.pos >= end) RowFailure.raise('truncated');
      byte = bytes[this.pos++]!;
      if (shift < 28) middle |= (byte & 0x7f) << shift;
      else if (shift === 28) last = byte & 0x7f;
      else if (shift === 35 && byte <= 1) last |= byte << 7;
      else RowFailure.raise('long out of range');
    }
    const low = first | (middle << 28);
    const high = (middle >>> 4) | (last << 24);
    const sign = -(low & 1);
    this.low = ((low >>> 1) | (high << 31)) ^ sign;
    this.high = (high >>> 1) ^ sign;
  }

  /** A long that must be a safe integer, as a number. */
  readSafeLong(): number {
    this.readLong();
    if (this.high > 0x1fffff || this.high < -0x200000) RowFailure.raise('long out of range');
    return this.high * TWO_32 + (this.low >>> 0);
  }

  /** The length of bytes or a string, which must lie within the value. */
  readLength(): number {
    const length = this.readSafeLong();
    if (length < 0 || length > this.end - this.pos) RowFailure.raise('length beyond the end');
    return length;
  }

  readBoolean(): boolean {
    if (this.pos >= this.end) RowFailure.raise('truncated');
    const byte = this.bytes[this.pos++]!;
    if (byte > 1) RowFailure.raise('boolean is neither 0 nor 1');
    return byte === 1;
  }

  /** Moves past `length` bytes and returns where they start. */
  take(length: number): number {
    const start = this.pos;
    if (length > this.end - start) RowFailure.raise('truncated');
    this.pos = start + length;
    return start;
  }

  /** A string as text; for JSON rendering and the like, not for columns. */
  readText(): string {
    const length = this.readLength();
    const start = this.take(length);
    try {
      return utf8.decode(this.bytes.subarray(start, start + length));
    } catch {
      return RowFailure.raise('invalid UTF-8');
    }
  }
}

/** Reads one value at the cursor and appends it to its column, or moves past it. */
export type Step = (cursor: AvroCursor) => void;
