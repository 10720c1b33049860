// Partition and sort transforms: parsing, which types they take, what they give, applying them, and path text.
// Source: Iceberg table spec, "Partition Transforms" and appendix B (hashes).
import { FloeError } from '../../base/error.ts';
import { uuidToBytes } from '../../base/prng.ts';
import { murmur3 } from './murmur3.ts';
import { isPrimitive, type PrimitiveKind, parsePrimitive } from './primitive.ts';
import type { IcebergType, PartitionValue, PrimitiveTypeName } from './types.ts';
import {
  bigintToBytes,
  civil,
  floorDiv,
  type PrimitiveValue,
  singleValueToJson,
  two,
  yearText,
} from './value.ts';

export type TransformName =
  | 'identity'
  | 'bucket'
  | 'truncate'
  | 'year'
  | 'month'
  | 'day'
  | 'hour'
  | 'void'
  | 'unknown';

export interface Transform {
  /** `unknown`: a transform of a later specification; its values are opaque and nothing is pruned by it. */
  readonly name: TransformName;
  /** Buckets or width; 0 for transforms without argument. */
  readonly argument: number;
}

/** Text as in metadata: `day`, `bucket[16]`. Never fails: what isn't known is `unknown`. */
export function parseTransform(source: string): Transform {
  const match = /^(bucket|truncate)\[(\d{1,10})\]$/.exec(source);
  if (match !== null) {
    const argument = Number(match[2]);
    if (argument >= 1 && argument <= 2 ** 31 - 1)
      return { name: match[1] as TransformName, argument };
  }
  const plain = source.toLowerCase();
  const name = (['identity', 'year', 'month', 'day', 'hour', 'void'] as const).find(
    (candidate) => candidate === plain,
  );
  return { name: name ?? 'unknown', argument: 0 };
}

const DATES: readonly PrimitiveKind[] = [
  'date',
  'timestamp',
  'timestamptz',
  'timestamp_ns',
  'timestamptz_ns',
];
const EXACT: readonly PrimitiveKind[] = ['int', 'long', 'decimal', 'string', 'binary'];
const NOT_IDENTITY: readonly PrimitiveKind[] = ['variant', 'geometry', 'geography'];

/** May `transform` take values of `type`? */
export function canTransform(transform: Transform, type: IcebergType): boolean {
  if (!isPrimitive(type)) return transform.name === 'void';
  const { kind } = parsePrimitive(type);
  switch (transform.name) {
    case 'identity':
      return !NOT_IDENTITY.includes(kind);
    case 'bucket':
      return (
        EXACT.includes(kind) || DATES.includes(kind) || ['time', 'uuid', 'fixed'].includes(kind)
      );
    case 'truncate':
      return EXACT.includes(kind);
    case 'year':
    case 'month':
    case 'day':
      return DATES.includes(kind);
    case 'hour':
      return DATES.includes(kind) && kind !== 'date';
    case 'void':
      return true;
    case 'unknown':
      return false;
  }
}

/** The type of a transform's results. `day` gives a date, as every engine writes it (the spec's int has the same bytes). */
export function transformResultType(
  transform: Transform,
  source: PrimitiveTypeName,
): PrimitiveTypeName {
  switch (transform.name) {
    case 'bucket':
    case 'year':
    case 'month':
    case 'hour':
      return 'int';
    case 'day':
      return 'date';
    case 'unknown':
      return 'string';
    default:
      return source;
  }
}

export type TransformFunction = (value: PartitionValue) => PartitionValue;

/**
 * The function of a transform over values of `type` (types.ts, PartitionValue; longs and ticks may also come as
 * numbers, uuids as text). Null gives null.
 * @throws FloeError `invalid` when the transform doesn't take the type.
 */
export function compileTransform(transform: Transform, type: PrimitiveTypeName): TransformFunction {
  if (!canTransform(transform, type)) {
    throw new FloeError('invalid', `transform ${transformText(transform)} can't take a ${type}`);
  }
  const apply = transformOf(transform, type);
  return (value) => (value === null || value === undefined ? null : apply(value));
}

export function transformText({ name, argument }: Transform): string {
  return argument === 0 ? name : `${name}[${argument}]`;
}

function transformOf(
  { name, argument }: Transform,
  type: PrimitiveTypeName,
): (value: PrimitiveValue) => PartitionValue {
  switch (name) {
    case 'identity':
      return (value) => value;
    case 'bucket':
      return (value) => (bucketHash(type, value) & 0x7fff_ffff) % argument;
    case 'truncate':
      return truncation(argument);
    case 'void':
    case 'unknown':
      return () => null;
    default:
      return calendarUnit(name, parsePrimitive(type).kind);
  }
}

function truncation(width: number): (value: PrimitiveValue) => PrimitiveValue {
  const wide = BigInt(width);
  return (value) => {
    if (typeof value === 'number') return value - (((value % width) + width) % width);
    if (typeof value === 'bigint') return value - (((value % wide) + wide) % wide);
    if (typeof value === 'string') return firstCodePoints(value, width);
    return (value as Uint8Array).subarray(0, width);
  };
}

/** The first `count` code points, never half a surrogate pair. */
export function firstCodePoints(value: string, count: number): string {
  if (value.length <= count) return value;
  let end = 0;
  for (let taken = 0; taken < count && end < value.length; taken += 1) {
    end += value.codePointAt(end)! > 0xffff ? 2 : 1;
  }
  return value.slice(0, end);
}

const HOUR_MICROS = 3_600_000_000;
const DAY_MICROS = 24 * HOUR_MICROS;

function calendarUnit(
  name: 'year' | 'month' | 'day' | 'hour',
  kind: PrimitiveKind,
): (value: PrimitiveValue) => number {
  // Ticks below 2^53 (microseconds up to the year 2255) divide exactly as doubles: no bigint work per row.
  const perMicro = kind.endsWith('_ns') ? 1000 : 1;
  const per = (unit: number) => (value: PrimitiveValue) => {
    const ticks = Number(value);
    if (Number.isSafeInteger(ticks)) return Math.floor(ticks / (unit * perMicro));
    return Number(floorDiv(BigInt(value as bigint), BigInt(unit * perMicro)));
  };
  const days = kind === 'date' ? (value: PrimitiveValue) => Number(value) : per(DAY_MICROS);
  switch (name) {
    case 'hour': {
      // Microseconds reach past what 32 bits of hours hold: a clock gone wild lands in the last hour, in order still.
      const hours = per(HOUR_MICROS);
      return (value) => Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, hours(value)));
    }
    case 'day':
      return days;
    case 'month':
      return (value) => {
        const { year, month } = civil(days(value));
        return (year - 1970) * 12 + month - 1;
      };
    case 'year':
      return (value) => civil(days(value)).year - 1970;
  }
}

const utf8 = new TextEncoder();
const eight = new DataView(new ArrayBuffer(8));
const eightBytes = new Uint8Array(eight.buffer);

/** Appendix B: the 32-bit hash of a value before it is reduced to buckets (signed). */
export function bucketHash(type: string, value: PrimitiveValue): number {
  const { kind } = parsePrimitive(type);
  switch (kind) {
    case 'string':
      return murmur3(utf8.encode(value as string));
    case 'uuid':
      return murmur3(typeof value === 'string' ? uuidToBytes(value) : (value as Uint8Array));
    case 'fixed':
    case 'binary':
      return murmur3(value as Uint8Array);
    case 'decimal':
      return murmur3(bigintToBytes(BigInt(value as bigint)));
    case 'float':
    case 'double':
      eight.setFloat64(0, value === 0 ? 0 : (value as number), true);
      return murmur3(eightBytes);
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return hashLong(floorDiv(BigInt(value as bigint), 1000n));
    default:
      return hashLong(BigInt(value as bigint | number | boolean));
  }
}

function hashLong(value: bigint): number {
  eight.setBigInt64(0, value, true);
  return murmur3(eightBytes);
}

/** A partition value as people read it in paths: `2017-11-16`, `2017-11`, base64 for bytes; `null` for null. */
export function partitionValueText(
  transform: Transform,
  type: PrimitiveTypeName,
  value: PartitionValue,
): string {
  if (value === null) return 'null';
  switch (transform.name) {
    case 'year':
      return yearText(1970 + Number(value));
    case 'month':
      return monthText(Number(value));
    case 'day':
      return String(singleValueToJson('date', value));
    case 'hour': {
      const days = Math.floor(Number(value) / 24);
      return `${String(singleValueToJson('date', days))}-${two(Number(value) - days * 24)}`;
    }
    default: {
      if (value instanceof Uint8Array && parsePrimitive(type).kind !== 'uuid')
        return Buffer.from(value).toString('base64');
      return String(singleValueToJson(transformResultType(transform, type), value));
    }
  }
}

function monthText(months: number): string {
  const years = Math.floor(months / 12);
  return `${yearText(1970 + years)}-${two(months - years * 12 + 1)}`;
}
