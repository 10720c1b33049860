// Some columns of a Parquet file as column buffers, through hyparquet: what keys are read back from where read/ refuses a
// file (columns that it lacks, DELTA encodings). Compaction leaves such a file as it is; an index of keys must know every
// live row, whoever wrote it, or a change would leave the old row in the table. A value per cell is the price, and only
// such files pay it.
// Values come raw, as they are stored: a detour over dates and floating decimals would change them. By row group, so
// that memory stays bounded. Whoever wrote the file, Iceberg's physical types are taken.
// Not for: lists and maps, and not for whole tables (queries/ has DuckDB for that).
import {
  type AsyncBuffer,
  type FileMetaData,
  parquetMetadataAsync,
  parquetRead,
  type SchemaElement,
} from 'hyparquet';
import { FloeError } from '../../base/error.ts';
import { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type { Column } from '../arrow/column.ts';
import { BooleanColumn, FloatColumn, Int32Column, Int64Column } from '../arrow/scalar-columns.ts';
import { createColumn } from '../arrow/table-columns.ts';
import type { NameMapping } from '../iceberg/projection.ts';
import type { PartitionValue, PrimitiveTypeName } from '../iceberg/types.ts';
import { encodeSingleValue, type PrimitiveValue } from '../iceberg/value.ts';
import { parquetCompressors } from './compressors.ts';
import { type FileNode, fileTree } from './read/tree.ts';

/** A column that is wanted; it may be inside structs. */
export interface WantedColumn {
  readonly fieldId: number;
  readonly type: PrimitiveTypeName;
  /** Its value in each row of a file that lacks it. */
  readonly missing: PartitionValue;
}

export interface ColumnGroup {
  /** Of the first row in the file. */
  readonly firstRow: number;
  readonly rowCount: number;
  /** In the order they were asked for. */
  readonly columns: readonly Column[];
}

export interface ColumnFile {
  readonly name: string;
  readonly bytes: number;
  readonly read: RangeReader;
  /** The field ids of a file that has none. */
  readonly mapping: NameMapping;
}

/** Reads `[start, end)` of a file. */
export type RangeReader = (start: number, end: number) => Promise<Uint8Array>;

/**
 * Row group by row group, from the one that starts at row `from` on.
 * @throws FloeError `corrupt`, `unsupported`, or what `read` throws.
 */
export async function* readColumns(
  file: ColumnFile,
  wanted: readonly WantedColumn[],
  from = 0,
): AsyncGenerator<ColumnGroup> {
  const buffer: AsyncBuffer = {
    byteLength: file.bytes,
    slice: async (start, end = file.bytes) => {
      const bytes = await file.read(start, end);
      return bytes.buffer.slice(
        bytes.byteOffset,
        bytes.byteOffset + bytes.byteLength,
      ) as ArrayBuffer;
    },
  };
  const metadata = await parsed(file.name, () => parquetMetadataAsync(buffer));
  const leaves = leavesOf(fileTree(metadata.schema, file.mapping));
  const places = wanted.map(({ fieldId }) => leaves.find((one) => one.fieldId === fieldId));
  // Raw values: what a logical type would make of them isn't exact.
  for (const element of metadata.schema as {
    -readonly [K in keyof SchemaElement]: SchemaElement[K];
  }[]) {
    if (element.type === undefined) continue;
    delete element.converted_type;
    delete element.logical_type;
  }
  let firstRow = 0;
  for (const group of metadata.row_groups) {
    const rowCount = Number(group.num_rows);
    if (firstRow < from) {
      firstRow += rowCount;
      continue;
    }
    const columns = await parsed(file.name, () =>
      readGroup({ buffer, metadata, places, wanted, firstRow, rowCount }),
    );
    yield { firstRow, rowCount, columns };
    firstRow += rowCount;
  }
}

async function parsed<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    if (caught instanceof FloeError) throw caught;
    throw new FloeError('corrupt', `${name} can't be read as Parquet`, { cause: caught });
  }
}

interface Place {
  readonly fieldId: number | undefined;
  readonly path: readonly string[];
  readonly element: SchemaElement;
}

const leavesOf = (nodes: readonly FileNode[], above: readonly string[] = []): Place[] =>
  nodes.flatMap(({ element, fieldId, children }) => {
    const path = [...above, element.name];
    return children.length > 0 ? leavesOf(children, path) : [{ fieldId, path, element }];
  });

interface GroupRequest {
  readonly buffer: AsyncBuffer;
  readonly metadata: FileMetaData;
  readonly places: readonly (Place | undefined)[];
  readonly wanted: readonly WantedColumn[];
  readonly firstRow: number;
  readonly rowCount: number;
}

async function readGroup(request: GroupRequest): Promise<Column[]> {
  const { buffer, metadata, places, wanted, firstRow, rowCount } = request;
  const names = [
    ...new Set(places.flatMap((place) => (place === undefined ? [] : [place.path[0]!]))),
  ];
  const chunks = new Map<string, ArrayLike<unknown>[]>();
  if (names.length > 0) {
    await parquetRead({
      file: buffer,
      metadata,
      columns: names,
      rowStart: firstRow,
      rowEnd: firstRow + rowCount,
      compressors: parquetCompressors,
      utf8: false,
      onChunk: ({ columnName, columnData }) => {
        const list = chunks.get(columnName) ?? [];
        list.push(columnData as ArrayLike<unknown>);
        chunks.set(columnName, list);
      },
    });
  }
  return wanted.map(({ type, missing }, n) => {
    const place = places[n];
    const column = createColumn(type);
    if (place === undefined) {
      if (missing !== null) fill(column, new Array(rowCount).fill(stored(type, missing)));
    } else {
      for (const chunk of chunks.get(place.path[0]!) ?? []) fill(column, inner(chunk, place.path));
    }
    column.padTo(rowCount);
    if (column.length !== rowCount)
      throw new FloeError(
        'corrupt',
        `column ${place?.path.join('.')} has ${column.length} of ${rowCount} rows`,
      );
    return column;
  });
}

/** The values of a leaf inside structs. */
function inner(chunk: ArrayLike<unknown>, path: readonly string[]): ArrayLike<unknown> {
  if (path.length === 1) return chunk;
  return Array.from(chunk, (row) => {
    let value = row as Record<string, unknown> | null | undefined;
    for (const name of path.slice(1)) value = value?.[name] as typeof value;
    return value;
  });
}

/** A value as files have it: text is bytes there. */
const stored = (type: PrimitiveTypeName, value: PrimitiveValue) =>
  typeof value === 'string' ? encodeSingleValue(type, value) : value;

function fill(column: Column, values: ArrayLike<unknown>): void {
  const { length } = values;
  column.reserve(column.length + length);
  const append = appendRaw(column);
  for (let n = 0; n < length; n += 1) {
    const value = values[n];
    if (value === null || value === undefined) column.appendNull();
    else append(value);
  }
}

/** A stored value of the file's physical type into a column of the table's type (Iceberg's promotions included). */
function appendRaw(column: Column): (value: unknown) => void {
  if (column instanceof Int32Column) return (value) => column.append(Number(value));
  if (column instanceof Int64Column) {
    return (value) => {
      if (typeof value === 'bigint') column.appendBigInt(value);
      else column.append(value as number);
    };
  }
  if (column instanceof FloatColumn) return (value) => column.append(value as number);
  if (column instanceof BooleanColumn) return (value) => column.append(value as boolean);
  if (column instanceof BytesColumn) {
    return (value) => column.append(value as Uint8Array, 0, (value as Uint8Array).length);
  }
  if (column instanceof FixedColumn) {
    const decimal = String(column.type).startsWith('decimal');
    return (value) => {
      if (typeof value === 'number' || typeof value === 'bigint')
        column.appendBigInt(BigInt(value));
      else if (decimal) column.appendSigned(value as Uint8Array, 0, (value as Uint8Array).length);
      else column.append(value as Uint8Array, 0);
    };
  }
  throw new FloeError('unsupported', `a column of ${String(column.type)} can't be read back`);
}
