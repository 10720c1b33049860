// Steps that decode one scalar into one column, chosen once per writer schema: each pair of Avro type and Iceberg
// type that DESIGN's table and Iceberg's promotions allow. Undefined for a pair that isn't allowed.

import type { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type { Column } from '../arrow/column.ts';
import { RowFailure } from '../arrow/row-failure.ts';
import type {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../arrow/scalar-columns.ts';
import { parsePrimitive } from '../iceberg/primitive.ts';
import type { Step } from './cursor.ts';
import { logicalStep } from './logical-steps.ts';
import type { AvroEnum, AvroSchema } from './schema.ts';

/** The step for a scalar `schema` into `column`, or undefined when the column can't take it. */
export function scalarStep(schema: AvroSchema, column: Column): Step | undefined {
  if ('logical' in schema && schema.logical !== undefined) return logicalStep(schema, column);
  const { type } = column;
  switch (schema.kind) {
    case 'boolean': {
      if (type !== 'boolean') return undefined;
      const target = column as BooleanColumn;
      return (cursor) => target.append(cursor.readBoolean());
    }
    case 'int':
      return intStep(column);
    case 'long':
      return type === 'long' ? longStep(column as Int64Column) : undefined;
    case 'float':
    case 'double':
      return floatStep(schema.kind, column);
    case 'string':
      return type === 'string' ? textStep(column as BytesColumn) : undefined;
    case 'bytes':
      return type === 'binary' ? bytesStep(column as BytesColumn) : undefined;
    case 'fixed':
      return fixedStep(schema.size, column);
    case 'enum':
      return type === 'string' ? enumStep(schema, column as BytesColumn) : undefined;
    default:
      return undefined;
  }
}

/** An int of a table whose column is int or was promoted to long. */
function intStep(column: Column): Step | undefined {
  if (column.type === 'int') {
    const target = column as Int32Column;
    return (cursor) => target.append(cursor.readInt());
  }
  if (column.type !== 'long') return undefined;
  const target = column as Int64Column;
  return (cursor) => {
    const value = cursor.readInt();
    target.appendHalves(value, value >> 31);
  };
}

function longStep(target: Int64Column): Step {
  return (cursor) => {
    cursor.readLong();
    target.appendHalves(cursor.low, cursor.high);
  };
}

/** Little-endian IEEE 754, rarely aligned. */
function floatStep(kind: 'float' | 'double', column: Column): Step | undefined {
  if (column.type !== 'double' && (column.type !== 'float' || kind !== 'float')) return undefined;
  const target = column as FloatColumn;
  return kind === 'float'
    ? (cursor) => target.append(cursor.view.getFloat32(cursor.take(4), true))
    : (cursor) => target.append(cursor.view.getFloat64(cursor.take(8), true));
}

function textStep(target: BytesColumn): Step {
  return (cursor) => {
    const length = cursor.readLength();
    const start = cursor.pos;
    const end = start + length;
    cursor.pos = end;
    if (!target.appendUtf8(cursor.bytes, start, end)) RowFailure.raise('invalid UTF-8');
  };
}

function bytesStep(target: BytesColumn): Step {
  return (cursor) => {
    const length = cursor.readLength();
    const start = cursor.take(length);
    target.append(cursor.bytes, start, start + length);
  };
}

function fixedStep(size: number, column: Column): Step | undefined {
  const { type } = column;
  if (typeof type !== 'string') return undefined;
  const primitive = parsePrimitive(type);
  if (primitive.kind !== 'fixed' || primitive.length !== size) return undefined;
  const target = column as FixedColumn;
  return (cursor) => target.append(cursor.bytes, cursor.take(size));
}

function enumStep({ name, symbols }: AvroEnum, target: BytesColumn): Step {
  const encoder = new TextEncoder();
  const encoded = symbols.map((symbol) => encoder.encode(symbol));
  return (cursor) => {
    const index = cursor.readInt();
    const symbol = encoded[index];
    if (symbol === undefined) RowFailure.raise(`symbol ${index} of enum ${name}`);
    target.append(symbol, 0, symbol.length);
  };
}
