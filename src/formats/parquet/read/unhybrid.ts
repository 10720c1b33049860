// Reading Parquet's RLE / bit-packing hybrid: levels and dictionary indices.
// Source: parquet-format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".
import { FloeError } from '../../../base/error.ts';

const corrupt = (what: string) => new FloeError('corrupt', `Parquet: ${what}`);

export interface HybridRun {
  readonly from: number;
  /** Exclusive. */
  readonly end: number;
  /** Bits of a value, 0 to 32. */
  readonly width: number;
  readonly count: number;
}

/** The value of the run that holds all `count` of them, −1 where there is more than one run (or damage). */
export function soleValue(bytes: Uint8Array, { from, end, width, count }: HybridRun): number {
  let at = from;
  let head = 0;
  for (let shift = 0; shift <= 28; shift += 7) {
    const byte = bytes[at++] ?? 0;
    head |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  head >>>= 0;
  const size = (width + 7) >>> 3;
  if (head % 2 !== 0 || head >>> 1 < count || at + size > end) return -1;
  let value = 0;
  for (let i = 0; i < size; i++) value |= bytes[at++]! << (8 * i);
  return value;
}

/**
 * Fills `out` from `at` with `count` values.
 * @throws FloeError `corrupt`.
 */
export function decodeHybrid(
  bytes: Uint8Array,
  { from, end, width, count }: HybridRun,
  out: Uint8Array | Int32Array,
  at = 0,
): void {
  if (width === 0) {
    out.fill(0, at, at + count);
    return;
  }
  if (width > 32) throw corrupt(`values of ${width} bits`);
  const stop = at + count;
  let position = from;
  let to = at;
  while (to < stop) {
    let head = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[position++];
      if (byte === undefined || position > end || shift > 28)
        throw corrupt('a run that ends early');
      head |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    head >>>= 0;
    if (head % 2 === 0) {
      const size = (width + 7) >>> 3;
      if (position + size > end) throw corrupt('a run without its value');
      let value = 0;
      for (let i = 0; i < size; i++) value |= bytes[position++]! << (8 * i);
      const until = Math.min(stop, to + (head >>> 1));
      out.fill(value, to, until);
      to = until;
    } else {
      const packed = (head >>> 1) * width;
      // Writers may leave the padding of the last group out.
      const last = Math.min(end, position + packed);
      const taken = Math.min(stop - to, (head >>> 1) * 8);
      if ((last - position) * 8 < taken * width) throw corrupt('a packed group that ends early');
      unpack(bytes, position, width, out, to, taken);
      position += packed;
      to += taken;
    }
  }
}

function unpack(
  bytes: Uint8Array,
  from: number,
  width: number,
  out: Uint8Array | Int32Array,
  to: number,
  count: number,
): void {
  if (width === 1) {
    for (let i = 0; i < count; i++) out[to + i] = (bytes[from + (i >>> 3)]! >>> (i & 7)) & 1;
    return;
  }
  if (width === 8) {
    for (let i = 0; i < count; i++) out[to + i] = bytes[from + i]!;
    return;
  }
  if (width > 24) {
    unpackWide(bytes, from, width, out, to, count);
    return;
  }
  const mask = (1 << width) - 1;
  // Groups of eight values from words that begin anywhere, as long as there are four bytes past the group to read.
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (; count >= 8 && from + width + 4 <= bytes.length; count -= 8, from += width) {
    for (let bit = 0; bit < 8 * width; bit += width)
      out[to++] = (view.getInt32(from + (bit >>> 3), true) >>> (bit & 7)) & mask;
  }
  let buffer = 0;
  let bits = 0;
  for (let i = 0; i < count; i++) {
    while (bits < width) {
      buffer |= bytes[from++]! << bits;
      bits += 8;
    }
    out[to + i] = buffer & mask;
    buffer >>>= width;
    bits -= width;
  }
}

/** Widths past 24 bits don't fit the 32-bit accumulator: rare, so by doubles. */
function unpackWide(
  bytes: Uint8Array,
  from: number,
  width: number,
  out: Uint8Array | Int32Array,
  to: number,
  count: number,
): void {
  const size = 2 ** width;
  let buffer = 0;
  let bits = 0;
  for (let i = 0; i < count; i++) {
    while (bits < width) {
      buffer += bytes[from++]! * 2 ** bits;
      bits += 8;
    }
    out[to + i] = buffer % size;
    buffer = Math.floor(buffer / size);
    bits -= width;
  }
}
