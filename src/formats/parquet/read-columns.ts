// Some columns of a Parquet file as column buffers, through hyparquet: what keys are read back from where read/ refuses a
// file (no field ids, DELTA encodings). Compaction leaves such a file as it is; an index of keys must know every
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
import type { PrimitiveTypeName } from '../iceberg/types.ts';
import { parquetCompressors } from './compressors.ts';

/** A column that is wanted; it may be inside structs. */
export interface WantedColumn {
  readonly fieldId: number;
  /** Names from the root: what files without field ids are read by. */
  readonly path: readonly string[];
  readonly type: PrimitiveTypeName;
}

export interface ColumnGroup {
  /** Of the first row in the file. */
  readonly firstRow: number;
  readonly rowCount: number;
  /** In the order they were asked for; a column that the file lacks is all null. */
  readonly columns: readonly Column[];
}

/** Reads `[start, end)` of a file. */
export type RangeReader = (start: number, end: number) => Promise<Uint8Array>;

/**
 * Row group by row group, from the one that starts at row `from` on.
 * @throws FloeError `corrupt`, `unsupported`, or what `read` throws.
 */
export async function* readColumns(
  file: { readonly bytes: number; readonly read: RangeReader; readonly name: string },
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
  const places = wanted.map((one) => placeOf(metadata, one));
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
  readonly path: readonly string[];
  readonly element: SchemaElement;
}

/** Where a column is in this file: by field id, else by name where the file has no ids. */
function placeOf(metadata: FileMetaData, wanted: WantedColumn): Place | undefined {
  const leaves: Place[] = [];
  let next = 1;
  const walk = (path: readonly string[], children: number) => {
    for (let n = 0; n < children; n += 1) {
      const element = metadata.schema[next]!;
      next += 1;
      const here = [...path, element.name];
      if (element.num_children !== undefined && element.num_children > 0)
        walk(here, element.num_children);
      else leaves.push({ path: here, element });
    }
  };
  walk([], metadata.schema[0]?.num_children ?? 0);
  const byId = leaves.find(({ element }) => element.field_id === wanted.fieldId);
  if (byId !== undefined) return byId;
  if (leaves.some(({ element }) => element.field_id !== undefined)) return undefined;
  return leaves.find(({ path }) => path.join('\u0000') === wanted.path.join('\u0000'));
}

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
  return wanted.map(({ type }, n) => {
    const place = places[n];
    const column = createColumn(type);
    if (place !== undefined) {
      for (const chunk of chunks.get(place.path[0]!) ?? [])
        fill(column, inner(chunk, place.path), place.element);
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

function fill(column: Column, values: ArrayLike<unknown>, element: SchemaElement): void {
  const { length } = values;
  column.reserve(column.length + length);
  const append = appendRaw(column, element);
  for (let n = 0; n < length; n += 1) {
    const value = values[n];
    if (value === null || value === undefined) column.appendNull();
    else append(value);
  }
}

/** A stored value of the file's physical type into a column of the table's type (Iceberg's promotions included). */
function appendRaw(column: Column, element: SchemaElement): (value: unknown) => void {
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
  throw new FloeError('unsupported', `a column of ${element.name} can't be read back`);
}
