// Parquet's RLE / bit-packing hybrid: definition and repetition levels, dictionary indices.
// Source: parquet-format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid".
import { assert } from '../../base/assert.ts';
import type { ByteSink } from './byte-sink.ts';

/** Bits that `max` needs; 0 for 0. */
export const bitWidth = (max: number) => 32 - Math.clz32(max);

/** The widest value that the 32-bit accumulator of `pack` can take. */
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
  sink.ensure(bytes);
  const { bytes: out } = sink;
  const end = sink.length + bytes;
  let at = sink.length;
  let bits = 0;
  let pending = 0;
  for (let i = from; i < to; i++) {
    pending |= values[i]! << bits;
    bits += width;
    while (bits >= 8) {
      out[at++] = pending;
      pending >>>= 8;
      bits -= 8;
    }
  }
  if (bits > 0) out[at++] = pending;
  out.fill(0, at, end);
  sink.length = end;
}
