// Finds the rows of a snapshot that are past their time: files whose bounds say it of all their rows are not read; of files
// that hold younger rows too, or rows without a time, one column is. When the next row of such a file comes of age is
// remembered, so that it isn't read again before.
// Not for: committing what is found (row-ttl.ts), rewriting what is left (choose.ts does by what is deleted).
import { FloeError, isFloeError } from '../../base/error.ts';
import type { Column } from '../../formats/arrow/column.ts';
import { Int32Column, type Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import {
  currentSchema,
  type FileReader,
  manifestSource,
  planScan,
  projectionOf,
} from '../../formats/iceberg/index.ts';
import type { ScanFile } from '../../formats/iceberg/scan.ts';
import { type FieldInSchema, findField, onlyFields } from '../../formats/iceberg/schema.ts';
import type { DataFile, PrimitiveTypeName, TableMetadata } from '../../formats/iceberg/types.ts';
import { decodeSingleValue } from '../../formats/iceberg/value.ts';
import { SparseParquet } from '../../formats/parquet/read/sparse-file.ts';
import { type ColumnPath, formatPath } from '../column-list.ts';
import { deleteRows, type RowDeletes, type RowHit } from './delete-rows.ts';
import { DeleteFiles } from './deletes.ts';

export interface ExpiredTask {
  readonly metadata: TableMetadata;
  /** A date or timestamp column. */
  readonly column: ColumnPath;
  readonly cutoffMs: number;
  /** How names of delete files begin. */
  readonly prefix: string;
  /** Files that couldn't be read exactly: they leave by their bounds alone. */
  readonly leftAlone?: ReadonlySet<string>;
}

export interface Expired extends RowDeletes {
  /** Data files that leave whole. */
  readonly files: number;
}

export interface RangedReader extends FileReader {
  /** Bytes `[start, end)` of a file. */
  readRange(uri: string, start: number, end: number): Promise<Uint8Array>;
}

const DAY_MS = 86_400_000;

/** Ticks of the column's type in a millisecond. */
const TICKS: Readonly<Record<string, number>> = {
  date: 1 / DAY_MS,
  timestamp: 1_000,
  timestamptz: 1_000,
  timestamp_ns: 1_000_000,
  timestamptz_ns: 1_000_000,
};

interface TimeColumn {
  readonly field: FieldInSchema;
  readonly type: PrimitiveTypeName;
  readonly ticks: number;
  /** In ticks. */
  readonly cutoff: number;
}

/** @throws FloeError `invalid` when the column isn't there or holds no times. */
function timeColumn({ metadata, column, cutoffMs }: ExpiredTask): TimeColumn {
  const field = findField(currentSchema(metadata), column.join('.'));
  const type = typeof field?.type === 'string' && !field.repeated ? field.type : undefined;
  const ticks = type === undefined ? undefined : TICKS[type];
  if (field === undefined || ticks === undefined) {
    throw new FloeError(
      'invalid',
      `table.topic.row.ttl.column: "${formatPath(column)}" is no date or timestamp column of the table`,
    );
  }
  return { field, type: type!, ticks, cutoff: Math.floor(cutoffMs * ticks) };
}

/** Files remembered at most; the ones remembered longest ago go. */
const MAX_REMEMBERED = 100_000;

export class ExpiredRows {
  readonly #io: RangedReader;
  /** By path and field: the next row comes of age at this tick. */
  readonly #next = new Map<string, number>();

  constructor(io: RangedReader) {
    this.#io = io;
  }

  /** @throws FloeError as reads do; `invalid` for a column that holds no times. */
  async find(task: ExpiredTask): Promise<Expired> {
    const time = timeColumn(task);
    const { metadata, prefix, leftAlone } = task;
    const { files } = await planScan({ metadata, source: manifestSource(this.#io) });
    const deletes = new DeleteFiles(this.#io);
    const hits: RowHit[] = [];
    for (const scan of files) {
      const found = await this.#hit(scan, { time, deletes, metadata, leftAlone });
      if (found !== undefined && found.positions.length > 0) hits.push(found);
    }
    const made = await deleteRows(metadata, hits, prefix);
    return { ...made, files: made.removed.filter(({ content }) => content === 0).length };
  }

  async #hit(
    scan: ScanFile,
    reading: {
      readonly time: TimeColumn;
      readonly deletes: DeleteFiles;
      readonly metadata: TableMetadata;
      readonly leftAlone: ReadonlySet<string> | undefined;
    },
  ): Promise<RowHit | undefined> {
    const { file } = scan;
    const { time, deletes, metadata, leftAlone } = reading;
    const { lower, upper } = boundsOf(file, time);
    if (lower >= time.cutoff) return undefined;
    const whole = upper < time.cutoff && file.metrics.nullValueCounts.get(time.field.id) === 0;
    if (!whole && (leftAlone?.has(file.filePath) === true || !this.#isDue(file, time)))
      return undefined;
    const gone = new Set(
      (await deletes.positions(file, scan.positionDeletes)).flatMap((list) => [...list]),
    );
    const expired = whole ? allRows(file) : await this.#read(file, time, metadata);
    return { scan, positions: expired.filter((position) => !gone.has(position)), gone };
  }

  #isDue(file: DataFile, { field, cutoff }: TimeColumn): boolean {
    return (this.#next.get(`${field.id} ${file.filePath}`) ?? Number.NEGATIVE_INFINITY) < cutoff;
  }

  async #read(file: DataFile, time: TimeColumn, metadata: TableMetadata): Promise<Float64Array> {
    const { filePath, fileSizeInBytes } = file;
    let next = Number.POSITIVE_INFINITY;
    const found: number[] = [];
    try {
      const read = (start: number, end: number) => this.#io.readRange(filePath, start, end);
      const projection = projectionOf(metadata, file);
      const source = await SparseParquet.open(fileSizeInBytes, read, projection);
      const schema = onlyFields(currentSchema(metadata), new Set([time.field.id]));
      const columns = new TableColumns(schema);
      const wanted = columns.schema.fields[0]!.id;
      let first = 0;
      for (const [group, { rowCount }] of source.reader.rowGroups.entries()) {
        await source.fetch(group, (id) => id === wanted);
        columns.clear();
        source.reader.readRowGroup(group, columns);
        columns.align();
        const ticksAt = ticksOf(columns.byId(time.field.id)!);
        for (let row = 0; row < rowCount; row += 1) {
          const ticks = ticksAt(row);
          if (ticks < time.cutoff) found.push(first + row);
          else if (ticks < next) next = ticks;
        }
        first += rowCount;
      }
    } catch (caught) {
      if (!isFloeError(caught, 'unsupported')) throw caught;
      // Nor will it be readable the next time: it leaves once all its rows are old.
      next = Number.POSITIVE_INFINITY;
      found.length = 0;
    }
    this.#remember(`${time.field.id} ${filePath}`, next);
    return Float64Array.from(found);
  }

  #remember(key: string, next: number): void {
    this.#next.delete(key);
    this.#next.set(key, next);
    for (const oldest of this.#next.keys()) {
      if (this.#next.size <= MAX_REMEMBERED) break;
      this.#next.delete(oldest);
    }
  }
}

const allRows = ({ recordCount }: DataFile) =>
  Float64Array.from({ length: recordCount }, (_, position) => position);

/** In ticks; a file that doesn't say may hold any time. */
function boundsOf({ metrics }: DataFile, { field, type }: TimeColumn) {
  const of = (bound: Uint8Array | undefined, missing: number) =>
    bound === undefined ? missing : Number(decodeSingleValue(type, bound));
  return {
    lower: of(metrics.lowerBounds.get(field.id), Number.NEGATIVE_INFINITY),
    upper: of(metrics.upperBounds.get(field.id), Number.POSITIVE_INFINITY),
  };
}

const TWO_32 = 4_294_967_296;

/** The time of a row; a row without one never comes of age. Nanoseconds to a quarter of a microsecond. */
function ticksOf(column: Column): (row: number) => number {
  if (column instanceof Int32Column)
    return (row) => (column.isValid(row) ? column.values[row]! : Number.POSITIVE_INFINITY);
  const { halves } = column as Int64Column;
  return (row) =>
    column.isValid(row)
      ? halves[2 * row + 1]! * TWO_32 + (halves[2 * row]! >>> 0)
      : Number.POSITIVE_INFINITY;
}
