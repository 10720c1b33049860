// Rewrites a group of data files: reads them row group by row group with their deletes applied, sorts, writes them
// through the writer of ingestion, and notes where each row went. What is in memory is bounded by the task's
// `memoryBytes` of columns, one input file and the file being written.
// Not for: committing (derive.ts), choosing (choose.ts).
import { FloeError, isFloeError } from '../../base/error.ts';
import { sortRows } from '../../formats/arrow/sort.ts';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import { projectionOf } from '../../formats/iceberg/projection.ts';
import type { ScanFile } from '../../formats/iceberg/scan.ts';
import type { FileReader } from '../../formats/iceberg/table-files.ts';
import { parseTransform } from '../../formats/iceberg/transform.ts';
import type { DataFile, Schema, SortOrder } from '../../formats/iceberg/types.ts';
import { ParquetReader } from '../../formats/parquet/read/reader.ts';
import { createChunkEncoder, ParquetWriter } from '../../formats/parquet/writer.ts';
import { DeleteFiles, type EqualityKeys } from './deletes.ts';
import { isLineage, LineageReader, withLineage, withoutReserved } from './lineage.ts';
import type { RewriteResult, RewriteTask } from './task.ts';

/** Files of the warehouse. */
export interface FileStore extends FileReader {
  write(uri: string, parts: readonly Uint8Array[]): Promise<void>;
}

/** Where the rows of one input went: their number among all rows written, −1 for a deleted one. */
export type RowPlaces = Int32Array;

export interface Rewritten {
  readonly result: Omit<RewriteResult, 'cpuSeconds'>;
  /** In the order of the group's inputs. */
  readonly places: readonly RowPlaces[];
}

/** A row group has at most this part of the memory: it stands beside its encoded form and a gathered copy. */
const ROW_GROUP_SHARE = 4;

const encoder = createChunkEncoder();

/** @throws FloeError `unsupported` or `corrupt` with details.file, or the store's. */
export async function rewriteGroup(task: RewriteTask, store: FileStore): Promise<Rewritten> {
  const rewriting = new Rewriting(task, store);
  for (const input of task.group.inputs) await rewriting.take(input);
  return rewriting.finish();
}

class Rewriting {
  readonly #task: RewriteTask;
  readonly #store: FileStore;
  readonly #schema: Schema;
  readonly #sorts: boolean;
  readonly #deletes: DeleteFiles;
  readonly #lineage: LineageReader | undefined;
  readonly #columns: TableColumns;
  readonly #output: Output;
  readonly #places: Int32Array[] = [];
  /** Of the rows in `#columns`: which input, which of its rows, and whether deleted. */
  #origins: Origin[] = [];
  #rowsIn = 0;
  #bytesIn = 0;
  #plainBytes = 0;

  constructor(task: RewriteTask, store: FileStore) {
    this.#task = task;
    this.#store = store;
    const lineage = task.metadata['format-version'] >= 3;
    this.#schema = lineage ? withLineage(task.schema) : task.schema;
    this.#lineage = lineage ? new LineageReader() : undefined;
    this.#sorts = isSortable(task.sortOrder);
    this.#deletes = new DeleteFiles(store);
    this.#columns = new TableColumns(this.#schema);
    this.#columns.noteCodes();
    this.#output = new Output(task, this.#schema, store, this.#sorts);
  }

  async take(input: ScanFile): Promise<void> {
    const { file } = input;
    const bytes = await this.#store.read(file.filePath);
    const places = new Int32Array(file.recordCount);
    const index = this.#places.push(places) - 1;
    this.#bytesIn += bytes.length;
    this.#rowsIn += file.recordCount;
    try {
      const positions = await this.#deletes.positions(file, input.positionDeletes);
      for (const list of positions)
        for (const position of list) if (position < places.length) places[position] = -1;
      const equality = await this.#deletes.equality(input, this.#task.schema);
      const reader = new ParquetReader(bytes, projectionOf(this.#task.metadata, file));
      await this.#rows(reader, { input, index, equality });
    } catch (caught) {
      if (!isFloeError(caught, 'unsupported', 'corrupt')) throw caught;
      throw new FloeError(caught.code, `${file.filePath}: ${caught.message}`, {
        cause: caught,
        details: { file: file.filePath },
      });
    }
  }

  async #rows(
    reader: ParquetReader,
    {
      input,
      index,
      equality,
    }: { input: ScanFile; index: number; equality: readonly EqualityKeys[] | undefined },
  ): Promise<void> {
    const places = this.#places[index]!;
    if (reader.rowCount !== places.length)
      throw new FloeError('corrupt', `${reader.rowCount} rows, the manifest says ${places.length}`);
    const columns = this.#columns;
    let firstRow = 0;
    for (const [group, { rowCount }] of reader.rowGroups.entries()) {
      const at = columns.rowCount;
      reader.readRowGroup(group, columns, (id) => this.#lineage === undefined || !isLineage(id));
      this.#lineage?.append(columns, { reader, index: group, scan: input, firstRow });
      columns.align();
      if (at === 0) this.#expectMore();
      for (const keys of equality ?? [])
        for (let row = 0; row < rowCount; row += 1)
          if (places[firstRow + row] === 0 && keys.has(columns, at + row))
            places[firstRow + row] = -1;
      this.#origins.push({ index, firstRow, at, count: rowCount });
      firstRow += rowCount;
      if (columns.byteSize() >= this.#limit()) await this.#flush();
    }
  }

  /** From the first rows: how many there will be before they are written. A manifest's count isn't trusted beyond that. */
  #expectMore(): void {
    const columns = this.#columns;
    const rowBytes = Math.max(1, columns.byteSize() / Math.max(1, columns.rowCount));
    const left = this.#task.group.inputs
      .slice(this.#places.length)
      .reduce((sum, { file }) => sum + file.recordCount, columns.rowCount);
    columns.expect(Math.min(left, Math.ceil(this.#limit() / rowBytes) + columns.rowCount));
  }

  #limit(): number {
    const { memoryBytes } = this.#task;
    return this.#sorts ? memoryBytes : this.#output.rowGroupBytes;
  }

  /** Writes what has been read. Sorted rows end their file: each file is in order whole. */
  async #flush(): Promise<void> {
    const columns = this.#columns;
    this.#plainBytes += columns.byteSize();
    const kept = this.#keptRows();
    const rows = this.#sorts ? sortRows(columns, this.#task.sortOrder, kept) : kept;
    this.#notePlaces(rows);
    await this.#output.add(columns, rows);
    if (this.#sorts) await this.#output.close();
    columns.clear();
    this.#origins = [];
  }

  #keptRows(): Int32Array {
    const kept = new Int32Array(this.#columns.rowCount);
    let to = 0;
    for (const { index, firstRow, at, count } of this.#origins) {
      const places = this.#places[index]!;
      for (let row = 0; row < count; row += 1)
        if (places[firstRow + row] !== -1) kept[to++] = at + row;
    }
    return kept.subarray(0, to);
  }

  #notePlaces(rows: Int32Array): void {
    const numbers = new Int32Array(this.#columns.rowCount).fill(-1);
    const first = this.#output.rowCount;
    for (let i = 0; i < rows.length; i += 1) numbers[rows[i]!] = first + i;
    for (const { index, firstRow, at, count } of this.#origins)
      this.#places[index]!.set(numbers.subarray(at, at + count), firstRow);
  }

  async finish(): Promise<Rewritten> {
    if (this.#columns.rowCount > 0) await this.#flush();
    await this.#output.close();
    const { files, rowCount } = this.#output;
    return {
      places: this.#places,
      result: {
        files,
        rowsIn: this.#rowsIn,
        rowsOut: rowCount,
        bytesIn: this.#bytesIn,
        plainBytes: this.#plainBytes,
        bytesOut: files.reduce((sum, file) => sum + file.fileSizeInBytes, 0),
      },
    };
  }
}

interface Origin {
  readonly index: number;
  /** Row of the input at row `at` of the columns. */
  readonly firstRow: number;
  readonly at: number;
  readonly count: number;
}

/** False also for an order of a later specification: its files would claim what they are not. */
function isSortable({ fields }: SortOrder): boolean {
  return (
    fields.length > 0 &&
    fields.every(({ transform }) => parseTransform(transform).name !== 'unknown')
  );
}

/** The files being written, one after the other. */
class Output {
  readonly #task: RewriteTask;
  readonly #schema: Schema;
  readonly #store: FileStore;
  readonly #sorted: boolean;
  readonly rowGroupBytes: number;
  #writer: ParquetWriter | undefined;
  #gathered: TableColumns | undefined;
  readonly files: DataFile[] = [];
  rowCount = 0;

  constructor(task: RewriteTask, schema: Schema, store: FileStore, sorted: boolean) {
    this.#task = task;
    this.#schema = schema;
    this.#store = store;
    this.#sorted = sorted;
    this.rowGroupBytes = Math.min(
      task.layout.rowGroupBytes,
      Math.ceil(task.memoryBytes / ROW_GROUP_SHARE),
    );
  }

  async add(columns: TableColumns, rows: Int32Array): Promise<void> {
    const rowBytes = columns.byteSize() / Math.max(1, columns.rowCount);
    const step = Math.max(1, Math.ceil((this.rowGroupBytes * 1.5) / Math.max(1, rowBytes)));
    for (let from = 0; from < rows.length; from += step) {
      const some = rows.subarray(from, from + step);
      // Rows that weren't sorted are in order, so that all of them are as they are.
      const whole = some.length === columns.rowCount && (!this.#sorted || isIdentity(some));
      if (!whole) this.#gathered = columns.gather(some, this.#gathered);
      this.#writer ??= new ParquetWriter(
        {
          schema: this.#schema,
          layout: this.#task.layout,
          ...(this.#sorted ? { sortedBy: this.#task.sortOrder } : {}),
        },
        encoder,
      );
      this.#writer.writeRowGroup(whole ? columns : this.#gathered!);
      this.rowCount += some.length;
      if (this.#writer.byteLength >= this.#task.targetFileBytes) await this.close();
    }
  }

  /** Ends the file that is open, if any. */
  async close(): Promise<void> {
    if (this.#writer === undefined) return;
    const file = this.#writer.finish();
    this.#writer = undefined;
    const { jobId, dataFolder, group, sortOrder } = this.#task;
    const path = `${dataFolder}/${jobId}-${this.files.length}.parquet`;
    await this.#store.write(path, file.parts);
    const { specId, partition } = group.inputs[0]!.file;
    this.files.push({
      content: 0,
      filePath: path,
      fileFormat: 'PARQUET',
      specId,
      partition,
      recordCount: file.recordCount,
      fileSizeInBytes: file.byteLength,
      metrics: withoutReserved(file.metrics),
      splitOffsets: file.splitOffsets,
      ...(this.#sorted ? { sortOrderId: sortOrder['order-id'] } : {}),
    });
  }
}

function isIdentity(rows: Int32Array): boolean {
  for (let i = 0; i < rows.length; i += 1) if (rows[i] !== i) return false;
  return true;
}
