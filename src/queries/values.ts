// Values of a result as JSON can carry them without loss (docs of `POST /v1/sql`):
// integers as numbers up to 2^53, longer ones as text of digits; decimals as text; NaN and infinities as text;
// dates `YYYY-MM-DD`, times `HH:MM:SS[.ffffff]`, timestamps ISO 8601 (with zone: ending in `Z`); bytes as base64;
// uuid as text; lists as arrays, structs as objects, maps too, wherever they are, by their keys' text; only a map whose keys
// are lists, structs or maps themselves is an array of {key, value}.
import {
  DuckDBArrayValue,
  DuckDBBlobValue,
  DuckDBDateValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBValue,
} from '@duckdb/node-api';
import { timestampText } from '../formats/iceberg/index.ts';

export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue };

export function toJson(value: DuckDBValue): JsonValue {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'bigint': {
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : String(value);
    }
    default:
      return value === null || value === undefined ? null : objectToJson(value);
  }
}

function objectToJson(value: object): JsonValue {
  if (value instanceof DuckDBTimestampTZValue)
    return value.isFinite ? `${isoText(value.micros)}Z` : String(value);
  if (value instanceof DuckDBTimestampValue)
    return value.isFinite ? isoText(value.micros) : String(value);
  if (value instanceof DuckDBTimestampNanosecondsValue)
    return value.isFinite ? trimmed(timestampText(value.nanos, 9)) : String(value);
  if (value instanceof DuckDBBlobValue) return Buffer.from(value.bytes).toString('base64');
  if (value instanceof DuckDBListValue || value instanceof DuckDBArrayValue)
    return value.items.map(toJson);
  if (value instanceof DuckDBStructValue) {
    return Object.fromEntries(
      Object.entries(value.entries).map(([key, item]) => [key, toJson(item)]),
    );
  }
  if (value instanceof DuckDBMapValue) return mapToJson(value);
  // Decimals, dates, times, intervals, uuids, bits: DuckDB's text is exact.
  return value instanceof DuckDBDateValue ? value.toString() : String(value);
}

/** Keys are distinct, and so are their texts: they are of one type. */
function mapToJson({ entries }: DuckDBMapValue): JsonValue {
  const keys = entries.map(({ key }) => toJson(key));
  if (keys.some((key) => typeof key === 'object'))
    return entries.map(({ value }, n) => ({ key: keys[n]!, value: toJson(value) }));
  return Object.fromEntries(entries.map(({ value }, n) => [String(keys[n]), toJson(value)]));
}

const isoText = (micros: bigint) => trimmed(timestampText(micros, 6));

/** Without a fraction that is zero; else with all its digits. */
const trimmed = (text: string) => text.replace(/\.0+$/, '');
