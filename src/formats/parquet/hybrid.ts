// Parquet's RLE / bit-packing hybrid: definition and repetition levels, dictionary indices.
// Source: parquet-format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".
import { assert } from '../../base/assert.ts';
import type { ByteSink } from './byte-sink.ts';

/** Bits that `max` needs; 0 for 0. */
export const bitWidth = (max: number) => 32 - Math.clz32(max);

/** The widest value that is packed: a part of one is kept in 32 bits. */
const MAX_PACKED_WIDTH = 24;

/** Encodes `values[from, to)`, each below 2^width. The last group is padded with zeros: nothing may follow. */
export function encodeHybrid(
  sink: ByteSink,
  values: Uint8Array | Int32Array,
  range: { readonly from: number; readonly to: number; readonly width: number },
): void {
  const { to, width } = range;
  assert(width <= MAX_PACKED_WIDTH, 'levels and dictionary indices are narrow');
  let at = range.from;
  while (at < to) {
    const run = runLength(values, at, to);
    if (run >= 8 || at + run === to) {
      sink.varint(run * 2);
      let rest = values[at]!;
      for (let bits = 0; bits < width; bits += 8) {
        sink.ensure(1);
        sink.bytes[sink.length++] = rest;
        rest >>>= 8;
      }
      at += run;
    } else {
      const end = packedEnd(values, at, to);
      const groups = Math.ceil((end - at) / 8);
      sink.varint(groups * 2 + 1);
      pack(sink, values, { from: at, to: end, width });
      at = end;
    }
  }
}

function runLength(values: Uint8Array | Int32Array, at: number, to: number): number {
  const value = values[at]!;
  let end = at + 1;
  while (end < to && values[end] === value) end++;
  return end - at;
}

/** Where the bit-packed groups starting at `at` end: before eight equal values, or at `to`. */
function packedEnd(values: Uint8Array | Int32Array, at: number, to: number): number {
  let end = at + 8;
  while (end + 8 <= to) {
    const value = values[end]!;
    let same = 1;
    while (same < 8 && values[end + same] === value) same++;
    if (same === 8) return end;
    end += 8;
  }
  return end >= to ? to : end + 8 > to ? to : end;
}

function pack(
  sink: ByteSink,
  values: Uint8Array | Int32Array,
  { from, to, width }: { readonly from: number; readonly to: number; readonly width: number },
): void {
  const bytes = Math.ceil((to - from) / 8) * width;
  // The last word may go past the end.
  sink.ensure(bytes + 4);
  const { words } = sink;
  const end = sink.length + bytes;
  let at = sink.length;
  let bits = 0;
  let pending = 0;
  for (let i = from; i < to; i++) {
    const value = values[i]!;
    pending |= value << bits;
    bits += width;
    if (bits < 32) continue;
    words.setInt32(at, pending, true);
    at += 4;
    bits -= 32;
    pending = value >>> (width - bits);
  }
  if (at < end) words.setInt32(at, pending, true);
  if (at + 4 < end) sink.bytes.fill(0, at + 4, end);
  sink.length = end;
}
