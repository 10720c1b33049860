// Single values: Iceberg's binary form (bounds in manifests) and its JSON form (defaults), both ways.
// Source: Iceberg table spec, appendix D "Single-value serialization".
import { FloeError } from '../../base/error.ts';
import { uuidToBytes, uuidToText } from '../../base/prng.ts';
import { type Primitive, parsePrimitive } from './primitive.ts';
import type { PartitionValue } from './types.ts';

export type PrimitiveValue = Exclude<PartitionValue, null>;

const text = new TextDecoder();
const utf8 = new TextEncoder();

/** Value → the binary form of appendix D. Longs may be given as numbers. */
export function encodeSingleValue(type: string, value: PrimitiveValue): Uint8Array {
  const primitive = parsePrimitive(type);
  switch (primitive.kind) {
    case 'boolean':
      return Uint8Array.of(value === true ? 1 : 0);
    case 'int':
    case 'date':
      return fixedWidth(4, (view) => view.setInt32(0, Number(value), true));
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return fixedWidth(8, (view) => view.setBigInt64(0, BigInt(value as bigint), true));
    case 'float':
      return fixedWidth(4, (view) => view.setFloat32(0, value as number, true));
    case 'double':
      return fixedWidth(8, (view) => view.setFloat64(0, value as number, true));
    case 'string':
      return utf8.encode(value as string);
    case 'uuid':
      return typeof value === 'string' ? uuidToBytes(value) : (value as Uint8Array);
    case 'decimal':
      return bigintToBytes(BigInt(value as bigint));
    default:
      return value as Uint8Array;
  }
}

function fixedWidth(bytes: number, write: (view: DataView) => void): Uint8Array {
  const view = new DataView(new ArrayBuffer(bytes));
  write(view);
  return new Uint8Array(view.buffer);
}

/**
 * The binary form → value of `type`. A bound written before a promotion (4-byte int of a column that is long now,
 * float → double) is widened. Undefined when the bytes don't fit the type (a bound is then no bound).
 */
export function decodeSingleValue(type: string, bytes: Uint8Array): PrimitiveValue | undefined {
  const { kind } = parsePrimitive(type);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (kind) {
    case 'boolean':
      return bytes.length === 1 ? bytes[0] !== 0 : undefined;
    case 'int':
    case 'date':
      return bytes.length === 4 ? view.getInt32(0, true) : undefined;
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
    case 'timestamp_ns':
    case 'timestamptz_ns':
      if (bytes.length === 8) return view.getBigInt64(0, true);
      return bytes.length === 4 && kind === 'long' ? BigInt(view.getInt32(0, true)) : undefined;
    case 'float':
      return bytes.length === 4 ? view.getFloat32(0, true) : undefined;
    case 'double':
      if (bytes.length === 8) return view.getFloat64(0, true);
      return bytes.length === 4 ? view.getFloat32(0, true) : undefined;
    case 'string':
      return text.decode(bytes);
    case 'decimal':
      return bytes.length === 0 || bytes.length > 17 ? undefined : bigintFromBytes(bytes);
    case 'uuid':
      return bytes.length === 16 ? bytes : undefined;
    case 'fixed':
    case 'binary':
      return bytes;
    default:
      return undefined;
  }
}

/** Two's complement, big endian, as few bytes as the value needs. */
export function bigintToBytes(value: bigint): Uint8Array {
  let length = 1;
  while (value < -(2n ** BigInt(8 * length - 1)) || value >= 2n ** BigInt(8 * length - 1)) {
    length += 1;
  }
  return bigintToFixed(value, length);
}

/** Two's complement, big endian, sign-extended to `length` bytes. */
export function bigintToFixed(value: bigint, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let rest = BigInt.asUintN(8 * length, value);
  for (let index = length - 1; index >= 0; index -= 1) {
    bytes[index] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes;
}

/** The inverse of {@link bigintToBytes} and {@link bigintToFixed}. */
export function bigintFromBytes(bytes: Uint8Array): bigint {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return BigInt.asIntN(8 * bytes.length, value);
}

/** Orders two values of one primitive type as Iceberg bounds are ordered: −, 0 or +. NaN must be kept out. */
export function compareValues(a: PrimitiveValue, b: PrimitiveValue): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b);
  return a < b ? -1 : a > b ? 1 : 0;
}

/** By code points, which is UTF-8's byte order; JavaScript's own order differs above U+FFFF. */
function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index += 1) {
    const x = a.charCodeAt(index);
    const y = b.charCodeAt(index);
    if (x === y) continue;
    const xHigh = x >= 0xd800 && x <= 0xdfff;
    const yHigh = y >= 0xd800 && y <= 0xdfff;
    return xHigh === yHigh ? x - y : xHigh ? 1 : -1;
  }
  return a.length - b.length;
}

const MICROS_PER_DAY = 86_400_000_000n;

/** JSON form (appendix D, "JSON single-value serialization"): what `initial-default` holds. */
export function singleValueToJson(type: string, value: PrimitiveValue): unknown {
  const primitive = parsePrimitive(type);
  switch (primitive.kind) {
    case 'date':
      return dateText(BigInt(value as number));
    case 'time':
      return timeText(BigInt(value as bigint), 6);
    case 'timestamp':
    case 'timestamptz':
      return timestampText(BigInt(value as bigint), 6) + zone(primitive);
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return timestampText(BigInt(value as bigint), 9) + zone(primitive);
    case 'decimal':
      return decimalText(BigInt(value as bigint), primitive.scale);
    case 'uuid':
      return typeof value === 'string' ? value : uuidToText(value as Uint8Array);
    case 'fixed':
    case 'binary':
      return Buffer.from(value as Uint8Array).toString('hex');
    default:
      return value;
  }
}

const zone = ({ kind }: Primitive) => (kind.startsWith('timestamptz') ? '+00:00' : '');

/** The inverse of {@link singleValueToJson}. @throws FloeError `invalid` when the text isn't of that type. */
export function singleValueFromJson(type: string, json: unknown): PrimitiveValue {
  const primitive = parsePrimitive(type);
  const bad = () => new FloeError('invalid', `${JSON.stringify(json)} is not a value of ${type}`);
  switch (primitive.kind) {
    case 'boolean':
      if (typeof json !== 'boolean') throw bad();
      return json;
    case 'int':
    case 'float':
    case 'double':
      if (typeof json !== 'number' && typeof json !== 'bigint') throw bad();
      return Number(json);
    case 'long':
      if (typeof json !== 'bigint' && !Number.isInteger(json)) throw bad();
      return BigInt(json as number);
    case 'string':
      if (typeof json !== 'string') throw bad();
      return json;
    case 'unknown':
    case 'variant':
    case 'geometry':
    case 'geography':
      throw bad();
    default:
      if (typeof json !== 'string') throw bad();
      return parseText(primitive, json) ?? fail(bad());
  }
}

function fail(error: Error): never {
  throw error;
}

function parseText({ kind, scale }: Primitive, json: string): PrimitiveValue | undefined {
  switch (kind) {
    case 'date':
      return optional(parseDate(json), Number);
    case 'time':
      return parseTime(json, 6);
    case 'timestamp':
    case 'timestamptz':
      return parseTimestamp(json, 6);
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return parseTimestamp(json, 9);
    case 'decimal':
      return parseDecimal(json, scale);
    case 'uuid':
      return /^[0-9a-fA-F-]{36}$/.test(json) ? uuidToBytes(json) : undefined;
    default:
      return /^([0-9a-fA-F]{2})*$/.test(json)
        ? new Uint8Array(Buffer.from(json, 'hex'))
        : undefined;
  }
}

function optional<A, B>(value: A | undefined, map: (value: A) => B): B | undefined {
  return value === undefined ? undefined : map(value);
}

/** Unscaled → decimal text, e.g. (1420, 2) → "14.20". */
export function decimalText(unscaled: bigint, scale: number): string {
  const sign = unscaled < 0n ? '-' : '';
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  if (scale === 0) return sign + digits;
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** Decimal text → unscaled at `scale`; undefined when it isn't a number or has more digits than the scale. */
export function parseDecimal(source: string, scale: number): bigint | undefined {
  const match = /^([+-]?)(\d+)(?:\.(\d*))?$/.exec(source.trim());
  if (match === null) return undefined;
  const fraction = match[3] ?? '';
  if (/[1-9]/.test(fraction.slice(scale))) return undefined;
  const unscaled = BigInt(match[2]! + fraction.slice(0, scale).padEnd(scale, '0'));
  return match[1] === '-' ? -unscaled : unscaled;
}

/** Days since 1970-01-01 → `YYYY-MM-DD`, proleptic Gregorian; years past four digits get a sign. */
export function dateText(days: bigint): string {
  const { year, month, day } = civil(Number(days));
  return `${yearText(year)}-${two(month)}-${two(day)}`;
}

export function yearText(year: number): string {
  if (year >= 0 && year <= 9999) return String(year).padStart(4, '0');
  return `${year < 0 ? '-' : '+'}${String(Math.abs(year)).padStart(4, '0')}`;
}

export const two = (value: number) => String(value).padStart(2, '0');

/** Days since 1970-01-01 → calendar date (Howard Hinnant's days algorithm; no range limits). */
export function civil(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear =
    dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1;
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day };
}

/** The inverse of {@link civil}. */
export function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

function parseDate(source: string): bigint | undefined {
  const match = /^([+-]?\d{4,9})-(\d{2})-(\d{2})$/.exec(source);
  if (match === null) return undefined;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined;
  return BigInt(daysFromCivil(year, month, day));
}

/** `unit` fractional digits: 6 for microseconds, 9 for nanoseconds. */
function timeText(ticks: bigint, unit: 6 | 9): string {
  const perSecond = 10n ** BigInt(unit);
  const seconds = Number(ticks / perSecond);
  const fraction = (ticks % perSecond).toString().padStart(unit, '0');
  return `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}.${fraction}`;
}

function parseTime(source: string, unit: 6 | 9): bigint | undefined {
  const match = /^(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?$/.exec(source);
  if (match === null) return undefined;
  const seconds = Number(match[1]) * 3600 + Number(match[2]) * 60 + Number(match[3] ?? 0);
  const fraction = (match[4] ?? '').slice(0, unit).padEnd(unit, '0');
  return BigInt(seconds) * 10n ** BigInt(unit) + BigInt(fraction);
}

/** Floor division: times before 1970 round down. */
export function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b !== 0n && a < 0n !== b < 0n ? quotient - 1n : quotient;
}

/** Ticks since the epoch → ISO 8601 without zone. */
export function timestampText(ticks: bigint, unit: 6 | 9): string {
  const perDay = MICROS_PER_DAY * 10n ** BigInt(unit - 6);
  const days = floorDiv(ticks, perDay);
  return `${dateText(days)}T${timeText(ticks - days * perDay, unit)}`;
}

/** ISO 8601 with or without an offset → ticks since the epoch in UTC. */
export function parseTimestamp(source: string, unit: 6 | 9): bigint | undefined {
  const match = /^(\S+?)[T ](\S+?)(Z|[+-]\d{2}:?\d{2})?$/.exec(source.trim());
  if (match === null) return undefined;
  const days = parseDate(match[1]!);
  const time = parseTime(match[2]!, unit);
  if (days === undefined || time === undefined) return undefined;
  const scale = 10n ** BigInt(unit - 6);
  return days * MICROS_PER_DAY * scale + time - offsetMicros(match[3]) * scale;
}

function offsetMicros(zoneText: string | undefined): bigint {
  if (zoneText === undefined || zoneText === 'Z') return 0n;
  const minutes = Number(zoneText.slice(1, 3)) * 60 + Number(zoneText.slice(-2));
  return BigInt(minutes) * 60_000_000n * (zoneText.startsWith('-') ? -1n : 1n);
}
