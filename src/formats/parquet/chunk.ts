// One column chunk: levels and values of a leaf as pages, a dictionary before them where it pays, compressed where
// it pays, with the chunk's statistics.
// Data page v1, PLAIN and RLE_DICTIONARY only: what every engine reads (Redshift refuses DELTA encodings, older
// vectorised readers too).
import type { TableColumns } from '../arrow/table-columns.ts';
import { bloomFilter } from './bloom.ts';
import { ByteSink } from './byte-sink.ts';
import { type Codec, createCodec } from './codecs.ts';
import { type Dictionary, DictionaryBuilder } from './dictionary.ts';
import { bitWidth, encodeHybrid } from './hybrid.ts';
import type { FileLayout } from './layout.ts';
import type { Leaf } from './leaves.ts';
import { type Page, PageWriter, STORED, type StoredPages } from './pages.ts';
import { type Shredded, Shredder, ShredScratch } from './shred.ts';
import { extremesOf, type LeafStatistics } from './statistics.ts';
import { ENCODING, PAGE_TYPE } from './thrift.ts';
import { encodePlain, plainSize, type Values, valuesOf } from './values.ts';

export interface Chunk {
  readonly leaf: Leaf;
  readonly pages: StoredPages;
  /** Header and bitset of the bloom filter, where the layout asks for one. */
  readonly bloom?: Uint8Array;
  readonly statistics: LeafStatistics;
}

/** A row group, encoded. */
export interface EncodedRows {
  /** In the order of the file, without gaps. */
  readonly chunks: readonly Chunk[];
  /** Their bytes. */
  readonly parts: readonly Uint8Array[];
}

/** What a chunk is made from. */
interface Content {
  readonly leaf: Leaf;
  readonly shredded: Shredded;
  readonly values: Values;
  readonly dictionary: Dictionary | null;
}

interface Target {
  readonly layout: FileLayout;
  readonly codec: Codec;
}

/** Encodes chunks one after the other, reusing its buffers. Not for concurrent use. */
export class ChunkEncoder {
  readonly #sink = new ByteSink();
  readonly #pages = new PageWriter();
  readonly #scratch = new ShredScratch();
  readonly #dictionaries = new DictionaryBuilder();
  readonly #codecs = new Map<string, Codec>();

  /** Of aligned columns all leaves, in the order of the file. */
  encodeAll(columns: TableColumns, leaves: readonly Leaf[], layout: FileLayout): EncodedRows {
    const shredder = new Shredder(columns, this.#scratch);
    const target = { layout, codec: this.#codec(layout) };
    this.#pages.clear();
    const chunks = leaves.map((leaf) => this.#encode(leaf, shredder.shred(leaf), target));
    return { chunks, parts: this.#pages.take() };
  }

  #encode(leaf: Leaf, shredded: Shredded, target: Target): Chunk {
    const { layout } = target;
    const values = valuesOf(leaf, shredded);
    const dictionary =
      values.kind === 'booleans' ? null : this.#dictionaries.build(values, layout.dictionaryBytes);
    const pages = this.#writePages({ leaf, shredded, values, dictionary }, target);
    const { min, max, nanCount } = extremesOf(leaf, values, dictionary?.entries ?? null);
    const { count } = shredded;
    return {
      leaf,
      pages,
      ...bloomOf(leaf, values, { dictionary, layout }),
      statistics: { valueCount: count, nullCount: count - shredded.values, nanCount, min, max },
    };
  }

  #writePages(content: Content, { layout, codec }: Target): StoredPages {
    const { leaf, shredded, values, dictionary } = content;
    const { count } = shredded;
    const sink = this.#sink;
    sink.clear();
    const first = dictionary === null ? undefined : this.#dictionaryPage(values, dictionary);
    let taken = 0;
    for (let from = 0; from < count; ) {
      const to = pageEnd(shredded, values, { from, taken, layout });
      const present = to - from === count ? values.count : countValues(leaf, shredded, from, to);
      if (from > 0) sink.clear();
      const start = sink.length;
      this.#levels(leaf, shredded, from, to);
      this.#values(values, dictionary, taken, taken + present);
      const page = {
        type: PAGE_TYPE.DATA,
        body: sink.view().subarray(start),
        count: to - from,
        encoding: dictionary === null ? ENCODING.PLAIN : ENCODING.RLE_DICTIONARY,
      };
      // Levels alone are runs already.
      if (from === 0) this.#pages.begin(page, first, values.count === 0 ? STORED : codec);
      else this.#pages.add(page);
      taken += present;
      from = to;
    }
    return this.#pages.end();
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

  #dictionaryPage(values: Values, { entries }: Dictionary): Page {
    const count = entries.length;
    encodePlain(this.#sink, { ...values, slots: entries, count }, 0, count);
    return { type: PAGE_TYPE.DICTIONARY, body: this.#sink.view(), count, encoding: ENCODING.PLAIN };
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

function countValues(leaf: Leaf, shredded: Shredded, from: number, to: number): number {
  const { definition } = shredded;
  if (definition === null) return to - from;
  if (shredded.values === 0) return 0;
  let present = 0;
  for (let i = from; i < to; i++) if (definition[i] === leaf.maxDefinition) present++;
  return present;
}
