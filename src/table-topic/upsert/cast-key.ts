// A value of a record key as a value of an id column: how a tombstone names its row when key and column differ in type.
// Text is read as its type is written in JSON and SQL; whatever doesn't fit exactly is refused, never rounded.
import { BytesColumn, FixedColumn } from '../../formats/arrow/byte-columns.ts';
import type { Column } from '../../formats/arrow/column.ts';
import {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../../formats/arrow/scalar-columns.ts';
import { createColumn } from '../../formats/arrow/table-columns.ts';
import { appendUuidText } from '../../formats/arrow/uuid-text.ts';
import { parsePrimitive } from '../../formats/iceberg/primitive.ts';
import type { PrimitiveTypeName } from '../../formats/iceberg/types.ts';
import { singleValueFromJson } from '../../formats/iceberg/value.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

/** Values as columns give them, and as JSON does. */
export type KeyValue = string | number | bigint | boolean | Uint8Array;

/** A column of one row, to cast into. */
export function castColumn(type: PrimitiveTypeName): Column {
  return createColumn(type);
}

/** Appends `value`; false, and nothing appended, when it is no value of the column's type. */
export function castInto(column: Column, value: KeyValue): boolean {
  const type = column.type as PrimitiveTypeName;
  try {
    return appendCast(column, type, value);
  } catch {
    // Parsers of text say no by throwing; whatever was appended goes with the row.
    return false;
  }
}

function appendCast(column: Column, type: PrimitiveTypeName, value: KeyValue): boolean {
  if (column instanceof BytesColumn) {
    if (value instanceof Uint8Array) {
      if (type === 'string') utf8.decode(value);
      column.append(value, 0, value.length);
    } else column.appendText(String(value));
    return true;
  }
  if (column instanceof FixedColumn) return appendFixed(column, type, value);
  // Bytes of no type are text, as people write keys.
  const plain = value instanceof Uint8Array ? utf8.decode(value) : value;
  if (column instanceof BooleanColumn) return appendBoolean(column, plain);
  if (column instanceof FloatColumn) {
    const number = typeof plain === 'string' && plain.trim() === '' ? Number.NaN : Number(plain);
    if (Number.isNaN(number) && plain !== 'NaN') return false;
    column.append(number);
    return true;
  }
  const integer = integerOf(type, plain);
  if (integer === undefined) return false;
  if (column instanceof Int32Column) {
    if (BigInt.asIntN(32, integer) !== integer) return false;
    column.append(Number(integer));
    return true;
  }
  if (!(column instanceof Int64Column) || BigInt.asIntN(64, integer) !== integer) return false;
  column.appendBigInt(integer);
  return true;
}

/** Integers as they are, dates and times also by their text. */
function integerOf(type: PrimitiveTypeName, value: string | number | bigint | boolean) {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  if (typeof value !== 'string') return undefined;
  if (/^-?\d+$/.test(value)) return BigInt(value);
  if (type === 'int' || type === 'long') return undefined;
  return BigInt(singleValueFromJson(type, value) as bigint | number);
}

function appendBoolean(column: BooleanColumn, value: string | number | bigint | boolean): boolean {
  if (value !== true && value !== false && value !== 'true' && value !== 'false') return false;
  column.append(value === true || value === 'true');
  return true;
}

function appendFixed(column: FixedColumn, type: PrimitiveTypeName, value: KeyValue): boolean {
  const primitive = parsePrimitive(type);
  if (primitive.kind === 'decimal') {
    const text = value instanceof Uint8Array ? undefined : String(value);
    if (text === undefined) return appendSixteen(column, value as Uint8Array);
    const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
    if (match === null || (match[3]?.length ?? 0) > primitive.scale) return false;
    const unscaled = BigInt(`${match[2]}${(match[3] ?? '').padEnd(primitive.scale, '0')}`);
    column.appendBigInt(match[1] === '-' ? -unscaled : unscaled);
    return true;
  }
  const bytes = value instanceof Uint8Array ? value : encoder.encode(String(value));
  if (bytes.length === column.width) {
    column.append(bytes, 0);
    return true;
  }
  return type === 'uuid' && appendUuidText(column, bytes, 0, bytes.length);
}

/** A decimal column's own bytes: unscaled, 16 of them. */
function appendSixteen(column: FixedColumn, bytes: Uint8Array): boolean {
  if (bytes.length !== column.width) return false;
  column.append(bytes, 0);
  return true;
}
