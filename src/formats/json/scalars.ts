// Which JSON scalars a column takes, and how: one sink per column, chosen once.
// A sink says false when the value doesn't fit, having appended nothing; nothing is rounded, cut or cast except a
// fraction to the nearest double (or float).
import type { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type { Column } from '../arrow/column.ts';
import type {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../arrow/scalar-columns.ts';
import { appendUuidText } from '../arrow/uuid-text.ts';
import { parsePrimitive } from '../iceberg/primitive.ts';
import { parseDecimal } from '../iceberg/value.ts';
import type { JsonCursor, NumberKind } from './cursor.ts';
import { IsoReader } from './timestamps.ts';

/** Takes the number just read; `start` is where its text begins. */
export type NumberSink = (cursor: JsonCursor, kind: NumberKind, start: number) => boolean;
/** Takes the string just read. */
export type StringSink = (cursor: JsonCursor) => boolean;
export type BooleanSink = (value: boolean) => void;

export interface ScalarSinks {
  readonly number?: NumberSink;
  readonly string?: StringSink;
  readonly boolean?: BooleanSink;
}

/** What a column of a primitive type takes; nothing for nested columns. */
export function scalarSinks(column: Column): ScalarSinks {
  switch (column.type) {
    case 'boolean':
      return { boolean: (value) => (column as BooleanColumn).append(value) };
    case 'int':
      return { number: intSink(column as Int32Column) };
    case 'long':
      return { number: longSink(column as Int64Column) };
    case 'float':
    case 'double':
      return { number: doubleSink(column as FloatColumn) };
    case 'string':
      return { string: textSink(column as BytesColumn) };
    case 'binary':
      return { string: base64Sink(column as BytesColumn) };
    case 'date':
      return { string: dateSink(column as Int32Column) };
    case 'timestamp':
    case 'timestamptz':
      return { string: timestampSink(column as Int64Column) };
    case 'uuid':
      return {
        string: ({ text, textStart, textEnd }) =>
          appendUuidText(column as FixedColumn, text, textStart, textEnd),
      };
    default:
      return typeof column.type === 'string' && column.type.startsWith('decimal')
        ? decimalSinks(column as FixedColumn)
        : {};
  }
}

function intSink(column: Int32Column): NumberSink {
  return (cursor, kind) => {
    if (kind !== 'long' || cursor.double !== (cursor.double | 0)) return false;
    column.append(cursor.low);
    return true;
  };
}

function longSink(column: Int64Column): NumberSink {
  return (cursor, kind) => {
    if (kind !== 'long') return false;
    column.appendHalves(cursor.low, cursor.high);
    return true;
  };
}

/** An integer fits a double up to 2^53. */
function doubleSink(column: FloatColumn): NumberSink {
  return (cursor, kind) => {
    if (kind === 'number') return false;
    if (kind === 'long' && !Number.isSafeInteger(cursor.double)) return false;
    column.append(cursor.double);
    return true;
  };
}

function textSink(column: BytesColumn): StringSink {
  return (cursor) => {
    column.append(cursor.text, cursor.textStart, cursor.textEnd);
    return true;
  };
}

/** Numbers as they were written, into a string column: those that no number type holds exactly. */
export function numberTextSink(column: BytesColumn): NumberSink {
  return (cursor, _kind, start) => {
    column.append(cursor.bytes, start, cursor.pos);
    return true;
  };
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function base64Sink(column: BytesColumn): StringSink {
  return (cursor) => {
    const text = cursor.stringText();
    if (!BASE64.test(text)) return false;
    const bytes = Buffer.from(text, 'base64');
    column.append(bytes, 0, bytes.length);
    return true;
  };
}

const iso = new IsoReader();

function dateSink(column: Int32Column): StringSink {
  return ({ text, textStart, textEnd }) => {
    if (!iso.readDate(text, textStart, textEnd)) return false;
    column.append(iso.days);
    return true;
  };
}

/** timestamptz wants an offset, timestamp none: guessing a zone would invent data. */
function timestampSink(column: Int64Column): StringSink {
  const zoned = column.type === 'timestamptz';
  return ({ text, textStart, textEnd }) => {
    if (!iso.readTimestamp(text, textStart, textEnd) || iso.hasOffset !== zoned) return false;
    column.appendBigInt(iso.micros);
    return true;
  };
}

/** Decimals from numbers or strings, when they have no more digits than the type. */
function decimalSinks(column: FixedColumn): ScalarSinks {
  const { precision, scale } = parsePrimitive(column.type as string);
  const limit = 10n ** BigInt(precision);
  const take = (text: string) => {
    const unscaled = parseDecimal(text, scale);
    if (unscaled === undefined || unscaled >= limit || unscaled <= -limit) return false;
    column.appendBigInt(unscaled);
    return true;
  };
  return {
    number: ({ bytes, pos }, _kind, start) =>
      take(Buffer.from(bytes.subarray(start, pos)).toString('latin1')),
    string: (cursor) => take(cursor.stringText()),
  };
}
