// Steps for Avro's logical types: decimals, uuids, dates, times of day, timestamps.
// Units change here (milliseconds to microseconds, nanoseconds by floor), exactly: past 2^53 with BigInt.
import type { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type { Column } from '../arrow/column.ts';
import { RowFailure } from '../arrow/row-failure.ts';
import type { Int32Column, Int64Column } from '../arrow/scalar-columns.ts';
import { appendUuidText } from '../arrow/uuid-text.ts';
import { parsePrimitive } from '../iceberg/primitive.ts';
import { bigintFromBytes, decimalText } from '../iceberg/value.ts';
import { IsoReader } from '../json/timestamps.ts';
import type { AvroCursor, Step } from './cursor.ts';
import type { AvroLogical } from './logical-type.ts';
import type { AvroFixed, AvroScalar, AvroSchema } from './schema.ts';

type Decimal = Extract<AvroLogical, { kind: 'decimal' }>;

/** The step for a `schema` with a logical type, or undefined when `column` can't take it. */
export function logicalStep(schema: AvroSchema, column: Column): Step | undefined {
  const { kind, logical } = schema as AvroScalar | AvroFixed;
  const { type } = column;
  switch (logical!.kind) {
    case 'decimal':
      return decimalStep(schema as AvroScalar | AvroFixed, logical as Decimal, column);
    case 'uuid':
      if (type !== 'uuid') return undefined;
      return kind === 'fixed'
        ? fixedBytesStep(16, column as FixedColumn)
        : uuidTextStep(column as FixedColumn);
    case 'duration':
      return type === 'fixed[12]' ? fixedBytesStep(12, column as FixedColumn) : undefined;
    case 'date': {
      if (type !== 'date') return undefined;
      const target = column as Int32Column;
      return (cursor) => target.append(cursor.readInt());
    }
    case 'time-millis':
      return timeStep(column, (cursor) => cursor.readInt() * 1000);
    case 'time-micros':
      return timeStep(column, (cursor) => cursor.readSafeLong());
    case 'time-nanos':
      return timeStep(column, (cursor) => Math.floor(cursor.readSafeLong() / 1000));
    case 'wide-time-millis':
      return timeStep(column, (cursor) => cursor.readInt() * 1000, true);
    case 'wide-time-micros':
      return timeStep(column, (cursor) => cursor.readSafeLong(), true);
    case 'zoned-timestamp':
      return type === 'timestamptz' ? zonedStep(column as Int64Column) : undefined;
    case 'timestamp-millis':
      return type === 'timestamptz' ? millisStep(column as Int64Column) : undefined;
    case 'local-timestamp-millis':
      return type === 'timestamp' ? millisStep(column as Int64Column) : undefined;
    case 'timestamp-micros':
      return type === 'timestamptz' ? ticksStep(column as Int64Column) : undefined;
    case 'local-timestamp-micros':
      return type === 'timestamp' ? ticksStep(column as Int64Column) : undefined;
    case 'timestamp-nanos':
      if (type === 'timestamptz_ns') return ticksStep(column as Int64Column);
      return type === 'timestamptz' ? nanosStep(column as Int64Column) : undefined;
    case 'local-timestamp-nanos':
      if (type === 'timestamp_ns') return ticksStep(column as Int64Column);
      return type === 'timestamp' ? nanosStep(column as Int64Column) : undefined;
  }
}

function fixedBytesStep(size: number, target: FixedColumn): Step {
  return (cursor) => target.append(cursor.bytes, cursor.take(size));
}

function uuidTextStep(target: FixedColumn): Step {
  return (cursor) => {
    const length = cursor.readLength();
    const start = cursor.take(length);
    if (!appendUuidText(target, cursor.bytes, start, start + length))
      RowFailure.raise('not a uuid');
  };
}

function ticksStep(target: Int64Column): Step {
  return (cursor) => {
    cursor.readLong();
    target.appendHalves(cursor.low, cursor.high);
  };
}

const TWO_32 = 4_294_967_296;
/** |milliseconds| up to here make microseconds below 2^53. */
const EXACT_MILLIS = Math.floor(Number.MAX_SAFE_INTEGER / 1000);
const MAX_INT64 = 2n ** 63n - 1n;

const bigintOf = (cursor: AvroCursor) => (BigInt(cursor.high) << 32n) | BigInt(cursor.low >>> 0);

function millisStep(target: Int64Column): Step {
  return (cursor) => {
    cursor.readLong();
    const millis = cursor.high * TWO_32 + (cursor.low >>> 0);
    if (millis <= EXACT_MILLIS && millis >= -EXACT_MILLIS) {
      target.append(millis * 1000);
      return;
    }
    const micros = bigintOf(cursor) * 1000n;
    if (micros > MAX_INT64 || micros < -MAX_INT64 - 1n) RowFailure.raise('timestamp out of range');
    target.appendBigInt(micros);
  };
}

function nanosStep(target: Int64Column): Step {
  return (cursor) => {
    cursor.readLong();
    const nanos = bigintOf(cursor);
    const micros = nanos / 1000n;
    target.appendBigInt(nanos < 0n && micros * 1000n !== nanos ? micros - 1n : micros);
  };
}

const HOUR_MICROS = 3_600_000_000;
const DAY_MICROS = 24 * HOUR_MICROS;
const ZERO = 48;

/**
 * A time of day as text, microseconds or Iceberg's `time`. `read` gives microseconds. `wide`: MySQL's TIME is a span
 * that may be negative or longer than a day, and 24:00 is a time in PostgreSQL; only `time` can't hold those.
 */
function timeStep(
  column: Column,
  read: (cursor: AvroCursor) => number,
  wide = false,
): Step | undefined {
  const limited = !wide || column.type === 'time';
  const checked = (cursor: AvroCursor) => {
    const micros = read(cursor);
    if (limited && (micros < 0 || micros >= DAY_MICROS)) RowFailure.raise('time outside the day');
    return micros;
  };
  if (column.type === 'long' || column.type === 'time') {
    const target = column as Int64Column;
    return (cursor) => target.append(checked(cursor));
  }
  if (column.type !== 'string') return undefined;
  const target = column as BytesColumn;
  const buffer = new Uint8Array(15);
  return (cursor) => {
    const micros = checked(cursor);
    if (micros < 0 || micros >= 100 * HOUR_MICROS) {
      target.appendText(spanText(micros));
      return;
    }
    writeTime(buffer, micros);
    target.append(buffer, 0, buffer.length);
  };
}

/** `HH:MM:SS.ffffff` into 15 bytes. */
function writeTime(buffer: Uint8Array, micros: number): void {
  const seconds = Math.floor(micros / 1_000_000);
  digits(buffer, 0, { value: Math.floor(seconds / 3600), width: 2 });
  buffer[2] = 58;
  digits(buffer, 3, { value: Math.floor(seconds / 60) % 60, width: 2 });
  buffer[5] = 58;
  digits(buffer, 6, { value: seconds % 60, width: 2 });
  buffer[8] = 46;
  digits(buffer, 9, { value: micros - seconds * 1_000_000, width: 6 });
}

/** The same form with a sign, or more digits of hours. */
function spanText(micros: number): string {
  const span = Math.abs(micros);
  const pad = (value: number, width: number) => String(Math.floor(value)).padStart(width, '0');
  const minutes = pad((span / 60_000_000) % 60, 2);
  const seconds = pad((span / 1_000_000) % 60, 2);
  const sign = micros < 0 ? '-' : '';
  return `${sign}${pad(span / HOUR_MICROS, 2)}:${minutes}:${seconds}.${pad(span % 1_000_000, 6)}`;
}

const iso = new IsoReader();

/** ISO text with an offset. PostgreSQL's infinities become what Debezium writes for those without a zone. */
function zonedStep(target: Int64Column): Step {
  return (cursor) => {
    const length = cursor.readLength();
    const start = cursor.take(length);
    const { bytes } = cursor;
    const reason = appendZonedText(target, bytes, { start, end: start + length });
    if (reason !== undefined) RowFailure.raise(reason);
  };
}

/** Appends text with an offset as microseconds; the reason when it is none. */
export function appendZonedText(
  target: Int64Column,
  bytes: Uint8Array,
  { start, end }: { readonly start: number; readonly end: number },
): string | undefined {
  if (iso.readTimestamp(bytes, start, end)) {
    if (!iso.hasOffset) return 'a timestamp without offset';
    target.appendBigInt(iso.micros);
    return undefined;
  }
  const text = Buffer.from(bytes.subarray(start, end)).toString('latin1').toLowerCase();
  const infinite = INFINITE_MICROS[text];
  if (infinite === undefined) return 'not an ISO timestamp';
  target.appendBigInt(infinite);
  return undefined;
}

/** Debezium's stand-ins for PostgreSQL's infinite timestamps, in microseconds. */
const INFINITE_MICROS: Readonly<Record<string, bigint>> = {
  infinity: 9_223_372_036_825_200_000n,
  '-infinity': -9_223_372_036_832_400_000n,
};

function digits(buffer: Uint8Array, at: number, number: { value: number; width: number }): void {
  let { value } = number;
  for (let i = at + number.width - 1; i >= at; i--) {
    buffer[i] = ZERO + (value % 10);
    value = Math.floor(value / 10);
  }
}

/** Bytes or fixed as a decimal of the same scale and at least the precision; a wide one as text. */
function decimalStep(
  schema: AvroScalar | AvroFixed,
  { precision, scale }: Decimal,
  column: Column,
): Step | undefined {
  if (typeof column.type !== 'string') return undefined;
  const size = schema.kind === 'fixed' ? schema.size : undefined;
  const length = (cursor: AvroCursor) => size ?? cursor.readLength();
  if (column.type === 'string') {
    const target = column as BytesColumn;
    return (cursor) => {
      const bytes = length(cursor);
      const start = cursor.take(bytes);
      const unscaled = bigintFromBytes(cursor.bytes.subarray(start, start + bytes));
      target.appendText(decimalText(unscaled, scale));
    };
  }
  const type = parsePrimitive(column.type);
  if (type.kind !== 'decimal' || type.scale !== scale || type.precision < precision) {
    return undefined;
  }
  const target = column as FixedColumn;
  const limit = 10n ** BigInt(type.precision);
  const safeBytes = Math.floor((type.precision * Math.log2(10)) / 8);
  return (cursor) => {
    const bytes = length(cursor);
    const start = cursor.take(bytes);
    if (bytes <= safeBytes) {
      target.appendSigned(cursor.bytes, start, start + bytes);
      return;
    }
    const unscaled = bigintFromBytes(cursor.bytes.subarray(start, start + bytes));
    if (unscaled >= limit || unscaled <= -limit) RowFailure.raise(`decimal exceeds ${column.type}`);
    target.appendBigInt(unscaled);
  };
}

/** Digits a scale may add or take: a value that names more is broken or an attack on memory. */
const MAX_SCALE = 10_000;

/** Debezium's decimal of a scale of its own, as exact text. */
export function variableDecimalStep(column: Column): Step | undefined {
  if (column.type !== 'string') return undefined;
  const target = column as BytesColumn;
  return (cursor) => {
    const scale = cursor.readInt();
    const bytes = cursor.readLength();
    const start = cursor.take(bytes);
    const unscaled = bigintFromBytes(cursor.bytes.subarray(start, start + bytes));
    target.appendText(scaledText(unscaled, scale));
  };
}

/** An unscaled value and its scale, which may be negative, as text. */
export function scaledText(unscaled: bigint, scale: number): string {
  if (Math.abs(scale) > MAX_SCALE) RowFailure.raise(`a decimal of scale ${scale}`);
  if (scale < 0) return decimalText(unscaled * 10n ** BigInt(-scale), 0);
  return decimalText(unscaled, scale);
}
