// Makes whole the rows that were staged without some cells: reads those rows and, of the rows before them, only the
// columns that are missing and only the row groups that hold them; writes files of the commit's own, clustered and
// sorted as a worker's are. A file is looked at once, however many rows need it.
// Not for: which cells those are (fills.ts).
import { assert } from '../../base/assert.ts';
import { isFloeError } from '../../base/error.ts';
import { partitionRows } from '../../formats/arrow/partition.ts';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import { currentSchema } from '../../formats/iceberg/history.ts';
import { projectionOf } from '../../formats/iceberg/projection.ts';
import type { DataFile, Schema, TableMetadata } from '../../formats/iceberg/types.ts';
import { SparseParquet } from '../../formats/parquet/read/sparse-file.ts';
import { fileTable } from '../catalog-table.ts';
import { FileBuilder } from '../files.ts';
import { type CellPlaces, type Fills, NO_CELL, OWN_CELL } from './fills.ts';

/** Rows that were read and aren't needed go when the columns have grown by so many bytes. */
const COMPACT_BYTES = 64 * 2 ** 20;

export interface FillRequest {
  readonly fills: Fills;
  readonly metadata: TableMetadata;
  /** `<prefix>-<n>.parquet`. */
  readonly prefix: string;
  /** By number: staged files of the commit and live files of the table. */
  readonly fileOf: (id: number) => DataFile;
  readonly readRange: (uri: string, start: number, end: number) => Promise<Uint8Array>;
}

export interface FilledFile {
  readonly file: DataFile;
  readonly bytes: Uint8Array;
  /** For each row of the file its place among the fills. */
  readonly rows: Int32Array;
}

export interface FilledRows {
  readonly files: readonly FilledFile[];
  /** Cells that stayed as they came: the row before lies in a file that can't be read exactly. */
  readonly unreadable: number;
}

/** @throws FloeError as reads do, `corrupt`. */
export async function fillRows(request: FillRequest): Promise<FilledRows> {
  const { metadata, prefix } = request;
  const table = fileTable(metadata);
  const { columns, unreadable } = await wholeRows(request);
  const bodies = new Map<string, Uint8Array>();
  const builder = new FileBuilder(async (path, parts) => {
    bodies.set(path, new Uint8Array(Buffer.concat(parts)));
  });
  const { groups } = partitionRows(columns, table.spec);
  const written = await builder.writeAll({ columns, table, prefix, groups });
  const files = written.map(({ file, rows }) => ({
    file,
    bytes: bodies.get(file.filePath)!,
    rows: rows ?? Int32Array.from({ length: columns.rowCount }, (_, row) => row),
  }));
  return { files, unreadable };
}

/** The rows in the order of the fills. */
async function wholeRows(request: FillRequest) {
  const { fills, metadata } = request;
  const schema = currentSchema(metadata);
  const reading = new RowReading(schema, request);
  for (const [file, wanted] of wantedOf(fills)) await reading.take(file, wanted);
  const read = reading.finish();
  const own = Int32Array.from(fills.rows, (_, n) =>
    reading.rowOf(fills.files[n]!, fills.positions[n]!),
  );
  let unreadable = 0;
  const cellOf = (places: CellPlaces, n: number, required: boolean): number => {
    const file = places.files[n]!;
    if (file === OWN_CELL) return own[n]!;
    // Nothing else fits a column that must have a value: what came stays.
    if (file === NO_CELL) return required ? own[n]! : reading.nullRow;
    const row = reading.rowOf(file, places.positions[n]!);
    if (row !== UNREADABLE) return row;
    unreadable += 1;
    return own[n]!;
  };
  const columns = schema.fields.map(({ id, required }, at) => {
    const places = fills.cells.get(id);
    const rows = places === undefined ? own : own.map((_, n) => cellOf(places, n, required));
    return read.columns[at]!.gather(rows);
  });
  const whole = new TableColumns(schema, columns);
  whole.rowCount = own.length;
  return { columns: whole, unreadable };
}

interface Wanted {
  readonly positions: Set<number>;
  /** Top-level columns; `all` where the rows themselves are wanted. */
  readonly fields: Set<number>;
  all: boolean;
}

/** What is to be read, by file. */
function wantedOf(fills: Fills): Map<number, Wanted> {
  const byFile = new Map<number, Wanted>();
  const of = (file: number): Wanted => {
    const known = byFile.get(file);
    if (known !== undefined) return known;
    const wanted = { positions: new Set<number>(), fields: new Set<number>(), all: false };
    byFile.set(file, wanted);
    return wanted;
  };
  for (const [n, file] of fills.files.entries()) {
    const wanted = of(file);
    wanted.all = true;
    wanted.positions.add(fills.positions[n]!);
  }
  for (const [fieldId, { files, positions }] of fills.cells) {
    for (const [n, file] of files.entries()) {
      if (file === OWN_CELL || file === NO_CELL) continue;
      const wanted = of(file);
      wanted.fields.add(fieldId);
      wanted.positions.add(positions[n]!);
    }
  }
  return byFile;
}

const UNREADABLE = -1;

/** Rows of several files brought together in one set of columns. */
class RowReading {
  readonly #request: FillRequest;
  #columns: TableColumns;
  /** Rows of `#columns` that are needed, by their number here. */
  #kept: number[] = [];
  readonly #numbers = new Map<number, Map<number, number>>();
  #bytesAtStart = 0;
  /** A row whose cells are all null. */
  nullRow = 0;

  constructor(schema: Schema, request: FillRequest) {
    this.#request = request;
    this.#columns = new TableColumns(schema);
  }

  async take(file: number, wanted: Wanted): Promise<void> {
    const { fileOf, metadata, readRange } = this.#request;
    const dataFile = fileOf(file);
    const columns = this.#columns;
    const { rowCount } = columns;
    const kept = this.#kept.length;
    try {
      const read = (start: number, end: number) => readRange(dataFile.filePath, start, end);
      const projection = projectionOf(metadata, dataFile);
      const source = await SparseParquet.open(dataFile.fileSizeInBytes, read, projection);
      await this.#rows(file, wanted, source);
    } catch (caught) {
      // Encodings and columns left out that the reader leaves alone. A staged file is our own.
      if (wanted.all || !isFloeError(caught, 'unsupported')) throw caught;
      this.#numbers.delete(file);
      this.#columns.rowCount = rowCount;
      this.#columns.rollback();
      this.#kept.length = kept;
      return;
    }
    if (this.#columns.byteSize() - this.#bytesAtStart > COMPACT_BYTES) this.#compact();
  }

  async #rows(file: number, wanted: Wanted, source: SparseParquet): Promise<void> {
    const columns = this.#columns;
    const positions = [...wanted.positions].toSorted((a, b) => a - b);
    const numbers = new Map<number, number>();
    this.#numbers.set(file, numbers);
    const isWanted = (fieldId: number) => wanted.all || wanted.fields.has(fieldId);
    let first = 0;
    let next = 0;
    for (const [group, { rowCount }] of source.reader.rowGroups.entries()) {
      const from = next;
      while (next < positions.length && positions[next]! < first + rowCount) next += 1;
      if (next > from) {
        await source.fetch(group, isWanted);
        const at = columns.rowCount;
        source.reader.readRowGroup(group, columns, isWanted);
        columns.align();
        for (const position of positions.slice(from, next))
          numbers.set(position, this.#kept.push(at + position - first) - 1);
      }
      first += rowCount;
    }
    assert(next === positions.length, 'K3: the index names rows that their file has');
  }

  #compact(): void {
    const kept = Int32Array.from(this.#kept);
    this.#columns = this.#columns.gather(kept);
    this.#kept = Array.from(kept, (_, n) => n);
    this.#bytesAtStart = this.#columns.byteSize();
  }

  /** The row that was at a position of a file. */
  rowOf(file: number, position: number): number {
    const number = this.#numbers.get(file)?.get(position);
    return number === undefined ? UNREADABLE : this.#kept[number]!;
  }

  finish(): TableColumns {
    const columns = this.#columns;
    columns.align();
    this.nullRow = columns.rowCount;
    columns.endRow();
    columns.align();
    return columns;
  }
}
