// One column chunk, page by page: levels and the bytes of values, decompressed. What the values mean is leaf-values.ts's.
// Source: parquet-format, "Data Pages", Encodings.md.
import { crc32 } from 'node:zlib';
import type { ColumnMetaData } from 'hyparquet';
import { FloeError } from '../../../base/error.ts';
import { decompressor } from './decompress.ts';
import { PAGE, type PageHeader, readPageHeader } from './page-header.ts';
import type { FileNode } from './tree.ts';
import { decodeHybrid, soleValue } from './unhybrid.ts';

/** Encoding numbers of parquet.thrift. */
export const ENCODING = {
  PLAIN: 0,
  PLAIN_DICTIONARY: 2,
  RLE: 3,
  RLE_DICTIONARY: 8,
} as const;

/** A page of values. */
export interface DataPage {
  /** Entries: values, nulls, empty lists. */
  readonly count: number;
  /** A level per entry; null when all entries have the same, which `level` is then. */
  readonly definition: Uint8Array | null;
  readonly level: number;
  /** A level per entry; null when the leaf isn't repeated, or no entry of it repeats. */
  readonly repetition: Uint8Array | null;
  readonly encoding: number;
  /** The encoded values. */
  readonly values: Uint8Array;
}

export interface DictionaryPage {
  readonly count: number;
  readonly values: Uint8Array;
}

/** Takes pages as they come. Their values are valid until the call returns; their levels stay. */
export interface ChunkVisitor {
  dictionary(page: DictionaryPage): void;
  data(page: DataPage): void;
}

const corrupt = (what: string) => new FloeError('corrupt', `Parquet: ${what}`);

/** Where a chunk lies in its file, end exclusive. @throws FloeError `corrupt`. */
export function chunkRange(chunk: ColumnMetaData, fileBytes: number) {
  const start = Math.min(
    Number(chunk.data_page_offset),
    // Some writers leave a zero where there is no dictionary.
    Number(chunk.dictionary_page_offset || chunk.data_page_offset),
  );
  const end = start + Number(chunk.total_compressed_size);
  if (start < 0 || end > fileBytes) throw corrupt('a column chunk outside its file');
  return { start, end };
}

/**
 * Reads the pages of a chunk in order.
 * @param file the whole file
 * @throws FloeError `corrupt`, `unsupported`.
 */
export function readChunk(
  file: Uint8Array,
  chunk: ColumnMetaData,
  leaf: FileNode,
  visitor: ChunkVisitor,
): void {
  const total = Number(chunk.num_values);
  const { start, end } = chunkRange(chunk, file.length);
  const bytes = file.subarray(0, end);
  const decompress = decompressor(chunk.codec);
  let at = start;
  let seen = 0;
  while (seen < total) {
    if (at >= end) throw corrupt(`${seen} of ${total} values of a chunk`);
    const header = readPageHeader(bytes, at);
    const from = at + header.length;
    at = from + header.compressedSize;
    const body = bytes.subarray(from, at);
    if (header.crc !== undefined && header.crc !== (crc32(body) | 0))
      throw corrupt(`a page at ${from} that isn't what was written: its CRC32 is another`);
    if (header.type === PAGE.DICTIONARY) {
      if (header.encoding !== ENCODING.PLAIN && header.encoding !== ENCODING.PLAIN_DICTIONARY)
        throw unsupported(header.encoding);
      visitor.dictionary({
        count: header.count,
        values: decompress(body, header.uncompressedSize),
      });
    } else if (header.type === PAGE.DATA || header.type === PAGE.DATA_V2) {
      const page =
        header.type === PAGE.DATA
          ? pageV1(header, decompress(body, header.uncompressedSize), leaf)
          : pageV2(header, body, leaf, decompress);
      seen += page.count;
      visitor.data(page);
    }
  }
  if (seen > total) throw corrupt('more values in pages than their chunk says');
}

const unsupported = (encoding: number) =>
  new FloeError('unsupported', `Parquet: encoding ${encoding}`);

const levelWidth = (max: number) => 32 - Math.clz32(max);

function pageV1(header: PageHeader, body: Uint8Array, leaf: FileNode): DataPage {
  const { count } = header;
  let at = 0;
  const levels = (max: number, encoding: number): Uint8Array | number => {
    if (max === 0) return 0;
    if (encoding !== ENCODING.RLE) throw unsupported(encoding);
    if (at + 4 > body.length) throw corrupt('a page without its levels');
    const size =
      (body[at]! | (body[at + 1]! << 8) | (body[at + 2]! << 16) | (body[at + 3]! << 24)) >>> 0;
    const from = at + 4;
    at = from + size;
    if (at > body.length) throw corrupt('levels longer than their page');
    return decodeLevels(body, { from, end: at, count, max });
  };
  const repetition = levels(leaf.repetition, header.repetitionEncoding);
  const definition = levels(leaf.definition, header.definitionEncoding);
  const encoding = header.encoding;
  return {
    count,
    ...placed({ count, definition, repetition }),
    encoding,
    values: body.subarray(at),
  };
}

function pageV2(
  header: PageHeader,
  body: Uint8Array,
  leaf: FileNode,
  decompress: (input: Uint8Array, length: number) => Uint8Array,
): DataPage {
  const { count, repetitionBytes, definitionBytes } = header;
  const levelBytes = repetitionBytes + definitionBytes;
  if (levelBytes > body.length) throw corrupt('levels longer than their page');
  const rest = body.subarray(levelBytes);
  const size = header.uncompressedSize - levelBytes;
  const repetition =
    leaf.repetition === 0
      ? 0
      : decodeLevels(body, { from: 0, end: repetitionBytes, count, max: leaf.repetition });
  const definition =
    leaf.definition === 0
      ? 0
      : decodeLevels(body, { from: repetitionBytes, end: levelBytes, count, max: leaf.definition });
  return {
    count,
    ...placed({ count, definition, repetition }),
    encoding: header.encoding,
    values: header.compressed && size > 0 ? decompress(rest, size) : rest,
  };
}

interface LevelRun {
  readonly from: number;
  readonly end: number;
  readonly count: number;
  readonly max: number;
}

/** The levels, or the one that all entries have. */
function decodeLevels(bytes: Uint8Array, { from, end, count, max }: LevelRun): Uint8Array | number {
  const run = { from, end, width: levelWidth(max), count };
  const only = soleValue(bytes, run);
  if (only !== -1) return only;
  const levels = new Uint8Array(count);
  decodeHybrid(bytes, run, levels);
  return levels;
}

interface PageLevels {
  readonly count: number;
  readonly definition: Uint8Array | number;
  readonly repetition: Uint8Array | number;
}

function placed({ count, definition, repetition }: PageLevels) {
  const uniform = typeof definition === 'number';
  return {
    definition: uniform ? null : definition,
    level: uniform ? definition : 0,
    repetition:
      typeof repetition !== 'number'
        ? repetition
        : repetition === 0
          ? null
          : new Uint8Array(count).fill(repetition),
  };
}
