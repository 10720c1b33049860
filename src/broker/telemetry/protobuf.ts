// Reads protocol buffers field by field, enough for OTLP: no schema, no objects but what the caller makes. Hostile bytes
// end in a FloeError, never past the end. Not for: writing, groups (deprecated), integers beyond 2^53 exactly.
import { FloeError } from '../../base/error.ts';

/** Kinds of values on the wire. */
export const WIRE = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

export class ProtoReader {
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  #at = 0;
  #wire = -1;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The number of the next field, or 0 at the end; its value must then be read or skipped. */
  next(): number {
    if (this.#at >= this.#bytes.length) return 0;
    const key = this.#varint();
    this.#wire = key % 8;
    const field = Math.floor(key / 8);
    if (field < 1) throw bad(`field ${field}`);
    return field;
  }

  varint(): number {
    this.#expect(WIRE.varint);
    return this.#varint();
  }

  double(): number {
    this.#expect(WIRE.fixed64);
    const at = this.#take(8);
    return this.#view.getFloat64(at, true);
  }

  /** A signed integer of 64 bits in fixed length, as the nearest double. */
  sfixed64(): number {
    this.#expect(WIRE.fixed64);
    const at = this.#take(8);
    return this.#view.getInt32(at + 4, true) * 2 ** 32 + this.#view.getUint32(at, true);
  }

  /** A view. */
  bytes(): Uint8Array {
    this.#expect(WIRE.bytes);
    const length = this.#varint();
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }

  string(): string {
    return new TextDecoder().decode(this.bytes());
  }

  message(): ProtoReader {
    return new ProtoReader(this.bytes());
  }

  skip(): void {
    if (this.#wire === WIRE.varint) this.#varint();
    else if (this.#wire === WIRE.fixed64) this.#take(8);
    else if (this.#wire === WIRE.fixed32) this.#take(4);
    else if (this.#wire === WIRE.bytes) this.#take(this.#varint());
    else throw bad(`wire type ${this.#wire}`);
  }

  #expect(wire: number): void {
    if (this.#wire !== wire) throw bad(`wire type ${this.#wire} where ${wire} belongs`);
  }

  #take(length: number): number {
    const at = this.#at;
    if (length > this.#bytes.length - at) throw bad('it ends too early');
    this.#at += length;
    return at;
  }

  #varint(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < 10; count += 1) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) throw bad('it ends too early');
      this.#at += 1;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw bad('a number is too long');
  }
}

function bad(why: string): FloeError {
  return new FloeError('corrupt', `not a protocol buffer: ${why}`);
}
