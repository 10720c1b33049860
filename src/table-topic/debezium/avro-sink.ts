// A growing buffer that takes Avro's binary primitives. Kept and overwritten for the next value.
// Source: Avro specification, "Binary Encoding".

/** Bytes kept between values at most; a larger value's buffer is given back. */
const KEPT_BYTES = 1 << 20;

/** Copies up to this length byte by byte: shorter than the cost of a native call. */
const LOOP_COPY_BYTES = 24;

export class AvroSink {
  bytes = new Uint8Array(4096);
  length = 0;
  #view = new DataView(this.bytes.buffer);

  reset(): void {
    this.length = 0;
    if (this.bytes.length > KEPT_BYTES) this.#use(new Uint8Array(4096));
  }

  /** Zig-zag varint of 32 bits. */
  writeInt(value: number): void {
    this.reserve(5);
    this.#varint((value << 1) ^ (value >> 31));
  }

  /** Zig-zag varint of the 64-bit integer with these halves. */
  writeLong(low: number, high: number): void {
    if (high === low >> 31 && low >= -0x40000000 && low < 0x40000000) {
      this.writeInt(low);
      return;
    }
    this.reserve(10);
    const sign = high >> 31;
    let rest = (low << 1) ^ sign;
    let top = ((high << 1) | (low >>> 31)) ^ sign;
    while (top !== 0 || rest >>> 0 > 0x7f) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest = (rest >>> 7) | (top << 25);
      top >>>= 7;
    }
    this.bytes[this.length++] = rest;
  }

  #varint(zigzag: number): void {
    let rest = zigzag >>> 0;
    while (rest > 0x7f) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.length++] = rest;
  }

  writeByte(byte: number): void {
    this.reserve(1);
    this.bytes[this.length++] = byte;
  }

  writeFloat(value: number): void {
    this.reserve(4);
    this.#view.setFloat32(this.length, value, true);
    this.length += 4;
  }

  writeDouble(value: number): void {
    this.reserve(8);
    this.#view.setFloat64(this.length, value, true);
    this.length += 8;
  }

  /** A length and that many bytes: bytes and strings. */
  writeBytes(source: Uint8Array, start: number, end: number): void {
    this.writeInt(end - start);
    this.reserve(end - start);
    const { bytes } = this;
    if (end - start <= LOOP_COPY_BYTES) {
      for (let from = start, to = this.length; from < end; ) bytes[to++] = source[from++]!;
    } else {
      bytes.set(source.subarray(start, end), this.length);
    }
    this.length += end - start;
  }

  reserve(more: number): void {
    const needed = this.length + more;
    if (needed <= this.bytes.length) return;
    let size = this.bytes.length;
    while (size < needed) size *= 2;
    const larger = new Uint8Array(size);
    larger.set(this.bytes.subarray(0, this.length));
    this.#use(larger);
  }

  #use(bytes: Uint8Array<ArrayBuffer>): void {
    this.bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}
