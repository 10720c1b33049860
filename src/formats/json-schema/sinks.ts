// How scalars of a JSON Schema are read where the column's type alone doesn't say: integers written as `1.0`, numbers
// as doubles round them, Connect's dates, times and decimals.
import type { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type { Column } from '../arrow/column.ts';
import type { FloatColumn, Int32Column, Int64Column } from '../arrow/scalar-columns.ts';
import { parsePrimitive } from '../iceberg/primitive.ts';
import { bigintFromBytes } from '../iceberg/value.ts';
import {
  type NumberSink,
  type ScalarSinks,
  type StringSink,
  scalarSinks,
} from '../json/scalars.ts';
import type { Reading } from './shapes.ts';

/** The sinks for a column that was given to values of `reading`; undefined: those that its type has anyway. */
export function readingSinks(reading: Reading, column: Column): ScalarSinks | undefined {
  switch (reading) {
    case 'integer':
      return integerSink(column);
    case 'number':
      return numberSink(column);
    case 'epoch-millis':
      return column.type === 'timestamptz' ? { number: millisSink(column as Int64Column) } : {};
    case 'epoch-days':
      return column.type === 'date' ? { number: int32Sink(column as Int32Column) } : {};
    case 'day-millis':
      return column.type === 'string' ? { number: dayTextSink(column as BytesColumn) } : {};
    case 'time':
      return column.type === 'long' || column.type === 'time'
        ? { string: timeSink(column as Int64Column) }
        : undefined;
    case 'decimal':
      return { ...scalarSinks(column), string: unscaledSink(column) };
    default:
      return undefined;
  }
}

function integerSink(column: Column): ScalarSinks | undefined {
  if (column.type === 'int') return { number: int32Sink(column as Int32Column) };
  if (column.type !== 'long') return numberSink(column);
  const target = column as Int64Column;
  return {
    number: (cursor, kind) => {
      if (kind === 'long') target.appendHalves(cursor.low, cursor.high);
      else if (kind === 'double' && Number.isSafeInteger(cursor.double))
        target.append(cursor.double);
      else return false;
      return true;
    },
  };
}

function int32Sink(target: Int32Column): NumberSink {
  return ({ double }) => {
    if (double !== (double | 0)) return false;
    target.append(double);
    return true;
  };
}

function numberSink(column: Column): ScalarSinks | undefined {
  if (column.type !== 'double' && column.type !== 'float') return undefined;
  const target = column as FloatColumn;
  return {
    number: (cursor, _kind, start) => {
      const { double } = cursor;
      // Digits beyond what the cursor takes for a number of its own are read once more, slowly.
      const value = Number.isFinite(double) ? double : Number(numberText(cursor, start));
      if (!Number.isFinite(value)) return false;
      target.append(value);
      return true;
    },
  };
}

function numberText(cursor: { readonly bytes: Uint8Array; readonly pos: number }, start: number) {
  return Buffer.from(cursor.bytes.subarray(start, cursor.pos)).toString('latin1');
}

function millisSink(target: Int64Column): NumberSink {
  return ({ double }) => {
    if (!Number.isSafeInteger(double)) return false;
    if (Number.isSafeInteger(double * 1000)) target.append(double * 1000);
    else target.appendBigInt(BigInt(double) * 1000n);
    return true;
  };
}

const DAY_MILLIS = 86_400_000;

/** `HH:MM:SS.ffffff`, as all times of day. */
function dayTextSink(target: BytesColumn): NumberSink {
  return ({ double }) => {
    if (!Number.isInteger(double) || double < 0 || double >= DAY_MILLIS) return false;
    const part = (value: number, width: number) => String(value).padStart(width, '0');
    const seconds = Math.floor(double / 1000);
    const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    const micros = part((double % 1000) * 1000, 6);
    target.appendText(`${clock.map((value) => part(value, 2)).join(':')}.${micros}`);
    return true;
  };
}

const TIME = /^([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?(?:[zZ]|[+-]00:00)?$/;

/** Microseconds of the day; a time of another zone has no place in it. */
function timeSink(target: Int64Column): StringSink {
  return (cursor) => {
    const match = TIME.exec(cursor.stringText());
    if (match === null) return false;
    const [, hours, minutes, seconds, fraction = ''] = match;
    const whole = (Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds);
    target.append(whole * 1_000_000 + Number(fraction.padEnd(6, '0').slice(0, 6)));
    return true;
  };
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Connect's decimals: the unscaled value as big-endian bytes in base64. */
function unscaledSink(column: Column): StringSink {
  const type = parsePrimitive(String(column.type));
  const limit = type.kind === 'decimal' ? 10n ** BigInt(type.precision) : 0n;
  return (cursor) => {
    const text = cursor.stringText();
    if (type.kind !== 'decimal' || text === '' || text.length > 64 || !BASE64.test(text))
      return false;
    const unscaled = bigintFromBytes(Buffer.from(text, 'base64'));
    if (unscaled >= limit || unscaled <= -limit) return false;
    (column as FixedColumn).appendBigInt(unscaled);
    return true;
  };
}
