// Pages as they are stored: compressed where that pays, with their headers, end to end.
// Pages are small where tables are wide, so that what each costs by itself counts: they are put together in one buffer
// that is kept, and leave it in few parts.
// Not for: what is in a page (chunk.ts).
import { crc32 } from 'node:zlib';
import { ByteSink } from './byte-sink.ts';
import type { Codec } from './codecs.ts';
import { CODEC, writePageHeader } from './thrift.ts';

/** A chunk whose first pages don't shrink below this part of themselves is stored as it is. */
const WORTH_COMPRESSING = 0.95;
/** Nor is one whose first pages have fewer bytes: a frame's own dozen of bytes and the call cost more than is saved. */
const LEAST_COMPRESSED = 64;
/** Parts have at least so many bytes, the last one of a row group apart. */
const PART_BYTES = 1 << 16;

export const STORED: Codec = { number: CODEC.UNCOMPRESSED, compress: undefined };

export interface Page {
  readonly type: number;
  /** Before compression. Read at once: it may be a view of what is used again. */
  readonly body: Uint8Array;
  /** Entries of a data page, values of a dictionary. */
  readonly count: number;
  readonly encoding: number;
}

/** A chunk's pages, counted. */
export interface StoredPages {
  /** The codec's number. */
  readonly codec: number;
  /** Bytes with headers, as stored. */
  readonly compressedSize: number;
  /** Of them the dictionary's; 0 without one. */
  readonly dictionarySize: number;
  readonly dataPages: number;
  /** Bytes with headers, before compression. */
  readonly uncompressedSize: number;
}

/** Pages of a row group, chunk by chunk. */
export class PageWriter {
  readonly #sink = new ByteSink();
  #parts: Uint8Array[] = [];
  #codec: Codec = STORED;
  #compressedSize = 0;
  #dictionarySize = 0;
  #dataPages = 0;
  #uncompressedSize = 0;

  /** Forgets what was written since the last `take`: a row group that failed. */
  clear(): void {
    this.#parts = [];
    this.#sink.clear();
  }

  /**
   * Begins a chunk with its first page of data, before it its dictionary where it has one. A chunk has one codec, and the
   * two decide it together: text in a dictionary may shrink where the numbers that stand for it don't.
   */
  begin(data: Page, dictionary: Page | undefined, wanted: Codec): void {
    const bytes = data.body.length + (dictionary?.body.length ?? 0);
    const start = this.#sink.length;
    this.#writeFirst(data, dictionary, bytes < LEAST_COMPRESSED ? STORED : wanted);
    if (this.#codec.compress === undefined) return;
    if (this.#compressedSize < this.#uncompressedSize * WORTH_COMPRESSING) return;
    this.#sink.length = start;
    this.#writeFirst(data, dictionary, STORED);
  }

  /** A further page of the chunk. */
  add(page: Page): void {
    this.#cut(PART_BYTES);
    this.#write(page);
    this.#dataPages++;
  }

  /** Ends the chunk. */
  end(): StoredPages {
    this.#cut(PART_BYTES);
    return {
      codec: this.#codec.number,
      compressedSize: this.#compressedSize,
      dictionarySize: this.#dictionarySize,
      dataPages: this.#dataPages,
      uncompressedSize: this.#uncompressedSize,
    };
  }

  /** The bytes of all chunks since the last call. */
  take(): readonly Uint8Array[] {
    this.#cut(1);
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }

  #writeFirst(data: Page, dictionary: Page | undefined, codec: Codec): void {
    this.#codec = codec;
    this.#compressedSize = 0;
    this.#uncompressedSize = 0;
    if (dictionary !== undefined) this.#write(dictionary);
    this.#dictionarySize = this.#compressedSize;
    this.#write(data);
    this.#dataPages = 1;
  }

  #write({ type, body, count, encoding }: Page): void {
    const { compress } = this.#codec;
    const stored = compress === undefined ? body : compress(body);
    const sink = this.#sink;
    const start = sink.length;
    writePageHeader(sink, {
      type,
      uncompressedSize: body.length,
      storedSize: stored.length,
      crc: crc32(stored) | 0,
      count,
      encoding,
    });
    const header = sink.length - start;
    sink.append(stored);
    this.#compressedSize += header + stored.length;
    this.#uncompressedSize += header + body.length;
  }

  /** Hands on what was gathered, if it is so many bytes. */
  #cut(least: number): void {
    if (this.#sink.length < least) return;
    this.#parts.push(this.#sink.view().slice());
    this.#sink.clear();
  }
}
