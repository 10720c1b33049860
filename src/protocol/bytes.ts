// Big-endian numbers and zigzag varints at given positions of a byte array, for batch headers and records.
// Nothing here checks bounds: callers have done so. Shared memory is as good as any.

const TWO_32 = 2 ** 32;

/** Signed. */
export function readInt16(bytes: Uint8Array, at: number): number {
  return (((bytes[at]! << 8) | bytes[at + 1]!) << 16) >> 16;
}

/** Signed. */
export function readInt32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

/** 0 to 2^32 − 1. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at) >>> 0;
}

/** Rounded to the nearest double beyond 2^53. */
export function readInt64(bytes: Uint8Array, at: number): number {
  return readInt32(bytes, at) * TWO_32 + readUint32(bytes, at + 4);
}

/** Lowest 16 bits of `value`. */
export function writeInt16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 8;
  bytes[at + 1] = value;
}

/** Lowest 32 bits of `value`. */
export function writeInt32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 24;
  bytes[at + 1] = value >> 16;
  bytes[at + 2] = value >> 8;
  bytes[at + 3] = value;
}

/** `value` is a whole number within ±2^53. */
export function writeInt64(bytes: Uint8Array, at: number, value: number): void {
  const high = Math.floor(value / TWO_32);
  writeInt32(bytes, at, high | 0);
  writeInt32(bytes, at + 4, (value - high * TWO_32) | 0);
}

/** Bytes that a zigzag varint of `value` takes; `value` within ±2^52. */
export function varintBytes(value: number): number {
  let zigzag = value >= 0 ? value * 2 : -value * 2 - 1;
  let length = 1;
  while (zigzag >= 0x80) {
    zigzag = Math.floor(zigzag / 0x80);
    length += 1;
  }
  return length;
}

/** Writes a zigzag varint and returns the position after it; `value` within ±2^52. */
export function writeVarint(bytes: Uint8Array, at: number, value: number): number {
  let zigzag = value >= 0 ? value * 2 : -value * 2 - 1;
  while (zigzag >= 0x80) {
    bytes[at++] = (zigzag % 0x80) | 0x80;
    zigzag = Math.floor(zigzag / 0x80);
  }
  bytes[at++] = zigzag;
  return at;
}

/** The same bytes as a Buffer, without copying. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
