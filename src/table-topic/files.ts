// A job's rows as data files: by partition, in the table's sort order, cut at the row group and file sizes that the
// table asks for. Files are written while the next ones are encoded.
// Not for: which rows (worker.ts), what a file looks like inside (formats/parquet), upserts' sidecars.
import { FloeError } from '../base/error.ts';
import type { PartitionGroup } from '../formats/arrow/partition.ts';
import { sortRows } from '../formats/arrow/sort.ts';
import type { TableColumns } from '../formats/arrow/table-columns.ts';
import { parseTransform } from '../formats/iceberg/transform.ts';
import type {
  DataFile,
  PartitionSpec,
  PartitionValue,
  Schema,
  SortOrder,
} from '../formats/iceberg/types.ts';
import type { FileLayout } from '../formats/parquet/layout.ts';
import { createChunkEncoder, type ParquetFile, ParquetWriter } from '../formats/parquet/writer.ts';

/** Writes one object by its absolute URI; the bytes may come in parts. */
export type FileWriter = (uri: string, parts: readonly Uint8Array[]) => Promise<void>;

/** Files on their way to the store at once: its latency is hidden, memory stays bounded. */
const WRITES_AT_ONCE = 8;

/** A table as its files see it. */
export interface FileTable {
  readonly schema: Schema;
  readonly spec: PartitionSpec;
  readonly sortOrder: SortOrder;
  readonly layout: FileLayout;
}

export interface WrittenFile {
  readonly file: DataFile;
  /** The job's row at each position of the file; undefined when they are all rows in their order. */
  readonly rows: Int32Array | undefined;
}

export interface FilesRequest {
  readonly columns: TableColumns;
  readonly table: FileTable;
  /** `<prefix>-<n>.parquet`. */
  readonly prefix: string;
  readonly groups: readonly PartitionGroup[];
}

/** Lives as long as its thread: encoder buffers are kept from job to job. */
export class FileBuilder {
  readonly #write: FileWriter;
  readonly #encoder = createChunkEncoder();

  constructor(write: FileWriter) {
    this.#write = write;
  }

  /** Writes the groups' rows, each group into files of its own. @throws what the store throws, once no write is open. */
  async writeAll({ columns, table, prefix, groups }: FilesRequest): Promise<WrittenFile[]> {
    const written: WrittenFile[] = [];
    const open = new OpenWrites(this.#write);
    const cutter = new FileCutter(columns, table, this.#encoder);
    try {
      for (const group of groups) {
        const whole = groups.length === 1 && group.rows.length === columns.rowCount;
        for (const { parquet, rows } of cutter.files(group.rows, whole)) {
          const path = `${prefix}-${written.length}.parquet`;
          await open.add(path, parquet.parts);
          written.push({ file: dataFile(path, parquet, { table, group: group.values }), rows });
        }
      }
    } finally {
      await open.settled();
    }
    open.check();
    return written;
  }
}

/** Writes under way, so many at most. The first failure is kept until asked for. */
class OpenWrites {
  readonly #write: FileWriter;
  readonly #open = new Set<Promise<void>>();
  #failure: FloeError | undefined;

  constructor(write: FileWriter) {
    this.#write = write;
  }

  async add(path: string, parts: readonly Uint8Array[]): Promise<void> {
    if (this.#open.size >= WRITES_AT_ONCE) await Promise.race(this.#open);
    this.check();
    const writing: Promise<void> = this.#write(path, parts)
      .catch((caught) => {
        this.#failure ??= FloeError.from(caught);
      })
      .finally(() => this.#open.delete(writing));
    this.#open.add(writing);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#open);
  }

  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

interface CutFile {
  readonly parquet: ParquetFile;
  readonly rows: Int32Array | undefined;
}

/** Rows of one job cut into row groups and files. */
class FileCutter {
  readonly #columns: TableColumns;
  readonly #table: FileTable;
  readonly #encoder: ReturnType<typeof createChunkEncoder>;
  readonly #sorts: boolean;
  /** Bytes of a row before compression, on average. */
  readonly #rowBytes: number;
  /** Buffers of the last gather, used again. */
  #gathered: TableColumns | undefined;

  constructor(
    columns: TableColumns,
    table: FileTable,
    encoder: ReturnType<typeof createChunkEncoder>,
  ) {
    this.#columns = columns;
    this.#table = table;
    this.#encoder = encoder;
    this.#sorts = isSortable(table.sortOrder);
    this.#rowBytes = columns.rowCount === 0 ? 0 : columns.byteSize() / columns.rowCount;
  }

  /** `whole`: the rows are all of the columns' rows, in order. */
  *files(group: Int32Array, whole: boolean): Generator<CutFile> {
    const rows = this.#sorts ? sortRows(this.#columns, this.#table.sortOrder, group) : group;
    const inPlace = whole && rows === group;
    const { rowGroupBytes, targetFileBytes } = this.#table.layout;
    const step = this.#rowsWithin(Math.min(rowGroupBytes, targetFileBytes));
    for (let from = 0; from < rows.length; ) {
      const writer = this.#writer();
      const start = from;
      let largest = 0;
      do {
        const to = Math.min(rows.length, from + step);
        const before = writer.byteLength;
        writer.writeRowGroup(
          inPlace && to - from === rows.length
            ? this.#columns
            : this.#gather(rows.subarray(from, to)),
        );
        largest = Math.max(largest, writer.byteLength - before);
        from = to;
      } while (from < rows.length && writer.byteLength + largest <= targetFileBytes);
      const all = inPlace && start === 0 && from === rows.length;
      yield { parquet: writer.finish(), rows: all ? undefined : rows.subarray(start, from) };
    }
  }

  #rowsWithin(bytes: number): number {
    if (this.#rowBytes === 0) return Number.MAX_SAFE_INTEGER;
    return Math.max(1, Math.floor(bytes / this.#rowBytes));
  }

  #gather(rows: Int32Array): TableColumns {
    this.#gathered = this.#columns.gather(rows, this.#gathered);
    return this.#gathered;
  }

  #writer(): ParquetWriter {
    const { schema, layout, sortOrder } = this.#table;
    const options = { schema, layout, ...(this.#sorts ? { sortedBy: sortOrder } : {}) };
    return new ParquetWriter(options, this.#encoder);
  }
}

/** False also for an order of a later specification: its files would claim what they are not. */
function isSortable({ fields }: SortOrder): boolean {
  return (
    fields.length > 0 &&
    fields.every(({ transform }) => parseTransform(transform).name !== 'unknown')
  );
}

function dataFile(
  path: string,
  parquet: ParquetFile,
  { table, group }: { readonly table: FileTable; readonly group: readonly PartitionValue[] },
): DataFile {
  const { spec, sortOrder } = table;
  return {
    content: 0,
    filePath: path,
    fileFormat: 'PARQUET',
    specId: spec['spec-id'],
    partition: group,
    recordCount: parquet.recordCount,
    fileSizeInBytes: parquet.byteLength,
    metrics: parquet.metrics,
    splitOffsets: parquet.splitOffsets,
    ...(isSortable(sortOrder) ? { sortOrderId: sortOrder['order-id'] } : {}),
  };
}
