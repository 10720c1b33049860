// The columns of one open row group of a table: what decoders append to and Parquet files are written from.
//
// Contract. A row is appended column by column in any order; columns not touched are null in that row. `endRow`
// counts it, `rollback` undoes whatever was appended since the last `endRow`. Nothing is shared between two
// TableColumns, so each partition or worker may have its own; `clear` keeps the buffers for the next file.
import { assert } from '../../base/assert.ts';
import type { IcebergType, Schema } from '../iceberg/types.ts';
import { BytesColumn, FixedColumn, MAX_COLUMN_BYTES } from './byte-columns.ts';
import type { Column, RowSelection } from './column.ts';
import { alignColumn, ListColumn, MapColumn, StructColumn } from './nested-columns.ts';
import { BooleanColumn, FloatColumn, Int32Column, Int64Column } from './scalar-columns.ts';
import { ValueCodes } from './value-codes.ts';

/** An empty column for an Iceberg type, children included. */
export function createColumn(type: IcebergType): Column {
  if (typeof type === 'string') return createPrimitive(type);
  if (type.type === 'struct') {
    return new StructColumn(
      type,
      type.fields.map((field) => createColumn(field.type)),
    );
  }
  if (type.type === 'list') return new ListColumn(type, createColumn(type.element));
  return new MapColumn(type, createColumn(type.key), createColumn(type.value));
}

function createPrimitive(type: string & IcebergType): Column {
  switch (type) {
    case 'boolean':
      return new BooleanColumn(type);
    case 'int':
    case 'date':
      return new Int32Column(type);
    case 'float':
    case 'double':
      return new FloatColumn(type);
    case 'string':
    case 'binary':
      return new BytesColumn(type);
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return new Int64Column(type);
    default:
      return new FixedColumn(type);
  }
}

export class TableColumns {
  readonly schema: Schema;
  /** In the order of the schema's fields. */
  readonly columns: readonly Column[];
  /** Whole rows so far. */
  rowCount = 0;
  readonly #byId = new Map<number, Column>();

  /** `rowCount`, under the name that columns have for it. */
  get length(): number {
    return this.rowCount;
  }

  constructor(schema: Schema, columns = schema.fields.map((field) => createColumn(field.type))) {
    this.schema = schema;
    this.columns = columns;
    schema.fields.forEach((field, i) => {
      indexById(this.#byId, field.id, field.type, columns[i]!);
    });
  }

  /** The column of a field id (nested ones too), or undefined. */
  byId(fieldId: number): Column | undefined {
    return this.#byId.get(fieldId);
  }

  /** Makes room for `rows` in all that are like those so far: buffers then needn't grow, and be copied, step by step. */
  expect(rows: number): void {
    if (this.rowCount === 0 || rows <= this.rowCount) return;
    for (const column of this.columns) {
      column.reserve(rows);
      if (!(column instanceof BytesColumn)) continue;
      const bytes = column.offsets[column.length]!;
      column.reserveBytes(Math.min(MAX_COLUMN_BYTES, Math.ceil((bytes / this.rowCount) * rows)));
    }
  }

  /** Lets readers of files note what they learn of equal values, for those who write the rows again. */
  noteCodes(): void {
    for (const column of this.#byId.values()) column.codes = new ValueCodes();
  }

  /** Counts the row that was appended. */
  endRow(): void {
    this.rowCount++;
  }

  /** Undoes what was appended since the last `endRow`. */
  rollback(): void {
    for (const column of this.columns) column.truncate(this.rowCount);
  }

  /** Pads every column to `rowCount`. Needed before reading columns; `gather` and the Parquet writer call it. */
  align(): void {
    for (const column of this.columns) {
      column.padTo(this.rowCount);
      assert(column.length === this.rowCount, 'a column never holds more rows than its table');
      alignColumn(column);
    }
  }

  /** Bytes in Arrow's layout. Walks all columns: ask once per batch, not per row. */
  byteSize(): number {
    let total = 0;
    for (const column of this.columns) total += column.byteSize();
    return total;
  }

  /**
   * The selected rows as columns of their own: clustering by partition, sorting. `into` is the result of an earlier
   * gather from these columns whose buffers may be used again.
   */
  gather(rows: RowSelection, into?: TableColumns): TableColumns {
    this.align();
    const columns = this.columns.map((column, i) => column.gather(rows, into?.columns[i]));
    const gathered = into ?? new TableColumns(this.schema, columns);
    gathered.rowCount = rows.length;
    return gathered;
  }

  /** Forgets all rows, keeps the buffers. */
  clear(): void {
    this.rowCount = 0;
    for (const column of this.columns) column.clear();
  }
}

function indexById(index: Map<number, Column>, id: number, type: IcebergType, column: Column) {
  index.set(id, column);
  if (typeof type === 'string') return;
  if (type.type === 'struct') {
    const { children } = column as StructColumn;
    type.fields.forEach((field, i) => {
      indexById(index, field.id, field.type, children[i]!);
    });
  } else if (type.type === 'list') {
    indexById(index, type['element-id'], type.element, (column as ListColumn).element);
  } else {
    indexById(index, type['key-id'], type.key, (column as MapColumn).key);
    indexById(index, type['value-id'], type.value, (column as MapColumn).value);
  }
}
