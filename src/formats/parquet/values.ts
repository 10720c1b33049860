// The values of one leaf in the two shapes that encoders work on: words of 32 bits (every fixed-width type) and
// bytes with offsets. Decimals are narrowed to their physical type here.
// Source: parquet-format, Encodings.md, "Plain".
import { endianness } from 'node:os';
import { assert } from '../../base/assert.ts';
import type { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../arrow/scalar-columns.ts';
import type { ValueCodes } from '../arrow/value-codes.ts';
import { buffered, copyBytes } from '../copy-bytes.ts';
import type { ByteSink } from './byte-sink.ts';
import type { Leaf } from './leaves.ts';
import type { Shredded } from './shred.ts';

assert(endianness() === 'LE', 'Parquet and the column buffers are little-endian');

/** Which slots are the values, in order: `slots`, or `[0, count)` when that is null. */
interface Selected {
  readonly count: number;
  readonly slots: Int32Array | null;
  /** Of slots, where they were read from a file. */
  readonly codes: ValueCodes | null;
}

export interface WordValues extends Selected {
  readonly kind: 'words';
  /** `perValue` words a slot; the last bytes of a value that is no multiple of four are zeros. */
  readonly words: Int32Array;
  readonly perValue: number;
  /** Bytes of a value in the file. */
  readonly width: number;
}

export interface ByteValues extends Selected {
  readonly kind: 'bytes';
  readonly data: Uint8Array;
  readonly offsets: Int32Array;
}

export interface BooleanValues extends Selected {
  readonly kind: 'booleans';
  readonly flags: Uint8Array;
}

export type Values = WordValues | ByteValues | BooleanValues;

/** The values of a shredded leaf, as views over the column's buffers where they already fit. */
export function valuesOf(leaf: Leaf, { column, slots, values: count }: Shredded): Values {
  const selected = { count, slots, codes: column.codes };
  switch (leaf.physical) {
    case 'BOOLEAN':
      return { kind: 'booleans', flags: (column as BooleanColumn).values, ...selected };
    case 'BYTE_ARRAY': {
      const { data, offsets } = column as BytesColumn;
      return { kind: 'bytes', data, offsets, ...selected };
    }
    case 'FIXED_LEN_BYTE_ARRAY':
      return fixedValues(column as FixedColumn, leaf.width, selected);
    default:
      if (leaf.primitive.kind === 'decimal') {
        return decimalValues(column as FixedColumn, leaf.physical === 'INT32' ? 4 : 8, selected);
      }
      return scalarValues(column as Int32Column | Int64Column | FloatColumn, selected);
  }
}

function scalarValues(
  column: Int32Column | Int64Column | FloatColumn,
  selected: Selected,
): WordValues {
  const array = column.kind === 'int64' ? column.halves : column.values;
  const perValue = column.kind === 'int64' || column.kind === 'float64' ? 2 : 1;
  const words = new Int32Array(array.buffer, array.byteOffset, array.byteLength / 4);
  return { kind: 'words', words, perValue, width: perValue * 4, ...selected };
}

/** The last `width` of the column's big-endian bytes, each value padded to whole words. */
function fixedValues(column: FixedColumn, width: number, selected: Selected): WordValues {
  const perValue = Math.ceil(width / 4);
  const stride = perValue * 4;
  if (column.width === width && stride === width) {
    const { buffer, byteOffset, byteLength } = column.data;
    const words = new Int32Array(buffer, byteOffset, byteLength / 4);
    return { kind: 'words', words, perValue, width, ...selected };
  }
  const bytes = new Uint8Array(column.length * stride);
  const skip = column.width - width;
  for (let row = 0; row < column.length; row++) {
    const from = row * column.width + skip;
    for (let i = 0; i < width; i++) bytes[row * stride + i] = column.data[from + i]!;
  }
  return { kind: 'words', words: new Int32Array(bytes.buffer), perValue, width, ...selected };
}

/** Decimals of up to 18 digits as little-endian integers. */
function decimalValues(column: FixedColumn, width: 4 | 8, selected: Selected): WordValues {
  const bytes = new Uint8Array(column.length * width);
  for (let row = 0; row < column.length; row++) {
    const last = (row + 1) * column.width - 1;
    for (let i = 0; i < width; i++) bytes[row * width + i] = column.data[last - i]!;
  }
  const words = new Int32Array(bytes.buffer);
  return { kind: 'words', words, perValue: width / 4, width, ...selected };
}

/** Appends values `[from, to)` (by order, not slot) in PLAIN encoding. */
export function encodePlain(sink: ByteSink, values: Values, from: number, to: number): void {
  if (values.kind === 'words') plainWords(sink, values, from, to);
  else if (values.kind === 'bytes') plainBytes(sink, values, from, to);
  else plainBooleans(sink, values, from, to);
}

function plainWords(sink: ByteSink, values: WordValues, from: number, to: number): void {
  const { words, perValue, width, slots } = values;
  const source = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
  const stride = perValue * 4;
  sink.ensure((to - from) * width);
  if (slots === null && stride === width) {
    sink.append(source.subarray(from * width, to * width));
    return;
  }
  let at = sink.length;
  const { bytes } = sink;
  for (let i = from; i < to; i++) {
    const start = (slots === null ? i : slots[i]!) * stride;
    for (let j = 0; j < width; j++) bytes[at++] = source[start + j]!;
  }
  sink.length = at;
}

function plainBytes(sink: ByteSink, values: ByteValues, from: number, to: number): void {
  const { data, offsets, slots } = values;
  const source = buffered(data);
  for (let i = from; i < to; i++) {
    const slot = slots === null ? i : slots[i]!;
    const start = offsets[slot]!;
    const end = offsets[slot + 1]!;
    sink.ensure(4 + end - start);
    sink.setInt32(sink.length, end - start);
    copyBytes(source, start, end, sink, sink.length + 4);
    sink.length += 4 + end - start;
  }
}

function plainBooleans(sink: ByteSink, values: BooleanValues, from: number, to: number): void {
  const { flags, slots } = values;
  const bytes = Math.ceil((to - from) / 8);
  sink.ensure(bytes);
  sink.bytes.fill(0, sink.length, sink.length + bytes);
  for (let i = from; i < to; i++) {
    const bit = i - from;
    const flag = flags[slots === null ? i : slots[i]!]!;
    sink.bytes[sink.length + (bit >>> 3)]! |= flag << (bit & 7);
  }
  sink.length += bytes;
}

/** PLAIN size of values `[from, to)`, for cutting pages. Exact for words, an upper estimate else. */
export function plainSize(values: Values, from: number, to: number): number {
  if (values.kind === 'words') return (to - from) * values.width;
  if (values.kind === 'booleans') return (to - from) / 8;
  if (from === to) return 0;
  const { offsets, slots } = values;
  const first = slots === null ? from : slots[from]!;
  const last = slots === null ? to - 1 : slots[to - 1]!;
  return (to - from) * 4 + Math.abs(offsets[last + 1]! - offsets[first]!);
}
