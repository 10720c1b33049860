// Parquet files from table columns: row group after row group, then the footer and what a manifest wants to know.
// Pages are encoded straight from the column buffers (docs/decisions tells why not through WebAssembly).
// Not for: where the bytes go (the caller puts `parts` into the object store).
import { assert } from '../../base/assert.ts';
import type { TableColumns } from '../arrow/table-columns.ts';
import { parseTransform } from '../iceberg/transform.ts';
import type { FileMetrics, Schema, SortOrder } from '../iceberg/types.ts';
import { ChunkEncoder } from './chunk.ts';
import { type PlacedChunk, type RowGroup, type SortingColumn, serializeFooter } from './footer.ts';
import { DEFAULT_LAYOUT, type FileLayout } from './layout.ts';
import { type FileSchema, fileSchema, type Leaf } from './leaves.ts';
import { metricsOf } from './metrics.ts';
import {
  comparatorOf,
  emptyStatistics,
  type LeafStatistics,
  mergeStatistics,
} from './statistics.ts';

const MAGIC = new TextEncoder().encode('PAR1');

export interface ParquetOptions {
  /** The committed schema: field ids go into the file. */
  readonly schema: Schema;
  /** Compression, sizes, bloom filters, metrics. Chunks that don't shrink are stored as they are. */
  readonly layout?: FileLayout;
  /** The order that the rows of each row group are in, when they are: goes into the footer. */
  readonly sortedBy?: SortOrder;
  /** Footer key-value pairs. */
  readonly keyValues?: Readonly<Record<string, string>>;
  readonly createdBy?: string;
}

/** A finished file. */
export interface ParquetFile {
  /** The file's bytes, in order. */
  readonly parts: readonly Uint8Array[];
  readonly byteLength: number;
  readonly recordCount: number;
  /** Starts of the row groups. */
  readonly splitOffsets: readonly number[];
  readonly metrics: FileMetrics;
}

export class ParquetWriter {
  readonly #options: ParquetOptions;
  readonly #layout: FileLayout;
  readonly #file: FileSchema;
  readonly #encoder: ChunkEncoder;
  readonly #statistics: LeafStatistics[];
  readonly #columnSizes: number[];
  readonly #rowGroups: RowGroup[] = [];
  readonly #parts: Uint8Array[] = [MAGIC];
  #offset = MAGIC.length;

  /** `encoder` may be shared by writers that don't overlap in time: it holds buffers and the compressor. */
  constructor(options: ParquetOptions, encoder = createChunkEncoder()) {
    this.#options = options;
    this.#layout = options.layout ?? DEFAULT_LAYOUT;
    this.#file = fileSchema(options.schema);
    this.#encoder = encoder;
    this.#statistics = this.#file.leaves.map(emptyStatistics);
    this.#columnSizes = this.#file.leaves.map(() => 0);
  }

  /** Bytes so far, without the footer. */
  get byteLength(): number {
    return this.#offset;
  }

  /** Writes all rows of `columns` as one row group; nothing when there are none. The columns may be reused after. */
  writeRowGroup(columns: TableColumns): void {
    assert(
      columns.schema['schema-id'] === this.#options.schema['schema-id'],
      'T8: rows and file have one schema',
    );
    if (columns.rowCount === 0) return;
    columns.align();
    const { chunks, parts } = this.#encoder.encodeAll(columns, this.#file.leaves, this.#layout);
    for (const part of parts) this.#parts.push(part);
    const placed = chunks.map((chunk, i) => {
      const offset = this.#offset;
      const { compressedSize } = chunk.pages;
      this.#offset += compressedSize;
      this.#columnSizes[i]! += compressedSize;
      mergeStatistics(this.#statistics[i]!, chunk.statistics, comparatorOf(chunk.leaf));
      return { chunk, offset };
    });
    this.#rowGroups.push({ chunks: placed.map(this.#placeBloom), rowCount: columns.rowCount });
  }

  /** Bloom filters follow their row group. */
  readonly #placeBloom = (placed: PlacedChunk): PlacedChunk => {
    const { bloom } = placed.chunk;
    if (bloom === undefined) return placed;
    const bloomOffset = this.#offset;
    this.#parts.push(bloom);
    this.#offset += bloom.length;
    return { ...placed, bloomOffset };
  };

  /** Ends the file. The writer can't be used after it. */
  finish(): ParquetFile {
    const { keyValues = {}, createdBy = 'floe', sortedBy } = this.#options;
    const footer = serializeFooter({
      elements: this.#file.elements,
      rowGroups: this.#rowGroups,
      sorting: sortedBy === undefined ? [] : sortingColumns(sortedBy, this.#file.leaves),
      keyValues,
      createdBy,
    });
    const tail = new Uint8Array(8);
    new DataView(tail.buffer).setUint32(0, footer.length, true);
    tail.set(MAGIC, 4);
    this.#parts.push(footer, tail);
    return {
      parts: this.#parts,
      byteLength: this.#offset + footer.length + tail.length,
      recordCount: this.#rowGroups.reduce((total, group) => total + group.rowCount, 0),
      splitOffsets: this.#rowGroups.map((group) => group.chunks[0]!.offset),
      metrics: metricsOf(
        this.#file.leaves.map((leaf, i) => ({
          leaf,
          statistics: this.#statistics[i]!,
          size: this.#columnSizes[i]!,
        })),
        this.#layout.metrics,
      ),
    };
  }
}

/** The reusable part of a writer: compressors, page buffers, dictionary tables. One per thread is enough. */
export function createChunkEncoder() {
  return new ChunkEncoder();
}

/** The leading identity fields of a sort order: what the footer can say. */
function sortingColumns(order: SortOrder, leaves: readonly Leaf[]): SortingColumn[] {
  const sorting: SortingColumn[] = [];
  for (const field of order.fields) {
    const column = leaves.findIndex((leaf) => leaf.fieldId === field['source-id']);
    if (column < 0 || parseTransform(field.transform).name !== 'identity') break;
    sorting.push({
      column,
      descending: field.direction === 'desc',
      nullsFirst: field['null-order'] === 'nulls-first',
    });
  }
  return sorting;
}
