// Page headers: the one Thrift struct that is read per page, without objects for what isn't needed.
// Source: parquet.thrift, PageHeader; Thrift compact protocol.
import { FloeError } from '../../../base/error.ts';

/** PageType numbers of parquet.thrift. */
export const PAGE = { DATA: 0, INDEX: 1, DICTIONARY: 2, DATA_V2: 3 } as const;

/** A page header; what a kind of page doesn't have is 0. */
export interface PageHeader {
  type: number;
  uncompressedSize: number;
  compressedSize: number;
  /** Entries, nulls included. */
  count: number;
  encoding: number;
  definitionEncoding: number;
  repetitionEncoding: number;
  /** v2: bytes of the levels, which are never compressed. */
  definitionBytes: number;
  repetitionBytes: number;
  /** v2: whether what follows the levels is compressed. */
  compressed: boolean;
  /** Of the page as it is stored, as a signed integer; undefined where the writer left it out. */
  crc: number | undefined;
  /** Bytes of the header itself. */
  length: number;
}

const TRUE = 1;
const FALSE = 2;

/** Deepest nesting that is skipped: a header has two levels. */
const MAX_DEPTH = 8;

/** Reads the header at `at`. @throws FloeError `corrupt`. */
export function readPageHeader(bytes: Uint8Array, at: number): PageHeader {
  const reader = new Compact(bytes, at);
  const header: PageHeader = {
    type: -1,
    uncompressedSize: -1,
    compressedSize: -1,
    count: 0,
    encoding: 0,
    definitionEncoding: 3,
    repetitionEncoding: 3,
    definitionBytes: 0,
    repetitionBytes: 0,
    compressed: true,
    crc: undefined,
    length: 0,
  };
  reader.struct((id, type) => {
    if (id === 1) header.type = reader.int();
    else if (id === 2) header.uncompressedSize = reader.int();
    else if (id === 3) header.compressedSize = reader.int();
    else if (id === 4) header.crc = reader.int();
    else if (id === 5) dataPage(reader, header);
    else if (id === 7) dictionaryPage(reader, header);
    else if (id === 8) dataPageV2(reader, header);
    else reader.skip(type, 0);
  });
  header.length = reader.at - at;
  const { uncompressedSize, compressedSize, count, length } = header;
  const fits = at + length + compressedSize <= bytes.length;
  if (compressedSize < 0 || uncompressedSize < 0 || count < 0 || !fits)
    throw corrupt('a page that does not fit its file');
  return header;
}

function dataPage(reader: Compact, header: PageHeader): void {
  reader.struct((id, type) => {
    if (id === 1) header.count = reader.int();
    else if (id === 2) header.encoding = reader.int();
    else if (id === 3) header.definitionEncoding = reader.int();
    else if (id === 4) header.repetitionEncoding = reader.int();
    else reader.skip(type, 0);
  });
}

function dictionaryPage(reader: Compact, header: PageHeader): void {
  reader.struct((id, type) => {
    if (id === 1) header.count = reader.int();
    else if (id === 2) header.encoding = reader.int();
    else reader.skip(type, 0);
  });
}

function dataPageV2(reader: Compact, header: PageHeader): void {
  reader.struct((id, type) => {
    if (id === 1) header.count = reader.int();
    else if (id === 4) header.encoding = reader.int();
    else if (id === 5) header.definitionBytes = reader.int();
    else if (id === 6) header.repetitionBytes = reader.int();
    else if (id === 7) header.compressed = type === TRUE;
    else reader.skip(type, 0);
  });
}

/** Just enough of the compact protocol. */
class Compact {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  #byte(): number {
    const byte = this.#bytes[this.at++];
    if (byte === undefined) throw corrupt('a page header that ends too early');
    return byte;
  }

  #varint(): number {
    let value = 0;
    for (let shift = 1; shift < 2 ** 56; shift *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
    }
    throw corrupt('a number of a page header that does not end');
  }

  /** A zigzag integer. */
  int(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** `field` reads what belongs to the id, or skips it. */
  struct(field: (id: number, type: number) => void): void {
    let id = 0;
    for (;;) {
      const head = this.#byte();
      if (head === 0) return;
      const delta = head >>> 4;
      id = delta === 0 ? this.int() : id + delta;
      field(id, head & 15);
    }
  }

  skip(type: number, depth: number): void {
    if (depth > MAX_DEPTH) throw corrupt('a page header that nests too deep');
    if (type === TRUE || type === FALSE) return;
    if (type === 3) this.at += 1;
    else if (type <= 6) this.#varint();
    else if (type === 7) this.at += 8;
    else if (type === 8) this.at += this.#varint();
    else if (type === 12) this.struct((_, inner) => this.skip(inner, depth + 1));
    else if (type === 9 || type === 10) this.#list(depth);
    else throw corrupt(`a page header with a field of type ${type}`);
  }

  #list(depth: number): void {
    const head = this.#byte();
    const size = head >>> 4 === 15 ? this.#varint() : head >>> 4;
    if (size > this.#bytes.length) throw corrupt('a list of a page header longer than its file');
    const type = head & 15;
    for (let n = 0; n < size; n += 1) {
      if (type === TRUE || type === FALSE) this.at += 1;
      else this.skip(type, depth + 1);
    }
  }
}

const corrupt = (what: string) => new FloeError('corrupt', `Parquet: ${what}`);
