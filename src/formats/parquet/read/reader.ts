// Parquet files into table columns: the inverse of ../writer.ts, also for files of other writers as far as Iceberg's
// types go. Columns are found by field id at every depth; what the file lacks stays null. Rows never become objects:
// pages are decoded straight into column buffers, a row group at a time.
// Not for: files without field ids and without a name mapping, columns left to the partition, DELTA and
// BYTE_STREAM_SPLIT encodings, INT96: refused with `unsupported` before anything is read wrong; whoever reads files here
// can leave such a file alone.
import { type ColumnMetaData, type FileMetaData, parquetMetadata } from 'hyparquet';
import { assert } from '../../../base/assert.ts';
import { FloeError } from '../../../base/error.ts';
import type { Column } from '../../arrow/column.ts';
import { ListColumn, MapColumn, StructColumn } from '../../arrow/nested-columns.ts';
import type { TableColumns } from '../../arrow/table-columns.ts';
import { type FileProjection, WHOLE_FILE } from '../../iceberg/projection.ts';
import type { NestedField, StructType } from '../../iceberg/types.ts';
import { chunkRange, type DataPage, readChunk } from './chunk-reader.ts';
import { leafSink } from './leaf-values.ts';
import { type FileNode, fileTree, listNodes, mapNodes } from './tree.ts';

/** Footers past this (bytes) are refused: no table's file has one. */
const MAX_FOOTER_BYTES = 256 * 2 ** 20;

const TAIL_BYTES = 8;

const corrupt = (what: string, cause?: unknown) =>
  new FloeError('corrupt', `Parquet: ${what}`, { cause });
const unsupported = (what: string) => new FloeError('unsupported', `Parquet: ${what}`);

export interface RowGroupInfo {
  readonly rowCount: number;
  /** Before compression. */
  readonly byteSize: number;
}

/** A file in memory. */
export class ParquetReader {
  readonly #bytes: Uint8Array;
  readonly #metadata: FileMetaData;
  readonly #columns: readonly FileNode[];
  readonly #projection: FileProjection;
  readonly rowGroups: readonly RowGroupInfo[];

  /** @throws FloeError `corrupt`, `unsupported` (encrypted). */
  constructor(bytes: Uint8Array, projection: FileProjection = WHOLE_FILE) {
    this.#bytes = bytes;
    this.#projection = projection;
    this.#metadata = readFooter(bytes);
    this.#columns = fileTree(this.#metadata.schema, projection.mapping);
    this.rowGroups = this.#metadata.row_groups.map((group) => ({
      rowCount: Number(group.num_rows),
      byteSize: Number(group.total_byte_size),
    }));
  }

  get rowCount(): number {
    return this.rowGroups.reduce((sum, group) => sum + group.rowCount, 0);
  }

  /** Where the chunks of top-level columns lie that a read of them needs, ends exclusive. @throws FloeError `corrupt`. */
  chunkRanges(
    index: number,
    wanted: (fieldId: number) => boolean,
  ): { readonly start: number; readonly end: number }[] {
    const group = this.#metadata.row_groups[index];
    assert(group !== undefined, 'a row group of the file');
    return this.#columns.flatMap((node, at) => {
      if (node.fieldId === undefined || !wanted(node.fieldId)) return [];
      const leaves = group.columns.slice(node.firstLeaf, this.#columns[at + 1]?.firstLeaf);
      return leaves.flatMap(({ meta_data: chunk }) =>
        chunk === undefined ? [] : [chunkRange(chunk, this.#bytes.length)],
      );
    });
  }

  /** Whether a top-level column of this id is in the file. */
  has(fieldId: number): boolean {
    return this.#columns.some((node) => node.fieldId === fieldId);
  }

  /**
   * Appends the rows of one row group. Columns that the file doesn't have lag behind: their rows are null unless the
   * caller fills them. After an error the columns are to be cleared.
   * @param wanted false for top-level fields that are not to be read: they lag too
   * @throws FloeError `corrupt`, `unsupported`.
   */
  readRowGroup(
    index: number,
    columns: TableColumns,
    wanted: (fieldId: number) => boolean = () => true,
  ): void {
    const group = this.#metadata.row_groups[index];
    assert(group !== undefined, 'a row group of the file');
    if (!this.#columns.some((node) => node.fieldId !== undefined))
      throw unsupported('a file without field ids');
    columns.align();
    const rows = this.rowGroups[index]!.rowCount;
    const reading = new GroupReading(this.#bytes, (leaf) => {
      const chunk = group.columns[leaf]?.meta_data;
      if (chunk === undefined) throw unsupported('a column chunk without metadata here');
      return chunk;
    });
    columns.schema.fields.forEach((field, at) => {
      if (!wanted(field.id)) return;
      const node = this.#columns.find((one) => one.fieldId === field.id);
      if (node === undefined) {
        checkAbsent(field);
        if ((this.#projection.partition.get(field.id) ?? null) !== null)
          throw unsupported(`column "${field.name}" is left to the partition`);
        return;
      }
      const column = columns.columns[at]!;
      const before = column.length;
      reading.read(column, node, { required: field.required, definition: 0, repetition: 0 });
      if (column.length - before !== rows)
        throw corrupt(`column "${field.name}" has ${column.length - before} of ${rows} rows`);
    });
    columns.rowCount += rows;
  }
}

function readFooter(bytes: Uint8Array): FileMetaData {
  const { length } = bytes;
  const view = new DataView(bytes.buffer, bytes.byteOffset, length);
  if (length < 12 || view.getUint32(length - 4, true) !== 0x31524150)
    throw corrupt('no magic number at the end');
  const size = view.getUint32(length - TAIL_BYTES, true);
  if (size > length - TAIL_BYTES || size > MAX_FOOTER_BYTES) throw corrupt(`a footer of ${size} B`);
  const footer = bytes.slice(length - TAIL_BYTES - size);
  try {
    return parquetMetadata(footer.buffer as ArrayBuffer, { geoparquet: false });
  } catch (caught) {
    throw corrupt('an unreadable footer', caught);
  }
}

/** A column that the file doesn't have reads as null; where that isn't its value the file is left alone. */
function checkAbsent(field: NestedField): void {
  if (field.required || (field['initial-default'] ?? null) !== null)
    throw unsupported(`column "${field.name}" is missing and has a default or is required`);
}

/** Levels that a slot's parent has, and whether the schema lets it be null. */
interface Place {
  readonly required: boolean;
  /** Entries from this definition level on are slots. */
  readonly definition: number;
  /** Entries up to this repetition level begin a slot. */
  readonly repetition: number;
}

const NO_VALUES = new Uint8Array(0);

/** As of a page: one array a kind, or one level of all entries and none that repeats. */
type Levels = Pick<DataPage, 'count' | 'definition' | 'level' | 'repetition'>;

/** One row group being read. */
class GroupReading {
  readonly #bytes: Uint8Array;
  readonly #chunk: (leaf: number) => ColumnMetaData;
  /** Levels of leaves below structs, lists and maps, which their parents are made from. */
  readonly #levels = new Map<number, Levels>();

  constructor(bytes: Uint8Array, chunk: (leaf: number) => ColumnMetaData) {
    this.#bytes = bytes;
    this.#chunk = chunk;
  }

  read(column: Column, node: FileNode, place: Place): void {
    const repeated =
      node.element.repetition_type === 'REPEATED' && node.repetition > place.repetition;
    if (repeated) throw unsupported(`column "${node.element.name}" is repeated outside a list`);
    if (column instanceof StructColumn) this.#struct(column, node, place);
    else if (column instanceof ListColumn) this.#list(column, node, place);
    else if (column instanceof MapColumn) this.#map(column, node, place);
    else this.#leaf(column, node, place);
  }

  #leaf(column: Column, node: FileNode, place: Place): void {
    if (node.children.length > 0)
      throw unsupported(`column "${node.element.name}" is a group, not a ${String(column.type)}`);
    const sink = leafSink(column, node.element);
    // Top-level leaves are nobody's guide.
    const kept: DataPage[] | undefined =
      node.definition > 1 || node.repetition > 0 ? [] : undefined;
    const fromNulls = column.nullCount;
    readChunk(this.#bytes, this.#chunk(node.firstLeaf), node, {
      dictionary: ({ values, count }) => sink.dictionary(values, count),
      data: (page) => {
        kept?.push({ ...page, values: NO_VALUES });
        const { slots, valid, present } = slotsOf(page, node, place);
        if (present === 0) {
          column.padTo(column.length + slots);
          return;
        }
        const flags = place.required && node.element.repetition_type === 'REQUIRED' ? null : valid;
        const row = column.extend(slots, flags);
        sink.page(page.encoding, page.values, { row, slots, valid, present });
      },
    });
    if (kept !== undefined) this.#levels.set(node.firstLeaf, joined(kept));
    checkRequired(place, column.nullCount > fromNulls, node);
  }

  /** The levels of the first leaf below `node`, read for themselves when that leaf is no column of the table. */
  #guide(node: FileNode): Levels {
    let leaf = node;
    while (leaf.children.length > 0) leaf = leaf.children[0]!;
    const known = this.#levels.get(leaf.firstLeaf);
    if (known !== undefined) return known;
    const pages: DataPage[] = [];
    readChunk(this.#bytes, this.#chunk(leaf.firstLeaf), leaf, {
      dictionary: () => {},
      data: (page) => pages.push({ ...page, values: NO_VALUES }),
    });
    const levels = joined(pages);
    this.#levels.set(leaf.firstLeaf, levels);
    return levels;
  }

  /** A struct's children have a slot for each of its own, null or not. */
  #struct(column: StructColumn, node: FileNode, place: Place): void {
    const { fields } = column.type as StructType;
    const found = fields.map((field) => node.children.find((one) => one.fieldId === field.id));
    fields.forEach((field, at) => {
      const child = found[at];
      if (child === undefined) checkAbsent(field);
      else this.read(column.children[at]!, child, { ...place, required: field.required });
    });
    this.#extend(column, node, place);
  }

  #list(column: ListColumn, node: FileNode, place: Place): void {
    const nodes = listNodes(node);
    if (nodes === undefined) throw unsupported(`column "${node.element.name}" is no list`);
    const { repeated, element } = nodes;
    const before = column.element.length;
    const required = (column.type as ListColumn['type'] & { 'element-required': boolean })[
      'element-required'
    ];
    this.read(column.element, element, { required, ...insideOf(repeated) });
    this.#offsets(column, { node, repeated, before }, place);
  }

  #map(column: MapColumn, node: FileNode, place: Place): void {
    const nodes = mapNodes(node);
    if (nodes === undefined) throw unsupported(`column "${node.element.name}" is no map`);
    const { repeated, key, value } = nodes;
    const before = column.key.length;
    const inside = insideOf(repeated);
    const required = (column.type as MapColumn['type'] & { 'value-required': boolean })[
      'value-required'
    ];
    this.read(column.key, key, { required: true, ...inside });
    this.read(column.value, value, { required, ...inside });
    this.#offsets(column, { node, repeated, before }, place);
  }

  /** Counts a nested column's own slots, null or not. */
  #extend(column: Column, node: FileNode, place: Place): number {
    const { slots, valid } = slotsOf(this.#guide(node), node, place);
    const flags = place.required && node.element.repetition_type === 'REQUIRED' ? null : valid;
    const nulls = column.nullCount;
    const row = column.extend(slots, flags);
    checkRequired(place, column.nullCount > nulls, node);
    return row;
  }

  #offsets(
    column: ListColumn | MapColumn,
    { node, repeated, before }: { node: FileNode; repeated: FileNode; before: number },
    place: Place,
  ): void {
    const row = this.#extend(column, node, place);
    const { count, definition, level: all, repetition } = this.#guide(node);
    const { offsets } = column;
    if (definition === null && all < repeated.definition) {
      // Lists without an element, all of them.
      offsets.fill(before, row + 1, column.length + 1);
      return;
    }
    let slot = row - 1;
    let total = before;
    for (let i = 0; i < count; i++) {
      const level = definition === null ? all : definition[i]!;
      const repeats = repetition === null ? 0 : repetition[i]!;
      if (repeats <= place.repetition && level >= place.definition) slot++;
      if (level >= repeated.definition && repeats <= repeated.repetition) total++;
      if (slot >= row) offsets[slot + 1] = total;
    }
  }
}

const insideOf = ({ definition, repetition }: FileNode) => ({ definition, repetition });

function checkRequired({ required }: Place, nulls: boolean, node: FileNode): void {
  if (required && nulls) throw corrupt(`required column "${node.element.name}" has nulls`);
}

interface Slots {
  readonly slots: number;
  readonly valid: Uint8Array | null;
  readonly present: number;
}

/** Which entries are slots of a node, and which of those have a value. */
function slotsOf(levels: Levels, node: FileNode, place: Place): Slots {
  const { count, definition, level, repetition } = levels;
  const isLeaf = node.children.length === 0;
  const allBegin = repetition === null || (isLeaf && node.repetition <= place.repetition);
  if (definition === null) {
    if (level < place.definition) return { slots: 0, valid: null, present: 0 };
    if (allBegin && level >= node.definition) return { slots: count, valid: null, present: count };
    if (allBegin) return { slots: count, valid: new Uint8Array(count), present: 0 };
  } else if (allBegin && isLeaf && node.definition === 1 && place.definition === 0) {
    // Of a column at the top, the levels are the flags.
    let present = 0;
    for (let i = 0; i < count; i++) present += definition[i]!;
    return { slots: count, valid: present === count ? null : definition, present };
  }
  const begins = (i: number) => allBegin || repetition[i]! <= place.repetition;
  const valid = new Uint8Array(count);
  let slots = 0;
  let present = 0;
  for (let i = 0; i < count; i++) {
    const reached = definition === null ? level : definition[i]!;
    if (reached < place.definition || !begins(i)) continue;
    const there = reached >= node.definition ? 1 : 0;
    valid[slots++] = there;
    present += there;
  }
  return { slots, valid: present === slots ? null : valid.subarray(0, slots), present };
}

/** The levels of all pages of a chunk, one after the other. */
function joined(pages: readonly DataPage[]): Levels {
  if (pages.length === 1) return pages[0]!;
  const count = pages.reduce((sum, page) => sum + page.count, 0);
  const join = (of: (page: DataPage) => Uint8Array | null, level: (page: DataPage) => number) => {
    const all = new Uint8Array(count);
    let at = 0;
    for (const page of pages) {
      const levels = of(page);
      if (levels === null) all.fill(level(page), at, at + page.count);
      else all.set(levels, at);
      at += page.count;
    }
    return all;
  };
  const [first] = pages;
  const uniform = pages.every(
    ({ definition, level }) => definition === null && level === first?.level,
  );
  const repeats = pages.some(({ repetition }) => repetition !== null);
  return {
    count,
    definition: uniform
      ? null
      : join(
          (page) => page.definition,
          (page) => page.level,
        ),
    level: first?.level ?? 0,
    repetition: repeats
      ? join(
          (page) => page.repetition,
          () => 0,
        )
      : null,
  };
}
