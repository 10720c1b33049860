// Reads Protobuf's wire format from bytes, with bounds checks and without making objects or BigInts.
// A value that can't be read throws the one preallocated RowFailure; decoders catch it at the row's border.
// Source: Protocol Buffers documentation, "Encoding".
import { RowFailure } from '../arrow/row-failure.ts';
import { MAX_DEPTH } from './paths.ts';

const TWO_32 = 4_294_967_296;

/** Cells that one record may fill beyond its bytes: empty messages in a list cost two bytes but a row of defaults. */
export const MAX_CELLS = 4_000_000;

export const VARINT = 0;
export const FIXED64 = 1;
export const DELIMITED = 2;
const START_GROUP = 3;
const END_GROUP = 4;
export const FIXED32 = 5;

export class ProtoCursor {
  bytes: Uint8Array = new Uint8Array(0);
  pos = 0;
  /** First byte that is not the message's: of the message being read, not of the record. */
  end = 0;
  /** Halves of the last 64-bit value. */
  low = 0;
  high = 0;
  /** Cells of list elements so far, see MAX_CELLS. */
  cells = 0;
  /** Differs for every record: what is remembered within one never holds for another. */
  epoch = 0;

  reset(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.pos = start;
    this.end = end;
    this.cells = 0;
    this.epoch++;
  }

  /** The next field's tag (number × 8 + wire type); 0 at the end of the message. */
  tag(): number {
    const { pos } = this;
    if (pos >= this.end) return 0;
    const byte = this.bytes[pos]!;
    if (byte >= 0x80) return this.#longTag();
    if (byte < 8) RowFailure.raise('field number 0');
    this.pos = pos + 1;
    return byte;
  }

  #longTag(): number {
    this.readVarint();
    if (this.high !== 0) RowFailure.raise('field number out of range');
    const tag = this.low >>> 0;
    if (tag < 8) RowFailure.raise('field number 0');
    return tag;
  }

  /** A varint of up to 64 bits into `low` and `high`; what exceeds them is dropped, as other parsers do. */
  readVarint(): void {
    const { bytes, end } = this;
    let { pos } = this;
    if (pos >= end) RowFailure.raise('truncated');
    let byte = bytes[pos++]!;
    let low = byte & 0x7f;
    for (let shift = 7; byte >= 0x80 && shift < 28; shift += 7) {
      if (pos >= end) RowFailure.raise('truncated');
      byte = bytes[pos++]!;
      low |= (byte & 0x7f) << shift;
    }
    this.pos = pos;
    this.low = low;
    this.high = 0;
    if (byte >= 0x80) this.#varintTail();
  }

  #varintTail(): void {
    const { bytes, end } = this;
    let { pos, low } = this;
    let high = 0;
    for (let shift = 28; ; shift += 7) {
      if (pos >= end) RowFailure.raise('truncated');
      if (shift >= 70) RowFailure.raise('varint longer than 10 bytes');
      const byte = bytes[pos++]!;
      const bits = byte & 0x7f;
      if (shift === 28) {
        low |= bits << 28;
        high = bits >>> 4;
      } else if (shift < 63) high |= bits << (shift - 32);
      else high |= (bits & 1) << 31;
      if (byte < 0x80) break;
    }
    this.pos = pos;
    this.low = low;
    this.high = high;
  }

  /** Four bytes, little-endian. */
  readFixed32(): number {
    const at = this.take(4);
    const { bytes } = this;
    return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  }

  /** Eight bytes, little-endian, into `low` and `high`. */
  readFixed64(): void {
    const low = this.readFixed32();
    this.high = this.readFixed32();
    this.low = low;
  }

  /** Zig-zag of the halves, in place. */
  unzigzag(): void {
    const { low, high } = this;
    const sign = -(low & 1);
    this.low = ((low >>> 1) | (high << 31)) ^ sign;
    this.high = (high >>> 1) ^ sign;
  }

  /** The length of bytes, text or a message, which must lie within the message around it. */
  readLength(): number {
    this.readVarint();
    const length = this.low >>> 0;
    if (this.high !== 0 || length > this.end - this.pos) RowFailure.raise('length beyond the end');
    return length;
  }

  /** Moves past `length` bytes and returns where they start. */
  take(length: number): number {
    const start = this.pos;
    if (length > this.end - start) RowFailure.raise('truncated');
    this.pos = start + length;
    return start;
  }

  /** The halves as a number; exact up to 2^53. */
  signed(): number {
    return this.high * TWO_32 + (this.low >>> 0);
  }

  /** The halves as 64 bits. */
  bigint(): bigint {
    return (BigInt(this.high) << 32n) | BigInt(this.low >>> 0);
  }

  /** Moves past the value of a field that nobody wants. */
  skip(tag: number): void {
    switch (tag & 7) {
      case VARINT:
        this.readVarint();
        return;
      case FIXED64:
        this.take(8);
        return;
      case DELIMITED:
        this.take(this.readLength());
        return;
      case START_GROUP:
        this.#skipGroup(tag >>> 3, 1);
        return;
      case FIXED32:
        this.take(4);
        return;
      default:
        RowFailure.raise(`wire type ${tag & 7}`);
    }
  }

  #skipGroup(number: number, depth: number): void {
    if (depth > MAX_DEPTH) RowFailure.raise(`nested deeper than ${MAX_DEPTH} levels`);
    for (;;) {
      const tag = this.tag();
      if (tag === 0) RowFailure.raise('group without end');
      const kind = tag & 7;
      if (kind === START_GROUP) this.#skipGroup(tag >>> 3, depth + 1);
      else if (kind !== END_GROUP) this.skip(tag);
      else if (tag >>> 3 === number) return;
      else RowFailure.raise('end of another group');
    }
  }

  /** Counts cells that cost the record next to nothing. */
  spend(cells: number): void {
    this.cells += cells;
    if (this.cells > MAX_CELLS) {
      RowFailure.raise(`more than ${MAX_CELLS} cells in lists of one record`);
    }
  }
}

/** Reads one value at the cursor and appends it to its column. */
export type Step = (cursor: ProtoCursor) => void;
