// Minimum, maximum, null and NaN counts of one leaf over a chunk or a file, in Parquet's plain bytes.
// They never pass through JavaScript dates or numbers that could round. Not for: Iceberg's form (bounds.ts).
// Source: parquet-format, "ColumnOrder"; Iceberg table spec, appendix D.
import type { Leaf } from './leaves.ts';
import type { Values } from './values.ts';

export interface LeafStatistics {
  /** Entries, nulls included. */
  valueCount: number;
  nullCount: number;
  /** Only counted for float and double. */
  nanCount: number;
  /** Undefined when there is no value to bound (all null or NaN). */
  min: Uint8Array | undefined;
  max: Uint8Array | undefined;
}

export const emptyStatistics = (): LeafStatistics => ({
  valueCount: 0,
  nullCount: 0,
  nanCount: 0,
  min: undefined,
  max: undefined,
});

/** Compares two values of a leaf in plain bytes: negative, 0 or positive. */
export type CompareBytes = (a: Uint8Array, b: Uint8Array) => number;

const view = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** The order of a leaf's values. Floats must not be NaN. */
export function comparatorOf({ physical, primitive }: Leaf): CompareBytes {
  switch (physical) {
    case 'INT32':
      return (a, b) => view(a).getInt32(0, true) - view(b).getInt32(0, true);
    case 'INT64':
      return (a, b) => Number(view(a).getBigInt64(0, true) - view(b).getBigInt64(0, true));
    case 'FLOAT':
      return (a, b) => view(a).getFloat32(0, true) - view(b).getFloat32(0, true);
    case 'DOUBLE':
      return (a, b) => view(a).getFloat64(0, true) - view(b).getFloat64(0, true);
    default:
      if (primitive.kind !== 'decimal') return Buffer.compare;
      // Two's complement: equal signs compare as unsigned bytes.
      return (a, b) => {
        const signs = (b[0]! & 0x80) - (a[0]! & 0x80);
        return signs !== 0 ? signs : Buffer.compare(a, b);
      };
  }
}

/** Adds the statistics of a chunk to those of the file. */
export function mergeStatistics(
  total: LeafStatistics,
  chunk: LeafStatistics,
  compare: CompareBytes,
): void {
  total.valueCount += chunk.valueCount;
  total.nullCount += chunk.nullCount;
  total.nanCount += chunk.nanCount;
  if (chunk.min === undefined || chunk.max === undefined) return;
  if (total.min === undefined || compare(chunk.min, total.min) < 0) total.min = chunk.min;
  if (total.max === undefined || compare(chunk.max, total.max) > 0) total.max = chunk.max;
}

interface Extremes {
  readonly min: Uint8Array | undefined;
  readonly max: Uint8Array | undefined;
  readonly nanCount: number;
}

/**
 * Extremes of a chunk's values. `entries` are the slots of its dictionary, when there is one: then only those are
 * looked at, except for NaN counts.
 */
export function extremesOf(leaf: Leaf, values: Values, entries: Int32Array | null): Extremes {
  if (values.count === 0) return { min: undefined, max: undefined, nanCount: 0 };
  if (values.kind === 'booleans') return booleanExtremes(values);
  if (leaf.physical === 'FLOAT' || leaf.physical === 'DOUBLE') {
    return floatExtremes(leaf.physical, values as Values & { kind: 'words' });
  }
  const slots = entries ?? values.slots;
  const count = entries === null ? values.count : entries.length;
  const pick = pickerOf(leaf, values, { slots, count });
  return { min: pick.min, max: pick.max, nanCount: 0 };
}

function booleanExtremes({ flags, slots, count }: Values & { kind: 'booleans' }): Extremes {
  let ones = 0;
  for (let i = 0; i < count; i++) ones += flags[slots === null ? i : slots[i]!]!;
  const min = Uint8Array.of(ones === count ? 1 : 0);
  return { min, max: Uint8Array.of(ones > 0 ? 1 : 0), nanCount: 0 };
}

/** NaN bounds nothing; zero is bounded by −0 and +0, as the format asks. */
function floatExtremes(
  physical: 'FLOAT' | 'DOUBLE',
  { words, slots, count }: Values & { kind: 'words' },
): Extremes {
  const wide = physical === 'DOUBLE';
  const numbers = wide
    ? new Float64Array(words.buffer, words.byteOffset, words.length >> 1)
    : new Float32Array(words.buffer, words.byteOffset, words.length);
  let nanCount = 0;
  let min = Infinity;
  let max = -Infinity;
  for (let i = 0; i < count; i++) {
    const value = numbers[slots === null ? i : slots[i]!]!;
    if (value < min) min = value;
    if (value > max) max = value;
    // biome-ignore lint/suspicious/noSelfCompare: the quickest test for NaN.
    if (value !== value) nanCount++;
  }
  if (nanCount === count) return { min: undefined, max: undefined, nanCount };
  const bytes = (value: number) =>
    new Uint8Array((wide ? Float64Array.of(value) : Float32Array.of(value)).buffer);
  return { min: bytes(min === 0 ? -0 : min), max: bytes(max === 0 ? 0 : max), nanCount };
}

interface Candidates {
  readonly slots: Int32Array | null;
  readonly count: number;
}

function pickerOf(
  leaf: Leaf,
  values: Values,
  candidates: Candidates,
): { min: Uint8Array; max: Uint8Array } {
  if (values.kind === 'bytes') return bytesExtremes(values, candidates);
  if (leaf.physical === 'INT32') return int32Extremes(values as never, candidates);
  if (leaf.physical === 'INT64') return int64Extremes(values as never, candidates);
  return fixedExtremes(leaf, values as never, candidates);
}

type Words = Values & { kind: 'words' };

function int32Extremes({ words }: Words, { slots, count }: Candidates) {
  let min = 0x7fffffff;
  let max = -0x80000000;
  for (let i = 0; i < count; i++) {
    const value = words[slots === null ? i : slots[i]!]!;
    if (value < min) min = value;
    if (value > max) max = value;
  }
  return {
    min: new Uint8Array(Int32Array.of(min).buffer),
    max: new Uint8Array(Int32Array.of(max).buffer),
  };
}

/** Turns the order of unsigned words into that of signed ones, and back. */
const SIGN = -0x80000000;

/** By halves: the high ones signed, the low ones unsigned. */
function int64Extremes({ words }: Words, { slots, count }: Candidates) {
  let minHigh = 0x7fffffff;
  let minLow = 0x7fffffff;
  let maxHigh = -0x80000000;
  let maxLow = -0x80000000;
  for (let i = 0; i < count; i++) {
    const at = (slots === null ? i : slots[i]!) * 2;
    const low = words[at]! ^ SIGN;
    const high = words[at + 1]!;
    if (high < minHigh || (high === minHigh && low < minLow)) {
      minHigh = high;
      minLow = low;
    }
    if (high > maxHigh || (high === maxHigh && low > maxLow)) {
      maxHigh = high;
      maxLow = low;
    }
  }
  const bytes = (low: number, high: number) =>
    new Uint8Array(Int32Array.of(low ^ SIGN, high).buffer);
  return { min: bytes(minLow, minHigh), max: bytes(maxLow, maxHigh) };
}

function fixedExtremes(
  leaf: Leaf,
  { words, perValue, width }: Words,
  { slots, count }: Candidates,
) {
  const source = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
  const at = (i: number) => {
    const start = (slots === null ? i : slots[i]!) * perValue * 4;
    return source.subarray(start, start + width);
  };
  const compare = comparatorOf(leaf);
  let min = at(0);
  let max = min;
  for (let i = 1; i < count; i++) {
    const value = at(i);
    if (compare(value, min) < 0) min = value;
    else if (compare(value, max) > 0) max = value;
  }
  return { min: min.slice(), max: max.slice() };
}

function bytesExtremes(
  { data, offsets }: Values & { kind: 'bytes' },
  { slots, count }: Candidates,
) {
  const words = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let min = slots === null ? 0 : slots[0]!;
  let max = min;
  for (let i = 1; i < count; i++) {
    const slot = slots === null ? i : slots[i]!;
    if (compareSlots(words, offsets, slot, min) < 0) min = slot;
    else if (compareSlots(words, offsets, slot, max) > 0) max = slot;
  }
  const bytes = (slot: number) => data.slice(offsets[slot]!, offsets[slot + 1]!);
  return { min: bytes(min), max: bytes(max) };
}

/** Past what two have in common by words: addresses begin alike. */
function compareSlots(words: DataView, offsets: Int32Array, a: number, b: number): number {
  let x = offsets[a]!;
  let y = offsets[b]!;
  const endX = offsets[a + 1]!;
  const endY = offsets[b + 1]!;
  const whole = x + Math.min(endX - x, endY - y) - 4;
  while (x <= whole && words.getInt32(x) === words.getInt32(y)) {
    x += 4;
    y += 4;
  }
  for (; x < endX && y < endY; x++, y++) {
    const difference = words.getUint8(x) - words.getUint8(y);
    if (difference !== 0) return difference;
  }
  return endX - x - (endY - y);
}
