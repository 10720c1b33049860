// Rows of our columns as somebody else reads them: written to Parquet, read back by hyparquet, each cell in one plain
// form that the reference libraries' values are brought to as well.
import { zstdDecompressSync } from 'node:zlib';
import { parquetReadObjects } from 'hyparquet';
import type { TableColumns } from '../../src/formats/arrow/table-columns.ts';
import type { IcebergType, Schema } from '../../src/formats/iceberg/types.ts';
import { createChunkEncoder, ParquetWriter } from '../../src/formats/parquet/writer.ts';

/** Null, boolean, text (integers in digits, bytes in hex), a double, or those in lists and objects; maps as pairs. */
export type Cell = null | boolean | string | number | Cell[] | { [name: string]: Cell };

const raw = <T>(value: T) => value;

export async function rowsThroughParquet(columns: TableColumns): Promise<Record<string, Cell>[]> {
  const writer = new ParquetWriter({ schema: columns.schema }, createChunkEncoder());
  columns.align();
  writer.writeRowGroup(columns);
  const bytes = Buffer.concat([...writer.finish().parts]);
  const rows = await parquetReadObjects({
    file: Uint8Array.from(bytes).buffer,
    utf8: false,
    compressors: { ZSTD: (input: Uint8Array) => zstdDecompressSync(input) },
    parsers: {
      timestampFromMilliseconds: raw,
      timestampFromMicroseconds: raw,
      timestampFromNanoseconds: raw,
      dateFromDays: raw,
    },
  });
  return rows.map((row) => rowCell(columns.schema, row));
}

const rowCell = ({ fields }: Pick<Schema, 'fields'>, row: Record<string, unknown>) =>
  Object.fromEntries(
    fields.map((field) => [field.name, cellOf(field.type, row[field.name])]),
  ) as Record<string, Cell>;

/** What hyparquet read, in our plain form. */
function cellOf(type: IcebergType, value: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof type === 'string') return scalarCell(type, value);
  if (type.type === 'struct') return rowCell(type, value as Record<string, unknown>);
  if (type.type === 'list') return (value as unknown[]).map((item) => cellOf(type.element, item));
  const entries = Array.isArray(value)
    ? (value as { key: unknown; value: unknown }[]).map(
        (entry) => [entry.key, entry.value] as const,
      )
    : Object.entries(value as object);
  return mapCell(
    entries.map(([key, inner]) => [cellOf(type.key, key), cellOf(type.value, inner)] as const),
  );
}

function scalarCell(type: string, value: unknown): Cell {
  if (type === 'boolean') return value as boolean;
  if (type === 'float' || type === 'double') return numberCell(value as number);
  if (type.startsWith('decimal')) return decimalCell(Number(value));
  if (value instanceof Uint8Array) return bytesCell(value);
  return String(value);
}

/** Doubles as text, which tells −0 from 0 and NaN from null. */
export const numberCell = (value: number): string => (Object.is(value, -0) ? '-0' : String(value));

/** hyparquet reads decimals as doubles, so tests keep to what those hold. */
export const decimalCell = (value: number): string => String(value);

export const bytesCell = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** A map's entries; the last of equal keys, in order of keys: hyparquet makes an object of them. */
export function mapCell(entries: readonly (readonly [Cell, Cell])[]): Cell {
  const last = new Map(entries.map(([key, value]) => [String(key), value]));
  return [...last].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => [key, value]);
}
