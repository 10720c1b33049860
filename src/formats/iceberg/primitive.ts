// Primitive types as data: what a type name means. For: every place that needs precision, scale or length.
// Source: Iceberg table spec, "Primitive Types".
import { FloeError } from '../../base/error.ts';
import type { IcebergType, ListType, MapType, PrimitiveTypeName, StructType } from './types.ts';

const PLAIN_KINDS = [
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'date',
  'time',
  'timestamp',
  'timestamptz',
  'timestamp_ns',
  'timestamptz_ns',
  'string',
  'uuid',
  'binary',
  'unknown',
  'variant',
  'geometry',
  'geography',
] as const;

export type PrimitiveKind = (typeof PLAIN_KINDS)[number] | 'decimal' | 'fixed';

export interface Primitive {
  readonly kind: PrimitiveKind;
  /** Decimal digits; 0 for other kinds. */
  readonly precision: number;
  readonly scale: number;
  /** Bytes of a `fixed` (16 for `uuid`); 0 for other kinds. */
  readonly length: number;
}

const known = new Map<string, Primitive>(
  PLAIN_KINDS.map((kind) => [
    kind,
    { kind, precision: 0, scale: 0, length: kind === 'uuid' ? 16 : 0 },
  ]),
);

/** Types that only exist since format version 3. */
const V3_KINDS: ReadonlySet<PrimitiveKind> = new Set([
  'timestamp_ns',
  'timestamptz_ns',
  'unknown',
  'variant',
  'geometry',
  'geography',
]);

/** Decimals hold at most this many digits (spec). */
export const MAX_DECIMAL_PRECISION = 38;

/** @throws FloeError `invalid` for anything that is not a primitive type of the specification. */
export function parsePrimitive(name: string): Primitive {
  const found = known.get(name) ?? parseParameterised(name);
  if (found === undefined) throw new FloeError('invalid', `"${name}" is not an Iceberg type`);
  return found;
}

function parseParameterised(name: string): Primitive | undefined {
  const decimal = /^decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/.exec(name);
  if (decimal !== null) {
    const precision = Number(decimal[1]);
    const scale = Number(decimal[2]);
    if (precision < 1 || precision > MAX_DECIMAL_PRECISION || scale > precision) return undefined;
    return { kind: 'decimal', precision, scale, length: 0 };
  }
  const fixed = /^fixed\[\s*(\d{1,9})\s*\]$/.exec(name);
  if (fixed !== null) return { kind: 'fixed', precision: 0, scale: 0, length: Number(fixed[1]) };
  const geo = /^(geometry|geography)\(.*\)$/.exec(name);
  return geo === null ? undefined : known.get(geo[1]!);
}

/** Does the type need format version 3? */
export function isV3Type(name: PrimitiveTypeName): boolean {
  return V3_KINDS.has(parsePrimitive(name).kind);
}

export function isPrimitive(type: IcebergType): type is PrimitiveTypeName {
  return typeof type === 'string';
}

export function isStruct(type: IcebergType): type is StructType {
  return typeof type === 'object' && type.type === 'struct';
}

export function isList(type: IcebergType): type is ListType {
  return typeof type === 'object' && type.type === 'list';
}

export function isMap(type: IcebergType): type is MapType {
  return typeof type === 'object' && type.type === 'map';
}

/** The bytes that an unscaled decimal of `precision` digits needs in two's complement (Avro and Parquet fixed). */
export function decimalBytes(precision: number): number {
  let bytes = 1;
  while (2n ** BigInt(8 * bytes - 1) <= 10n ** BigInt(precision) - 1n) bytes += 1;
  return bytes;
}
