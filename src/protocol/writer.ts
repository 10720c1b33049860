// Writes Kafka's primitive types into a list of buffers for one vectored socket write. Small things are gathered
// into chunks of its own; large record sets are passed through as they are.
import { assert } from '../base/assert.ts';
import { uuidToBytes } from '../base/prng.ts';
import { type BytesIn, ZERO_UUID } from './fields.ts';

/**
 * Record sets below this are copied into the writer's chunk: a piece of its own in a vectored write costs
 * about as much as copying this many bytes, and frees the slab it came from no sooner.
 */
export const JOIN_BELOW_BYTES = 4_096;

/** Longest string of the protocol in bytes: the classic length prefix is an int16. */
export const MAX_STRING_BYTES = 32_767;

const FIRST_CHUNK_BYTES = 512;
const MAX_CHUNK_BYTES = 65_536;
const TWO_32 = 2 ** 32;
const MAX_INT64 = 2 ** 63;

export class Writer {
  readonly #pieces: Uint8Array[] = [];
  #chunk: Buffer;
  /** Where the part of the chunk that isn't in `#pieces` yet begins. */
  #start = 0;
  #position = 0;
  #flushedBytes = 0;

  constructor(firstChunkBytes: number = FIRST_CHUNK_BYTES) {
    this.#chunk = Buffer.allocUnsafe(firstChunkBytes);
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#flushedBytes + this.#position - this.#start;
  }

  /** Everything written, in order. The writer must not be used afterwards. */
  finish(): Uint8Array[] {
    this.#flush();
    return this.#pieces;
  }

  bool(value: boolean): void {
    this.int8(value ? 1 : 0);
  }

  int8(value: number): void {
    const at = this.#reserve(1);
    this.#chunk[at] = value;
  }

  int16(value: number): void {
    const at = this.#reserve(2);
    this.#chunk[at] = value >> 8;
    this.#chunk[at + 1] = value;
  }

  uint16(value: number): void {
    this.int16(value);
  }

  int32(value: number): void {
    const at = this.#reserve(4);
    const chunk = this.#chunk;
    chunk[at] = value >> 24;
    chunk[at + 1] = value >> 16;
    chunk[at + 2] = value >> 8;
    chunk[at + 3] = value;
  }

  /** Whole part of `value`, clamped to 64 bits: "very large" stays very large. */
  int64(value: number): void {
    assert(!Number.isNaN(value), 'an int64 field is a number');
    if (value >= MAX_INT64) {
      this.int32(0x7fffffff);
      this.int32(-1);
    } else if (value < -MAX_INT64) {
      this.int32(-0x80000000);
      this.int32(0);
    } else {
      const whole = Math.trunc(value);
      const high = Math.floor(whole / TWO_32);
      this.int32(high | 0);
      this.int32((whole - high * TWO_32) | 0);
    }
  }

  float64(value: number): void {
    this.#chunk.writeDoubleBE(value, this.#reserve(8));
  }

  uvarint(value: number): void {
    let rest = value >>> 0;
    while (rest >= 0x80) {
      this.int8((rest & 0x7f) | 0x80);
      rest >>>= 7;
    }
    this.int8(rest);
  }

  uuid(text: string): void {
    const at = this.#reserve(16);
    if (text === ZERO_UUID) this.#chunk.fill(0, at, at + 16);
    else this.#chunk.set(uuidToBytes(text), at);
  }

  /** A length or count prefix; −1 stands for null. */
  prefix(length: number, compact: boolean): void {
    if (compact) this.uvarint(length + 1);
    else this.int32(length);
  }

  /** Text longer than the protocol allows is cut: only error texts that quote what a client sent get so long. */
  string(text: string | null, compact: boolean): void {
    if (text === null) {
      if (compact) this.uvarint(0);
      else this.int16(-1);
      return;
    }
    const value = Buffer.byteLength(text) > MAX_STRING_BYTES ? shortened(text) : text;
    const length = Buffer.byteLength(value);
    if (compact) this.uvarint(length + 1);
    else this.int16(length);
    const at = this.#reserve(length);
    this.#chunk.write(value, at, length, 'utf8');
  }

  /** Bytes with their length prefix. */
  blob(value: BytesIn | null, compact: boolean): void {
    if (value === null) {
      this.prefix(-1, compact);
    } else if (value instanceof Uint8Array) {
      this.prefix(value.length, compact);
      this.raw(value);
    } else {
      let length = 0;
      for (const piece of value) length += piece.length;
      this.prefix(length, compact);
      for (const piece of value) this.raw(piece);
    }
  }

  /** Bytes as they are: copied when small, passed through otherwise. */
  raw(value: Uint8Array): void {
    if (value.length < JOIN_BELOW_BYTES) {
      const at = this.#reserve(value.length);
      this.#chunk.set(value, at);
    } else {
      this.#flush();
      this.#pieces.push(value);
      this.#flushedBytes += value.length;
    }
  }

  /** Appends what `other` holds; `other` is finished by this. */
  append(other: Writer): void {
    for (const piece of other.finish()) this.raw(piece);
  }

  #reserve(bytes: number): number {
    const at = this.#position;
    if (at + bytes <= this.#chunk.length) {
      this.#position = at + bytes;
      return at;
    }
    this.#flush();
    const next = Math.min(Math.max(this.#chunk.length * 2, FIRST_CHUNK_BYTES), MAX_CHUNK_BYTES);
    this.#chunk = Buffer.allocUnsafe(Math.max(next, bytes));
    this.#start = 0;
    this.#position = bytes;
    return 0;
  }

  #flush(): void {
    if (this.#position === this.#start) return;
    this.#pieces.push(this.#chunk.subarray(this.#start, this.#position));
    this.#flushedBytes += this.#position - this.#start;
    this.#start = this.#position;
  }
}

/** The characters of `text` that fit whole. */
function shortened(text: string): string {
  const buffer = Buffer.alloc(MAX_STRING_BYTES);
  return buffer.toString('utf8', 0, buffer.write(text));
}
