// Reads Kafka's primitive types from one message. Every read is checked against the message's end, every count
// against the bytes that are left: what a peer claims never decides how much is allocated.
// Not for: records inside batches (records.ts has a cursor that makes no objects).
import { FloeError } from '../base/error.ts';
import { ZERO_UUID } from './fields.ts';
import { MAX_STRING_BYTES } from './writer.ts';

/**
 * Most array elements and tagged fields of one message, all together. A byte on the wire can become a hundred on the heap,
 * so the frame's size alone is no bound. The largest honest requests (a fetch of every partition of a big
 * cluster) have some ten thousand.
 */
export const MAX_MESSAGE_ELEMENTS = 1_000_000;

const TWO_32 = 2 ** 32;
const HEX = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'));

/** A position in one message. All methods throw a FloeError `invalid` when the bytes can't be what they claim. */
export class Reader {
  readonly bytes: Buffer;
  position: number;
  end: number;
  #elementsLeft = MAX_MESSAGE_ELEMENTS;

  constructor(bytes: Uint8Array, position = 0) {
    this.bytes = Buffer.isBuffer(bytes)
      ? bytes
      : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.position = position;
    this.end = bytes.byteLength;
  }

  get remaining(): number {
    return this.end - this.position;
  }

  /** Moves past `length` bytes and returns where they started. */
  skip(length: number): number {
    const start = this.position;
    if (length < 0 || length > this.end - start) {
      throw malformed(`${length} bytes wanted at ${start}, ${this.end - start} left`);
    }
    this.position = start + length;
    return start;
  }

  bool(): boolean {
    return this.bytes[this.skip(1)] !== 0;
  }

  int8(): number {
    return (this.bytes[this.skip(1)]! << 24) >> 24;
  }

  int16(): number {
    return (this.uint16() << 16) >> 16;
  }

  uint16(): number {
    const at = this.skip(2);
    return (this.bytes[at]! << 8) | this.bytes[at + 1]!;
  }

  int32(): number {
    const at = this.skip(4);
    const b = this.bytes;
    return (b[at]! << 24) | (b[at + 1]! << 16) | (b[at + 2]! << 8) | b[at + 3]!;
  }

  uint32(): number {
    return this.int32() >>> 0;
  }

  int64(): number {
    const high = this.int32();
    return high * TWO_32 + this.uint32();
  }

  float64(): number {
    return this.bytes.readDoubleBE(this.skip(8));
  }

  /** An unsigned varint of at most 32 bits. */
  uvarint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.bytes[this.skip(1)]!;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw malformed(`varint longer than 5 bytes at ${this.position - 5}`);
  }

  uuid(): string {
    const at = this.skip(16);
    const b = this.bytes;
    let any = 0;
    for (let i = 0; i < 16; i += 1) any |= b[at + i]!;
    if (any === 0) return ZERO_UUID;
    const hex = (from: number, to: number) => {
      let text = '';
      for (let i = from; i < to; i += 1) text += HEX[b[at + i]!]!;
      return text;
    };
    return `${hex(0, 4)}-${hex(4, 6)}-${hex(6, 8)}-${hex(8, 10)}-${hex(10, 16)}`;
  }

  /** A length prefix; −1 stands for null. */
  length(compact: boolean): number {
    const length = compact ? this.uvarint() - 1 : this.int32();
    if (length < -1) throw malformed(`negative length ${length}`);
    return length;
  }

  string(compact: boolean): string | null {
    const length = compact ? this.uvarint() - 1 : this.int16();
    if (length === -1) return null;
    if (length < 0 || length > MAX_STRING_BYTES) {
      throw malformed(`string of ${length} bytes (limit ${MAX_STRING_BYTES})`);
    }
    const at = this.skip(length);
    return this.bytes.toString('utf8', at, at + length);
  }

  blob(compact: boolean): Uint8Array | null {
    const length = this.length(compact);
    if (length === -1) return null;
    const at = this.skip(length);
    return this.bytes.subarray(at, at + length);
  }

  /** An array's count, −1 for null; refused when that many elements can't be there. */
  count(compact: boolean, minimumElementBytes: number): number {
    const count = this.length(compact);
    if (count === -1) return -1;
    if (count * minimumElementBytes > this.end - this.position) {
      throw malformed(`array of ${count} elements in ${this.end - this.position} bytes`);
    }
    this.#spend(count);
    return count;
  }

  /** The number of tagged fields that follow. */
  tagCount(): number {
    const count = this.uvarint();
    // Each takes two bytes at least: its tag and its size.
    if (count * 2 > this.end - this.position) throw malformed(`${count} tagged fields`);
    this.#spend(count);
    return count;
  }

  #spend(elements: number): void {
    this.#elementsLeft -= elements;
    if (this.#elementsLeft < 0) {
      throw new FloeError(
        'exhausted',
        `message with more than ${MAX_MESSAGE_ELEMENTS} elements and tagged fields`,
      );
    }
  }
}

/** The error of bytes that can't be what they claim. */
export function malformed(what: string): FloeError {
  return new FloeError('invalid', `malformed message: ${what}`);
}
