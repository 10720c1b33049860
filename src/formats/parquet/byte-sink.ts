// A growing run of bytes with the few writes that Parquet pages need. Reused from page to page.

export class ByteSink {
  bytes: Uint8Array;
  /** Over the same memory as `bytes`. */
  words: DataView;
  length = 0;

  constructor(capacity = 1 << 16) {
    this.bytes = new Uint8Array(capacity);
    this.words = new DataView(this.bytes.buffer);
  }

  clear(): void {
    this.length = 0;
  }

  /** Makes room for `more` bytes. */
  ensure(more: number): void {
    const needed = this.length + more;
    if (needed <= this.bytes.length) return;
    let capacity = this.bytes.length;
    while (capacity < needed) capacity *= 2;
    const larger = new Uint8Array(capacity);
    larger.set(this.bytes.subarray(0, this.length));
    this.bytes = larger;
    this.words = new DataView(larger.buffer);
  }

  byte(value: number): void {
    if (this.length === this.bytes.length) this.ensure(1);
    this.bytes[this.length++] = value;
  }

  /** Unsigned LEB128. */
  varint(value: number): void {
    this.ensure(5);
    while (value >= 0x80) {
      this.bytes[this.length++] = (value & 0x7f) | 0x80;
      value >>>= 7;
    }
    this.bytes[this.length++] = value;
  }

  int32(value: number): void {
    this.ensure(4);
    this.setInt32(this.length, value);
    this.length += 4;
  }

  /** Overwrites four bytes at `at`, little-endian. */
  setInt32(at: number, value: number): void {
    this.words.setInt32(at, value, true);
  }

  append(source: Uint8Array): void {
    this.ensure(source.length);
    this.bytes.set(source, this.length);
    this.length += source.length;
  }

  /** What was written so far; valid until the next write. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }
}
