// The values of a leaf into the buffers of a column: PLAIN and dictionary, each physical type to each column kind that
// Iceberg's promotions allow. Values are first written one after the other, then spread over the slots that have
// one, so that every decoder is a plain loop.
// Source: parquet-format, Encodings.md "Plain"; Iceberg table spec, "Schema Evolution" and appendix A.
import type { SchemaElement } from 'hyparquet';
import { FloeError } from '../../../base/error.ts';
import { BytesColumn, FixedColumn } from '../../arrow/byte-columns.ts';
import type { Column } from '../../arrow/column.ts';
import {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../../arrow/scalar-columns.ts';
import { parsePrimitive } from '../../iceberg/primitive.ts';
import type { PrimitiveTypeName } from '../../iceberg/types.ts';
import { ENCODING } from './chunk-reader.ts';
import { decodeHybrid } from './unhybrid.ts';

/** Where the values of one page go: slots `[row, row + slots)` were added to the column. */
export interface Target {
  readonly row: number;
  readonly slots: number;
  /** One byte a slot, 1 where there is a value; null when all have one. */
  readonly valid: Uint8Array | null;
  /** Slots with a value. */
  readonly present: number;
}

/** Takes the dictionary, then pages. One per chunk. */
export interface LeafSink {
  dictionary(values: Uint8Array, count: number): void;
  page(encoding: number, values: Uint8Array, target: Target): void;
}

const corrupt = (what: string) => new FloeError('corrupt', `Parquet: ${what}`);

const unsupported = (element: SchemaElement, type: string) =>
  new FloeError(
    'unsupported',
    `Parquet: column "${element.name}" (${element.type} ${element.logical_type?.type ?? ''}) as ${type}`,
  );

/** A sink that fills `column` from a leaf described by `element`. @throws FloeError `unsupported`. */
export function leafSink(column: Column, element: SchemaElement): LeafSink {
  const type = column.type as PrimitiveTypeName;
  checkUnit(element, type);
  const physical = element.type;
  if (column instanceof BooleanColumn && physical === 'BOOLEAN') return new BooleanSink(column);
  if (column instanceof Int32Column && physical === 'INT32') {
    return new WordSink(column, { from: 1, to: 1, words: () => column.values });
  }
  if (column instanceof Int64Column) {
    const words = () => column.halves;
    if (physical === 'INT64') return new WordSink(column, { from: 2, to: 2, words });
    if (physical === 'INT32' && type === 'long')
      return new WordSink(column, { from: 1, to: 2, words, convert: signExtend });
  }
  if (column instanceof FloatColumn) return floatSink(column, element);
  if (column instanceof BytesColumn && physical === 'BYTE_ARRAY') return new BytesSink(column);
  if (column instanceof FixedColumn) return fixedSink(column, element);
  throw unsupported(element, type);
}

/** Times come in one unit each, as Iceberg writes them; what another writer made of them isn't guessed at. */
function checkUnit(element: SchemaElement, type: PrimitiveTypeName): void {
  const logical = element.logical_type;
  const { kind, scale } = parsePrimitive(type);
  const time = kind.startsWith('timestamp') || kind === 'time';
  const nanos = kind.endsWith('_ns');
  if (time) {
    const wanted = nanos ? 'NANOS' : 'MICROS';
    const unit =
      logical?.type === 'TIMESTAMP' || logical?.type === 'TIME'
        ? logical.unit
        : element.converted_type?.replace(/^TIME(STAMP)?_/, '');
    if (unit !== undefined && unit !== wanted) throw unsupported(element, type);
  } else if (logical?.type === 'TIMESTAMP' || logical?.type === 'TIME') {
    throw unsupported(element, type);
  }
  const of = logical?.type === 'DECIMAL' ? logical.scale : element.scale;
  const decimal = logical?.type === 'DECIMAL' || element.converted_type === 'DECIMAL';
  if (decimal !== (kind === 'decimal') || (decimal && (of ?? 0) !== scale))
    throw unsupported(element, type);
  if (logical?.type === 'INTEGER' && !logical.isSigned) throw unsupported(element, type);
}

function floatSink(column: FloatColumn, element: SchemaElement): LeafSink {
  const wide = column.kind === 'float64';
  const words = () => {
    const { buffer, byteOffset, byteLength } = column.values;
    return new Int32Array(buffer, byteOffset, byteLength / 4);
  };
  if (element.type === 'DOUBLE' && wide) return new WordSink(column, { from: 2, to: 2, words });
  if (element.type === 'FLOAT' && !wide) return new WordSink(column, { from: 1, to: 1, words });
  if (element.type === 'FLOAT')
    return new WordSink(column, { from: 1, to: 2, words, convert: toDouble });
  throw unsupported(element, String(column.type));
}

function fixedSink(column: FixedColumn, element: SchemaElement): LeafSink {
  const decimal = String(column.type).startsWith('decimal');
  switch (element.type) {
    case 'INT32':
      if (decimal) return new FixedSink(column, { width: 4, bigEndian: false });
      break;
    case 'INT64':
      if (decimal) return new FixedSink(column, { width: 8, bigEndian: false });
      break;
    case 'FIXED_LEN_BYTE_ARRAY': {
      const width = element.type_length ?? 0;
      if (decimal ? width >= 1 && width <= 16 : width === column.width)
        return new FixedSink(column, { width, bigEndian: true });
      break;
    }
  }
  throw unsupported(element, String(column.type));
}

/** How words of the file become words of a column. */
interface WordLayout {
  /** Words of a value in the file and in the column. */
  readonly from: number;
  readonly to: number;
  /** The column's buffer as it is now. */
  readonly words: () => Int32Array;
  /** Writes `count` values of one word as two. */
  readonly convert?: (source: Int32Array, count: number, out: Int32Array, at: number) => void;
}

function signExtend(source: Int32Array, count: number, out: Int32Array, at: number): void {
  for (let i = 0; i < count; i++) {
    out[at + 2 * i] = source[i]!;
    out[at + 2 * i + 1] = source[i]! >> 31;
  }
}

function toDouble(source: Int32Array, count: number, out: Int32Array, at: number): void {
  const floats = new Float32Array(source.buffer, source.byteOffset, count);
  const doubles = Float64Array.from(floats);
  out.set(new Int32Array(doubles.buffer), at);
}

/** Dictionary indices of a page go over those of the last one, up to so many. */
const KEPT_INDICES = 1 << 18;
let keptIndices = new Int32Array(1024);

/** Valid until those of the next page are read. */
function readIndices(bytes: Uint8Array, count: number, entries: number): Int32Array {
  let indices = keptIndices;
  if (indices.length < count) {
    indices = new Int32Array(Math.max(count, 1 << 16));
    if (count <= KEPT_INDICES) keptIndices = indices;
  }
  if (count === 0) return indices;
  const width = bytes[0];
  if (width === undefined) throw corrupt('a page without its dictionary indices');
  decodeHybrid(bytes, { from: 1, end: bytes.length, width, count }, indices);
  for (let i = 0; i < count; i++)
    if (indices[i]! >>> 0 >= entries) throw corrupt('an index past its dictionary');
  return indices;
}

const isDictionary = (encoding: number) =>
  encoding === ENCODING.RLE_DICTIONARY || encoding === ENCODING.PLAIN_DICTIONARY;

function refuse(encoding: number): never {
  throw new FloeError('unsupported', `Parquet: encoding ${encoding}`);
}

function checkWords(bytes: Uint8Array, words: number): void {
  if (bytes.length < words * 4) throw corrupt('a page with fewer values than it says');
}

/** `bytes`, or a copy of them, as 32-bit words. */
function aligned(bytes: Uint8Array, words: number): Int32Array {
  if (bytes.byteOffset % 4 === 0) return new Int32Array(bytes.buffer, bytes.byteOffset, words);
  const copy = new Uint8Array(words * 4);
  copy.set(bytes.subarray(0, words * 4));
  return new Int32Array(copy.buffer);
}

/** Words of a page to `out` from `at`, wherever in its bytes they begin. */
function copyWords(values: Uint8Array, words: number, out: Int32Array, at: number): void {
  const bytes = new Uint8Array(out.buffer, out.byteOffset + at * 4, words * 4);
  bytes.set(values.subarray(0, words * 4));
}

/** Codes of the values of one chunk: those of its dictionary's entries. */
class CodeNotes {
  readonly #column: Column;
  #first = -1;

  constructor(column: Column) {
    this.#column = column;
  }

  dictionary(count: number): void {
    this.#first = this.#column.codes?.addDictionary(count) ?? -1;
  }

  page({ row, slots, valid }: Target, indices: Int32Array): void {
    const { codes, capacity } = this.#column;
    codes?.note({ row, count: slots, valid, capacity }, indices, this.#first);
  }
}

class WordSink implements LeafSink {
  readonly #layout: WordLayout;
  readonly #notes: CodeNotes;
  #dictionary = new Int32Array(0);

  constructor(column: Column, layout: WordLayout) {
    this.#layout = layout;
    this.#notes = new CodeNotes(column);
  }

  dictionary(values: Uint8Array, count: number): void {
    this.#notes.dictionary(count);
    const { from, to, convert } = this.#layout;
    checkWords(values, count * from);
    this.#dictionary = new Int32Array(count * to);
    if (convert === undefined) copyWords(values, count * from, this.#dictionary, 0);
    else convert(aligned(values, count * from), count, this.#dictionary, 0);
  }

  page(encoding: number, values: Uint8Array, target: Target): void {
    const { from, to, convert, words } = this.#layout;
    const out = words();
    const { present, row } = target;
    if (isDictionary(encoding)) {
      this.#pick(values, target, out);
    } else if (encoding === ENCODING.PLAIN) {
      checkWords(values, present * from);
      if (convert === undefined) copyWords(values, present * from, out, row * to);
      else convert(aligned(values, present * from), present, out, row * to);
    } else refuse(encoding);
    spreadWords(out, target, to);
  }

  #pick(values: Uint8Array, target: Target, out: Int32Array): void {
    const { present, row } = target;
    const dictionary = this.#dictionary;
    const { to } = this.#layout;
    const indices = readIndices(values, present, dictionary.length / to);
    this.#notes.page(target, indices);
    if (to === 1) {
      for (let i = 0; i < present; i++) out[row + i] = dictionary[indices[i]!]!;
      return;
    }
    for (let i = 0, at = row * 2; i < present; i++) {
      const from = indices[i]! * 2;
      out[at++] = dictionary[from]!;
      out[at++] = dictionary[from + 1]!;
    }
  }
}

/** Moves values that stand one after the other to their slots, from the last on. */
function spreadWords(out: Int32Array, { row, slots, valid, present }: Target, words: number): void {
  if (valid === null || present === slots) return;
  let from = row + present - 1;
  for (let slot = slots - 1; from >= row && slot > from - row; slot--) {
    if (valid[slot] === 0) continue;
    const to = row + slot;
    if (words === 1) out[to] = out[from]!;
    else {
      out[2 * to] = out[2 * from]!;
      out[2 * to + 1] = out[2 * from + 1]!;
    }
    from--;
  }
}

class BooleanSink implements LeafSink {
  readonly #column: BooleanColumn;

  constructor(column: BooleanColumn) {
    this.#column = column;
  }

  dictionary(): void {
    throw corrupt('a dictionary of booleans');
  }

  page(encoding: number, values: Uint8Array, target: Target): void {
    const out = this.#column.values;
    const { row, present, slots, valid } = target;
    if (encoding === ENCODING.PLAIN) {
      if (values.length * 8 < present) throw corrupt('a page with fewer values than it says');
      for (let i = 0; i < present; i++) out[row + i] = (values[i >>> 3]! >>> (i & 7)) & 1;
    } else if (encoding === ENCODING.RLE) {
      if (present > 0)
        decodeHybrid(values, { from: 4, end: values.length, width: 1, count: present }, out, row);
    } else refuse(encoding);
    if (valid === null || present === slots) return;
    let from = row + present - 1;
    for (let slot = slots - 1; from >= row && slot > from - row; slot--)
      if (valid[slot] === 1) out[row + slot] = out[from--]!;
  }
}

class FixedSink implements LeafSink {
  readonly #column: FixedColumn;
  readonly #width: number;
  readonly #bigEndian: boolean;
  readonly #notes: CodeNotes;
  /** In the column's form. */
  #dictionary = new Uint8Array(0);

  constructor(
    column: FixedColumn,
    { width, bigEndian }: { readonly width: number; readonly bigEndian: boolean },
  ) {
    this.#column = column;
    this.#width = width;
    this.#bigEndian = bigEndian;
    this.#notes = new CodeNotes(column);
  }

  dictionary(values: Uint8Array, count: number): void {
    this.#notes.dictionary(count);
    this.#dictionary = new Uint8Array(count * this.#column.width);
    this.#convert(values, count, this.#dictionary, 0);
  }

  page(encoding: number, values: Uint8Array, target: Target): void {
    const { width, data } = this.#column;
    const { row, present, slots, valid } = target;
    if (isDictionary(encoding)) {
      const indices = readIndices(values, present, this.#dictionary.length / width);
      this.#notes.page(target, indices);
      for (let i = 0, at = row * width; i < present; i++) {
        const from = indices[i]! * width;
        for (let j = 0; j < width; j++) data[at++] = this.#dictionary[from + j]!;
      }
    } else if (encoding === ENCODING.PLAIN) this.#convert(values, present, data, row * width);
    else refuse(encoding);
    if (valid === null || present === slots) return;
    let from = row + present - 1;
    for (let slot = slots - 1; from >= row && slot > from - row; slot--) {
      if (valid[slot] === 0) continue;
      data.copyWithin((row + slot) * width, from * width, (from + 1) * width);
      from--;
    }
  }

  /** Sign-extends big-endian bytes, or turns little-endian integers round. */
  #convert(source: Uint8Array, count: number, out: Uint8Array, start: number): void {
    const width = this.#width;
    const { width: stride } = this.#column;
    if (source.length < count * width) throw corrupt('a page with fewer values than it says');
    if (width === stride && this.#bigEndian) {
      out.set(source.subarray(0, count * width), start);
      return;
    }
    const pad = stride - width;
    for (let i = 0; i < count; i++) {
      const from = i * width;
      const to = start + i * stride;
      const sign = source[this.#bigEndian ? from : from + width - 1]! & 0x80 ? 0xff : 0;
      out.fill(sign, to, to + pad);
      for (let j = 0; j < width; j++)
        out[to + pad + j] = source[this.#bigEndian ? from + j : from + width - 1 - j]!;
    }
  }
}

/** Copies up to this length byte by byte: shorter than the cost of a native call. */
const LOOP_COPY_BYTES = 24;

class BytesSink implements LeafSink {
  readonly #column: BytesColumn;
  readonly #notes: CodeNotes;
  #dictionary = new Uint8Array(0);
  /** Entry i of the dictionary is `[ends[i], ends[i + 1])`. */
  #ends = new Int32Array(1);

  constructor(column: BytesColumn) {
    this.#column = column;
    this.#notes = new CodeNotes(column);
  }

  dictionary(values: Uint8Array, count: number): void {
    this.#notes.dictionary(count);
    this.#dictionary = new Uint8Array(values.length);
    this.#ends = new Int32Array(count + 1);
    copyPlain(values, count, { out: this.#dictionary, ends: this.#ends, row: 0 });
  }

  page(encoding: number, values: Uint8Array, target: Target): void {
    const column = this.#column;
    const { row, present } = target;
    if (isDictionary(encoding)) this.#pick(values, target);
    else if (encoding === ENCODING.PLAIN) {
      column.reserveBytes(column.offsets[row]! + values.length);
      copyPlain(values, present, { out: column.data, ends: column.offsets, row });
    } else refuse(encoding);
    spreadOffsets(column.offsets, target);
  }

  #pick(values: Uint8Array, target: Target): void {
    const { row, present } = target;
    const column = this.#column;
    const ends = this.#ends;
    const dictionary = this.#dictionary;
    const indices = readIndices(values, present, ends.length - 1);
    this.#notes.page(target, indices);
    const { offsets } = column;
    let to = offsets[row]!;
    for (let i = 0; i < present; i++) {
      const index = indices[i]!;
      to += ends[index + 1]! - ends[index]!;
      offsets[row + i + 1] = to;
    }
    column.reserveBytes(to);
    const { data } = column;
    to = offsets[row]!;
    for (let i = 0; i < present; i++) {
      const index = indices[i]!;
      const start = ends[index]!;
      const end = ends[index + 1]!;
      if (end - start <= LOOP_COPY_BYTES) {
        for (let from = start; from < end; ) data[to++] = dictionary[from++]!;
      } else {
        data.set(dictionary.subarray(start, end), to);
        to += end - start;
      }
    }
  }
}

/** Where PLAIN byte arrays go: value i of the page to `out`, ending at `ends[row + i + 1]`. */
interface BytesTarget {
  readonly out: Uint8Array;
  readonly ends: Int32Array;
  readonly row: number;
}

function copyPlain(values: Uint8Array, count: number, { out, ends, row }: BytesTarget): void {
  let at = 0;
  let to = ends[row]!;
  for (let i = 0; i < count; i++) {
    if (at + 4 > values.length) throw corrupt('a page with fewer values than it says');
    const length =
      (values[at]! | (values[at + 1]! << 8) | (values[at + 2]! << 16) | (values[at + 3]! << 24)) >>>
      0;
    at += 4;
    if (at + length > values.length) throw corrupt('a value that does not fit its page');
    if (length <= LOOP_COPY_BYTES) for (let j = 0; j < length; j++) out[to + j] = values[at + j]!;
    else out.set(values.subarray(at, at + length), to);
    at += length;
    to += length;
    ends[row + i + 1] = to;
  }
}

/** Gives nulls their empty place: the bytes lie one after the other, only the offsets spread. */
function spreadOffsets(offsets: Int32Array, { row, slots, valid, present }: Target): void {
  if (valid === null || present === slots) return;
  let value = present;
  for (let slot = slots - 1; slot >= 0; slot--) {
    offsets[row + slot + 1] = offsets[row + value]!;
    if (valid[slot] === 1) value--;
  }
}
