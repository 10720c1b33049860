// Partition specs bound to a schema: source and result types, transform functions, path text, keys of tuples, and the
// Avro record that manifests hold tuples in. Source: Iceberg table spec, "Partitioning" and appendix A.
import { FloeError } from '../../base/error.ts';
import type { AvroField, AvroSchema } from '../avro/value-codec.ts';
import { decimalBytes, isPrimitive, parsePrimitive } from './primitive.ts';
import { findField } from './schema.ts';
import {
  canTransform,
  compileTransform,
  parseTransform,
  partitionValueText,
  type Transform,
  type TransformFunction,
  transformResultType,
} from './transform.ts';
import type {
  PartitionField,
  PartitionSpec,
  PartitionValue,
  PrimitiveTypeName,
  Schema,
  TableMetadata,
} from './types.ts';
import { bigintFromBytes, bigintToFixed } from './value.ts';

/** Partition field ids start here (spec). */
export const FIRST_PARTITION_FIELD_ID = 1000;

export const UNPARTITIONED: PartitionSpec = { 'spec-id': 0, fields: [] };

export interface BoundPartitionField {
  readonly field: PartitionField;
  readonly transform: Transform;
  readonly sourceType: PrimitiveTypeName;
  readonly resultType: PrimitiveTypeName;
  /** Source value → partition value. */
  readonly apply: TransformFunction;
}

export interface BoundPartitionSpec {
  readonly specId: number;
  readonly fields: readonly BoundPartitionField[];
}

/**
 * Binds a spec to the schema its sources are in. A source that was dropped since is taken as an opaque string
 * when the transform is `void` or unknown.
 * @throws FloeError `invalid` when a source is missing or its type doesn't fit.
 */
export function bindSpec(spec: PartitionSpec, schema: Schema): BoundPartitionSpec {
  return {
    specId: spec['spec-id'],
    fields: spec.fields.map((field) => bindField(field, schema)),
  };
}

function bindField(field: PartitionField, schema: Schema): BoundPartitionField {
  const transform = parseTransform(field.transform);
  const source = findField(schema, field['source-id']);
  const opaque = transform.name === 'void' || transform.name === 'unknown';
  if (source === undefined || !isPrimitive(source.type)) {
    if (opaque)
      return { field, transform, sourceType: 'string', resultType: 'string', apply: () => null };
    throw new FloeError(
      'invalid',
      `partition field "${field.name}": source ${field['source-id']} is no primitive column of the schema`,
    );
  }
  if (!opaque && !canTransform(transform, source.type)) {
    throw new FloeError(
      'invalid',
      `partition field "${field.name}": ${field.transform} can't take "${source.fullName}", a ${source.type}`,
    );
  }
  return {
    field,
    transform,
    sourceType: source.type,
    resultType: transformResultType(transform, source.type),
    apply: opaque ? () => null : compileTransform(transform, source.type),
  };
}

/** The spec of `specId` bound to the newest schema of the table that has all its sources. */
export function bindTableSpec(metadata: TableMetadata, specId: number): BoundPartitionSpec {
  const spec = metadata['partition-specs'].find((one) => one['spec-id'] === specId);
  if (spec === undefined)
    throw new FloeError('invalid', `the table has no partition spec ${specId}`);
  const current = metadata['current-schema-id'];
  const schemas = [...metadata.schemas].sort(
    (a, b) =>
      Number(b['schema-id'] === current) - Number(a['schema-id'] === current) ||
      b['schema-id'] - a['schema-id'],
  );
  const holder =
    schemas.find((schema) =>
      spec.fields.every((field) => findField(schema, field['source-id']) !== undefined),
    ) ?? schemas[0]!;
  return bindSpec(spec, holder);
}

/** `day=2017-11-16/user_bucket=3`, names and values URL-encoded; empty for an unpartitioned spec. */
export function partitionPath(
  spec: BoundPartitionSpec,
  partition: readonly PartitionValue[],
): string {
  return spec.fields
    .map(({ field, transform, sourceType }, index) => {
      const value = partitionValueText(transform, sourceType, partition[index] ?? null);
      return `${pathText(field.name)}=${pathText(value)}`;
    })
    .join('/');
}

/** As a URL query encodes, which is what other writers do; slashes and wildcards never appear. */
const pathText = (value: string) =>
  encodeURIComponent(value).replaceAll('%20', '+').replaceAll('*', '%2A');

/** A text that is equal exactly for equal tuples (as Map key). */
export function partitionKey(specId: number, partition: readonly PartitionValue[]): string {
  let key = String(specId);
  for (const value of partition) key += `\u0000${valueKey(value)}`;
  return key;
}

function valueKey(value: PartitionValue): string {
  if (value instanceof Uint8Array) return `b${Buffer.from(value).toString('base64')}`;
  if (value === null) return 'n';
  // A long may have come as number or as bigint: the same tuple either way. -0 and 0 are one partition value.
  return `${typeof value === 'string' ? 's' : 'v'}${value === 0 ? 0 : value}`;
}

/** The Avro record of a spec's tuples; every field is optional (a void or dropped source is null). */
export function partitionAvroSchema(spec: BoundPartitionSpec): AvroSchema {
  const named = new Set<string>();
  const fields: AvroField[] = spec.fields.map(({ field, resultType }) => {
    const name = avroName(field.name);
    return {
      name,
      ...(name === field.name ? {} : { 'iceberg-field-name': field.name }),
      type: ['null', once(resultAvroType(resultType), named)],
      default: null,
      'field-id': field['field-id'],
    };
  });
  return { type: 'record', name: 'r102', fields };
}

/** A named type is defined where it stands first and referred to by name after that. */
function once(type: AvroSchema, named: Set<string>): AvroSchema {
  if (typeof type === 'string' || Array.isArray(type)) return type;
  const { name } = type as { name?: string };
  if (name === undefined) return type;
  if (named.has(name)) return name;
  named.add(name);
  return type;
}

/** Avro names are letters, digits and `_`; others are escaped the way all engines do. */
export function avroName(name: string): string {
  const escaped = name.replaceAll(
    /[^A-Za-z0-9_]/g,
    (character) => `_x${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return /^[0-9]/.test(escaped) ? `_${escaped}` : escaped;
}

function resultAvroType(type: PrimitiveTypeName): AvroSchema {
  const { kind, precision, scale, length } = parsePrimitive(type);
  switch (kind) {
    case 'date':
      return { type: 'int', logicalType: 'date' };
    case 'time':
      return { type: 'long', logicalType: 'time-micros' };
    case 'timestamp':
    case 'timestamptz':
      return {
        type: 'long',
        logicalType: 'timestamp-micros',
        'adjust-to-utc': kind === 'timestamptz',
      };
    case 'timestamp_ns':
    case 'timestamptz_ns':
      return {
        type: 'long',
        logicalType: 'timestamp-nanos',
        'adjust-to-utc': kind === 'timestamptz_ns',
      };
    case 'binary':
      return 'bytes';
    case 'uuid':
      return { type: 'fixed', name: 'uuid_fixed', size: 16, logicalType: 'uuid' };
    case 'fixed':
      return { type: 'fixed', name: `fixed_${length}`, size: length };
    case 'decimal':
      return {
        type: 'fixed',
        name: `decimal_${precision}_${scale}`,
        size: decimalBytes(precision),
        logicalType: 'decimal',
        precision,
        scale,
      };
    default:
      return kind;
  }
}

/** A partition value → what the Avro writer takes. */
export function partitionValueToAvro(type: PrimitiveTypeName, value: PartitionValue): unknown {
  if (value === null || value === undefined) return null;
  const { kind, precision } = parsePrimitive(type);
  return kind === 'decimal'
    ? bigintToFixed(BigInt(value as bigint), decimalBytes(precision))
    : value;
}

const BIG_KINDS: ReadonlySet<string> = new Set([
  'long',
  'time',
  'timestamp',
  'timestamptz',
  'timestamp_ns',
  'timestamptz_ns',
]);

/** What the Avro reader gives → a partition value of `type`. */
export function partitionValueFromAvro(type: PrimitiveTypeName, value: unknown): PartitionValue {
  if (value === null || value === undefined) return null;
  const { kind } = parsePrimitive(type);
  if (kind === 'decimal')
    return value instanceof Uint8Array ? bigintFromBytes(value) : BigInt(value as number);
  if (BIG_KINDS.has(kind)) return BigInt(value as number | bigint);
  return value as PartitionValue;
}
