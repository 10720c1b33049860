// Thrift structs of page headers and footer in the compact protocol. A file has a header a page and a footer that names
// every chunk: of a wide table's small files they are a tenth of the work, so they are written without objects between.
// Numbers become i32 and bigints i64, so the two must be told apart by who calls.
// Source: Thrift compact protocol; parquet.thrift.
import { assert } from '../../base/assert.ts';
import { ByteSink } from './byte-sink.ts';

/** A struct as `field_N` → value, N ascending and at most 15 apart; undefined fields are left out. */
export type ThriftStruct = { readonly [key: `field_${number}`]: unknown };

/** Types of the compact protocol. */
const TYPE = { TRUE: 1, FALSE: 2, I32: 5, I64: 6, BINARY: 8, LIST: 9, STRUCT: 12 } as const;

/** Field numbers of structs, by key. */
const fieldNumbers = new Map<string, number>();

function fieldNumber(key: string): number {
  let number = fieldNumbers.get(key);
  if (number === undefined) {
    number = Number(key.slice('field_'.length));
    fieldNumbers.set(key, number);
  }
  return number;
}

const encoder = new TextEncoder();
const written = new ByteSink(1 << 10);

/** The bytes of a struct: numbers, bigints, booleans, text, bytes, lists of one kind and structs. */
export function serializeThrift(struct: ThriftStruct): Uint8Array {
  written.clear();
  writeStruct(written, struct);
  return written.view().slice();
}

function typeOf(value: unknown): number {
  switch (typeof value) {
    case 'number':
      return TYPE.I32;
    case 'bigint':
      return TYPE.I64;
    case 'boolean':
      return value ? TYPE.TRUE : TYPE.FALSE;
    case 'string':
      return TYPE.BINARY;
    default:
      if (value instanceof Uint8Array) return TYPE.BINARY;
      return Array.isArray(value) ? TYPE.LIST : TYPE.STRUCT;
  }
}

function writeStruct(sink: ByteSink, struct: ThriftStruct): void {
  let last = 0;
  for (const key in struct) {
    const value = struct[key as `field_${number}`];
    if (value === undefined) continue;
    const type = typeOf(value);
    const number = fieldNumber(key);
    assert(number > last && number - last <= 15, 'Thrift fields ascend by at most 15');
    sink.byte(((number - last) << 4) | type);
    last = number;
    writeValue(sink, type, value);
  }
  sink.byte(0);
}

function writeValue(sink: ByteSink, type: number, value: unknown): void {
  switch (type) {
    case TYPE.I32:
      zigZag(sink, value as number);
      break;
    case TYPE.I64:
      zigZag(sink, Number(value));
      break;
    case TYPE.BINARY:
      if (typeof value === 'string') writeText(sink, value);
      else writeBytes(sink, value as Uint8Array);
      break;
    case TYPE.LIST: {
      const list = value as readonly unknown[];
      const element = list.length === 0 ? TYPE.STRUCT : typeOf(list[0]);
      sink.byte((Math.min(list.length, 15) << 4) | element);
      if (list.length >= 15) sink.varint(list.length);
      for (const one of list) writeValue(sink, element, one);
      break;
    }
    case TYPE.STRUCT:
      writeStruct(sink, value as ThriftStruct);
      break;
  }
}

/** Names are mostly short and ASCII: a call into the encoder costs more than they do. */
function writeText(sink: ByteSink, text: string): void {
  const { length } = text;
  if (length < 128) {
    sink.ensure(length + 1);
    const { bytes } = sink;
    let at = sink.length;
    bytes[at++] = length;
    let all = 0;
    for (let i = 0; i < length; i++) {
      const unit = text.charCodeAt(i);
      all |= unit;
      bytes[at++] = unit;
    }
    if (all < 0x80) {
      sink.length = at;
      return;
    }
  }
  writeBytes(sink, encoder.encode(text));
}

function writeBytes(sink: ByteSink, bytes: Uint8Array): void {
  sink.varint(bytes.length);
  sink.append(bytes);
}

/** Up to 2^52: twice the value must be exact. */
function zigZag(sink: ByteSink, value: number): void {
  assert(Math.abs(value) <= 2 ** 52, 'sizes and counts of a file are exact numbers');
  let rest = value < 0 ? -2 * value - 1 : 2 * value;
  while (rest >= 0x80) {
    sink.byte((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  sink.byte(rest);
}

export interface PageHeaderFields {
  readonly type: number;
  readonly uncompressedSize: number;
  readonly storedSize: number;
  /** Of the stored bytes, signed. */
  readonly crc: number;
  /** Entries of a data page, values of a dictionary. */
  readonly count: number;
  readonly encoding: number;
}

/** Appends a PageHeader: of a data page v1, whose levels are RLE, or of a dictionary. */
export function writePageHeader(sink: ByteSink, header: PageHeaderFields): void {
  field(sink, 1, header.type);
  field(sink, 1, header.uncompressedSize);
  field(sink, 1, header.storedSize);
  field(sink, 1, header.crc);
  const isData = header.type === PAGE_TYPE.DATA;
  sink.byte(((isData ? 1 : 3) << 4) | TYPE.STRUCT);
  field(sink, 1, header.count);
  field(sink, 1, header.encoding);
  if (isData) {
    field(sink, 1, ENCODING.RLE);
    field(sink, 1, ENCODING.RLE);
  }
  sink.byte(0);
  sink.byte(0);
}

function field(sink: ByteSink, delta: number, value: number): void {
  sink.byte((delta << 4) | TYPE.I32);
  zigZag(sink, value);
}

/** Encoding numbers of parquet.thrift. */
export const ENCODING = { PLAIN: 0, RLE: 3, RLE_DICTIONARY: 8 } as const;
/** CompressionCodec numbers of parquet.thrift. */
export const CODEC = {
  UNCOMPRESSED: 0,
  SNAPPY: 1,
  GZIP: 2,
  BROTLI: 4,
  ZSTD: 6,
  LZ4_RAW: 7,
} as const;
/** PageType numbers of parquet.thrift. */
export const PAGE_TYPE = { DATA: 0, DICTIONARY: 2 } as const;
