// One column chunk: levels and values of a leaf as pages, a dictionary before them where it pays, compressed where
// it pays, with the chunk's statistics.
// Data page v1, PLAIN and RLE_DICTIONARY only: what every engine reads (Redshift refuses DELTA encodings, older
// vectorised readers too).
import { crc32 } from 'node:zlib';
import type { TableColumns } from '../arrow/table-columns.ts';
import { bloomFilter } from './bloom.ts';
import { ByteSink } from './byte-sink.ts';
import { type Codec, createCodec } from './codecs.ts';
import { type Dictionary, DictionaryBuilder } from './dictionary.ts';
import { bitWidth, encodeHybrid } from './hybrid.ts';
import type { FileLayout } from './layout.ts';
import type { Leaf } from './leaves.ts';
import { type Shredded, Shredder, ShredScratch } from './shred.ts';
import { extremesOf, type LeafStatistics } from './statistics.ts';
import { CODEC, ENCODING, PAGE_TYPE, writePageHeader } from './thrift.ts';
import { encodePlain, plainSize, type Values, valuesOf } from './values.ts';

/** A chunk whose first page doesn't shrink below this part of itself is stored as it is. */
const WORTH_COMPRESSING = 0.95;
/** Nor is one whose first page has fewer bytes: a frame's own dozen of bytes and the call cost more than is saved. */
const LEAST_COMPRESSED = 64;

export interface Chunk {
  readonly leaf: Leaf;
  readonly parts: readonly Uint8Array[];
  /** Bytes with headers, as stored. */
  readonly compressedSize: number;
  /** Bytes with headers, before compression. */
  readonly uncompressedSize: number;
  readonly codec: number;
  /** Bytes of the dictionary page with its header; 0 without one. */
  readonly dictionarySize: number;
  readonly dataPages: number;
  /** Header and bitset of the bloom filter, where the layout asks for one. */
  readonly bloom?: Uint8Array;
  readonly statistics: LeafStatistics;
}

/** Encodes chunks one after the other, reusing its buffers. Not for concurrent use. */
export class ChunkEncoder {
  readonly #sink = new ByteSink();
  readonly #header = new ByteSink(64);
  readonly #scratch = new ShredScratch();
  readonly #dictionaries = new DictionaryBuilder();
  readonly #codecs = new Map<string, Codec>();

  /** Of aligned columns all leaves, in the order of the file. */
  encodeAll(columns: TableColumns, leaves: readonly Leaf[], layout: FileLayout): Chunk[] {
    const shredder = new Shredder(columns, this.#scratch);
    return leaves.map((leaf) => this.#encode(leaf, shredder.shred(leaf), layout));
  }

  #encode(leaf: Leaf, shredded: Shredded, layout: FileLayout): Chunk {
    const values = valuesOf(leaf, shredded);
    const dictionary =
      values.kind === 'booleans' ? null : this.#dictionaries.build(values, layout.dictionaryBytes);
    // Levels alone are runs already.
    const pages = new Pages(values.count === 0 ? STORED : this.#codec(layout), this.#header);
    let taken = 0;
    for (let from = 0; from < shredded.count; ) {
      const to = pageEnd(shredded, values, { from, taken, layout });
      const present = countValues(leaf, shredded, from, to);
      this.#sink.clear();
      this.#levels(leaf, shredded, from, to);
      this.#values(values, dictionary, taken, taken + present);
      pages.add(PAGE_TYPE.DATA, this.#sink.view(), {
        count: to - from,
        encoding: dictionary === null ? ENCODING.PLAIN : ENCODING.RLE_DICTIONARY,
      });
      taken += present;
      from = to;
    }
    const dataPages = pages.count;
    const dictionarySize =
      dictionary === null ? 0 : this.#dictionaryPage(pages, values, dictionary);
    const { min, max, nanCount } = extremesOf(leaf, values, dictionary?.entries ?? null);
    const { count } = shredded;
    return {
      leaf,
      ...pages.result(),
      dictionarySize,
      dataPages,
      ...bloomOf(leaf, values, { dictionary, layout }),
      statistics: { valueCount: count, nullCount: count - shredded.values, nanCount, min, max },
    };
  }

  #codec({ codec, level }: FileLayout): Codec {
    const key = `${codec}/${level}`;
    let found = this.#codecs.get(key);
    if (found === undefined) {
      found = createCodec(codec, level);
      this.#codecs.set(key, found);
    }
    return found;
  }

  #levels(leaf: Leaf, { definition, repetition }: Shredded, from: number, to: number): void {
    const levels = (array: Uint8Array | null, max: number) => {
      if (max === 0) return;
      const sink = this.#sink;
      const start = sink.length;
      sink.int32(0);
      const width = bitWidth(max);
      if (array !== null) encodeHybrid(sink, array, { from, to, width });
      else {
        sink.varint((to - from) * 2);
        sink.ensure(1);
        sink.bytes[sink.length++] = max;
      }
      sink.setInt32(start, sink.length - start - 4);
    };
    levels(repetition, leaf.maxRepetition);
    levels(definition, leaf.maxDefinition);
  }

  #values(values: Values, dictionary: Dictionary | null, from: number, to: number): void {
    if (dictionary === null) {
      encodePlain(this.#sink, values, from, to);
      return;
    }
    const width = bitWidth(dictionary.entries.length - 1);
    this.#sink.ensure(1);
    this.#sink.bytes[this.#sink.length++] = width;
    encodeHybrid(this.#sink, dictionary.indices, { from, to, width });
  }

  #dictionaryPage(pages: Pages, values: Values, { entries }: Dictionary): number {
    this.#sink.clear();
    const selected = { ...values, slots: entries, count: entries.length };
    encodePlain(this.#sink, selected, 0, entries.length);
    return pages.add(PAGE_TYPE.DICTIONARY, this.#sink.view(), {
      count: entries.length,
      encoding: ENCODING.PLAIN,
    });
  }
}

function bloomOf(
  leaf: Leaf,
  values: Values,
  { dictionary, layout }: { readonly dictionary: Dictionary | null; readonly layout: FileLayout },
): Pick<Chunk, 'bloom'> {
  const falsePositives = layout.bloomFilters.get(leaf.fieldId);
  if (falsePositives === undefined || values.kind === 'booleans') return {};
  const options = { falsePositives, maxBytes: layout.bloomMaxBytes };
  return { bloom: bloomFilter(values, dictionary?.entries ?? null, options) };
}

/**
 * Where the page that starts at entry `from` ends: at a row's border, near the size aimed at, small enough to skip by,
 * large enough for the compressor. `taken` values were in earlier pages.
 */
function pageEnd(
  shredded: Shredded,
  values: Values,
  {
    from,
    taken,
    layout,
  }: { readonly from: number; readonly taken: number; readonly layout: FileLayout },
): number {
  const { count, repetition } = shredded;
  const toRow = (end: number) => {
    if (repetition !== null) while (end < count && repetition[end] !== 0) end++;
    return Math.min(end, count);
  };
  let entries = layout.pageRows;
  const until = Math.min(values.count, taken + entries);
  const size = plainSize(values, taken, until);
  if (size > layout.pageBytes) {
    entries = Math.max(1, Math.floor(((until - taken) * layout.pageBytes) / size));
  }
  return toRow(from + entries);
}

function countValues(leaf: Leaf, { definition }: Shredded, from: number, to: number): number {
  if (definition === null) return to - from;
  let present = 0;
  for (let i = from; i < to; i++) if (definition[i] === leaf.maxDefinition) present++;
  return present;
}

const STORED: Codec = { number: CODEC.UNCOMPRESSED, compress: undefined };

interface PageContent {
  readonly count: number;
  readonly encoding: number;
}

/** The pages of a chunk. The first decides whether the chunk is compressed: a chunk has one codec. */
class Pages {
  count = 0;
  readonly header: ByteSink;
  readonly #parts: Uint8Array[] = [];
  readonly #wanted: Codec;
  #codec: number | undefined;
  #compressed = 0;
  #uncompressed = 0;

  /** `header` is where page headers are made. */
  constructor(codec: Codec, header: ByteSink) {
    this.header = header;
    this.#wanted = codec;
  }

  /** Copies `body`, which may be reused afterwards. Returns the page's stored size. A dictionary goes first. */
  add(type: number, body: Uint8Array, { count, encoding }: PageContent): number {
    const stored = this.#store(body);
    const { header } = this;
    header.clear();
    writePageHeader(header, {
      type,
      uncompressedSize: body.length,
      storedSize: stored.length,
      crc: crc32(stored) | 0,
      count,
      encoding,
    });
    const page = new Uint8Array(header.length + stored.length);
    page.set(header.view());
    page.set(stored, header.length);
    if (type === PAGE_TYPE.DICTIONARY) this.#parts.unshift(page);
    else this.#parts.push(page);
    this.count++;
    this.#compressed += page.length;
    this.#uncompressed += header.length + body.length;
    return page.length;
  }

  #store(body: Uint8Array): Uint8Array {
    const { compress, number } = this.#wanted;
    if (compress === undefined || this.#codec === CODEC.UNCOMPRESSED) return body;
    if (this.#codec === undefined && body.length < LEAST_COMPRESSED) {
      this.#codec = CODEC.UNCOMPRESSED;
      return body;
    }
    const compressed = compress(body);
    if (this.#codec === undefined) {
      const worth = compressed.length < body.length * WORTH_COMPRESSING;
      this.#codec = worth ? number : CODEC.UNCOMPRESSED;
      if (!worth) return body;
    }
    return compressed;
  }

  result() {
    return {
      parts: this.#parts,
      codec: this.#codec ?? CODEC.UNCOMPRESSED,
      compressedSize: this.#compressed,
      uncompressedSize: this.#uncompressed,
    };
  }
}
