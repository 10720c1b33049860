// Rows that were decoded and still can't be written: a partition value that its type can't hold, or what an encoder
// trips over. Found so that they alone become dead letters and their neighbours are written.
// Not for: values that can't be decoded (converters.ts), failures of the store.
import type { PartitionGroup } from '../formats/arrow/partition.ts';
import { parsePrimitive } from '../formats/iceberg/primitive.ts';
import { findField } from '../formats/iceberg/schema.ts';
import { parseTransform, transformResultType } from '../formats/iceberg/transform.ts';
import type { PartitionValue, PrimitiveTypeName } from '../formats/iceberg/types.ts';
import type { FilesRequest, FileTable } from './files.ts';

/** Why a row can't be written. */
export type Unwritable = ReadonlyMap<number, string>;

/** Rows found one by one in a failing job at most; the next attempt goes on. */
const MAX_FOUND = 16;

const INT_MIN = -(2 ** 31);
const INT_MAX = 2 ** 31 - 1;
const LONG_MIN = -(2n ** 63n);
const LONG_MAX = 2n ** 63n - 1n;

/** Rows whose partition value its type can't hold: the hour of a clock gone wild, a truncation below the least value. */
export function unfitPartitions(
  groups: readonly PartitionGroup[],
  { schema, spec }: Pick<FileTable, 'schema' | 'spec'>,
): Unwritable {
  const found = new Map<number, string>();
  const types = spec.fields.map((field): PrimitiveTypeName | undefined => {
    const source = findField(schema, field['source-id'])?.type;
    if (typeof source !== 'string') return undefined;
    return transformResultType(parseTransform(field.transform), source);
  });
  for (const { values, rows } of groups) {
    const at = values.findIndex((value, n) => !fits(value, types[n]));
    if (at === -1) continue;
    const { name, transform } = spec.fields[at]!;
    const why = `partition "${name}" (${transform}) would be ${String(values[at])}, out of ${types[at]}`;
    for (const row of rows) found.set(row, why);
  }
  return found;
}

function fits(value: PartitionValue, type: PrimitiveTypeName | undefined): boolean {
  if (value === null || type === undefined) return true;
  switch (type) {
    case 'int':
    case 'date':
      return Number(value) >= INT_MIN && Number(value) <= INT_MAX;
    case 'long':
      return BigInt(value as number | bigint) >= LONG_MIN && BigInt(value as bigint) <= LONG_MAX;
    default:
      return !type.startsWith('decimal') || fitsDecimal(value, type);
  }
}

function fitsDecimal(value: PartitionValue, type: PrimitiveTypeName): boolean {
  if (typeof value !== 'bigint') return true;
  const { precision } = parsePrimitive(type);
  const limit = 10n ** BigInt(precision);
  return value < limit && value > -limit;
}

/** Halves the groups until the rows that fail alone are found. `encode` throws for rows that can't be encoded. */
export async function unencodableRows(
  { groups, ...request }: Omit<FilesRequest, 'prefix'>,
  encode: (request: FilesRequest) => Promise<unknown>,
): Promise<Unwritable> {
  const found = new Map<number, string>();
  const visit = async (rows: Int32Array, values: readonly PartitionValue[]): Promise<void> => {
    if (found.size >= MAX_FOUND) return;
    try {
      await encode({ ...request, prefix: '', groups: [{ values, rows }] });
    } catch (caught) {
      if (rows.length === 1) {
        found.set(rows[0]!, caught instanceof Error ? caught.message : String(caught));
        return;
      }
      const half = rows.length >>> 1;
      await visit(rows.subarray(0, half), values);
      await visit(rows.subarray(half), values);
    }
  };
  for (const { rows, values } of groups) await visit(rows, values);
  return found;
}
