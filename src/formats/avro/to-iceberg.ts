// The table that an Avro schema asks for: DESIGN's type table as code.
// All columns are optional: a record of an older or newer schema must still land. `null` and what holds only
// nulls makes no column. Named types that reach themselves become JSON text from the point of recursion on.
// Not for: reading values (decoder.ts walks the same schema by the same paths).
import { FloeError } from '../../base/error.ts';
import {
  ColumnNames,
  elementPath,
  fieldPath,
  keyPath,
  type ProposedField,
  type ProposedStruct,
  type ProposedType,
  ROOT_PATH,
  VALUE_COLUMN,
  valuePath,
} from '../arrow/proposed-schema.ts';
import { MAX_DECIMAL_PRECISION } from '../iceberg/primitive.ts';
import { VARIABLE_DECIMAL } from './connect-types.ts';
import type { AvroLogical } from './logical-type.ts';
import { type AvroRecord, type AvroSchema, branchName } from './schema.ts';

/** How types that engines disagree on are written (topic configs `table.topic.types.*`). */
export interface TypeOptions {
  /** Time of day: Spark refuses a whole table with a `time` column, so text is the default. */
  readonly time: 'string' | 'long' | 'time';
  /** Nanosecond timestamps as `*_ns` of format v3; otherwise microseconds by floor. DuckDB refuses `*_ns`. */
  readonly nanos: boolean;
}

export const DEFAULT_TYPE_OPTIONS: TypeOptions = { time: 'string', nanos: false };

/** Named types on the way from the root, for recursion. */
type Ancestors = readonly AvroRecord[];

/**
 * The columns for values of `schema`. A root that is no record makes the one column `_kafka_value`.
 * @throws FloeError `invalid` when nothing in the schema can be a column.
 */
export function avroToProposed(
  schema: AvroSchema,
  options: TypeOptions = DEFAULT_TYPE_OPTIONS,
): ProposedStruct {
  const root = rootRecord(schema);
  if (root !== undefined) {
    const fields = recordFields(root, '', {
      options,
      ancestors: [root],
      names: new ColumnNames(true),
    });
    if (fields.length > 0) return { type: 'struct', fields };
  } else {
    const type = proposedType(schema, ROOT_PATH, { options, ancestors: [] });
    const path = ROOT_PATH;
    if (type !== undefined) {
      return { type: 'struct', fields: [{ name: VALUE_COLUMN, aliases: [], path, type }] };
    }
  }
  throw new FloeError(
    'invalid',
    `Avro schema ${branchName(schema)} has no field that makes a column`,
  );
}

/** The record at the root, through a union with null; undefined when the root is something else. */
export function rootRecord(schema: AvroSchema): AvroRecord | undefined {
  if (schema.kind === 'record') return schema;
  if (schema.kind !== 'union') return undefined;
  const rest = schema.branches.filter((branch) => branch.kind !== 'null');
  return rest.length === 1 && rest[0]!.kind === 'record' ? rest[0] : undefined;
}

/** The type of the column for one value at a source path; undefined when it can only be null. */
export function avroColumnType(
  schema: AvroSchema,
  path: string,
  options: TypeOptions = DEFAULT_TYPE_OPTIONS,
): ProposedType | undefined {
  return proposedType(schema, path, { options, ancestors: [] });
}

interface Context {
  readonly options: TypeOptions;
  readonly ancestors: Ancestors;
}

function recordFields(
  record: AvroRecord,
  path: string,
  context: Context & { readonly names: ColumnNames },
): ProposedField[] {
  const fields: ProposedField[] = [];
  for (const field of record.fields) {
    const own = fieldPath(path, field.name);
    const type = proposedType(field.type, own, context);
    if (type === undefined) continue;
    fields.push({
      name: context.names.take(field.name),
      aliases: field.aliases,
      path: own,
      type,
      ...(field.doc === undefined ? {} : { doc: field.doc }),
    });
  }
  return fields;
}

/** The type of a value, or undefined when it can only be null. */
function proposedType(
  schema: AvroSchema,
  path: string,
  context: Context,
): ProposedType | undefined {
  switch (schema.kind) {
    case 'null':
      return undefined;
    case 'record':
      return recordType(schema, path, context);
    case 'array': {
      const element = proposedType(schema.items, elementPath(path), context);
      if (element === undefined) return undefined;
      return { type: 'list', elementPath: elementPath(path), element };
    }
    case 'map': {
      const value = proposedType(schema.values, valuePath(path), context);
      if (value === undefined) return undefined;
      const keys = { keyPath: keyPath(path), key: 'string' } as const;
      return { type: 'map', ...keys, valuePath: valuePath(path), value };
    }
    case 'union':
      return unionType(schema.branches, path, context);
    case 'enum':
      return 'string';
    case 'fixed':
      return schema.logical === undefined
        ? `fixed[${schema.size}]`
        : logicalType(schema.logical, context.options);
    default:
      if (schema.logical !== undefined) return logicalType(schema.logical, context.options);
      return schema.kind === 'bytes' ? 'binary' : schema.kind;
  }
}

/** Present in a struct that has no fields of its own, since Parquet has no empty groups. */
export const PRESENT_FIELD = '_present';

function recordType(record: AvroRecord, path: string, context: Context): ProposedType {
  if (context.ancestors.includes(record) || record.name === VARIABLE_DECIMAL) return 'string';
  const fields = recordFields(record, path, {
    options: context.options,
    ancestors: [...context.ancestors, record],
    names: new ColumnNames(false),
  });
  if (fields.length > 0) return { type: 'struct', fields };
  const present = fieldPath(path, PRESENT_FIELD);
  return {
    type: 'struct',
    fields: [{ name: PRESENT_FIELD, aliases: [], path: present, type: 'boolean' }],
  };
}

/** [null, T] is an optional T; several branches are a struct with one optional field each. */
function unionType(
  branches: readonly AvroSchema[],
  path: string,
  context: Context,
): ProposedType | undefined {
  const rest = branches.filter((branch) => branch.kind !== 'null');
  if (rest.length === 0) return undefined;
  if (rest.length === 1) return proposedType(rest[0]!, path, context);
  const names = unionFieldNames(rest);
  const fields: ProposedField[] = [];
  rest.forEach((branch, i) => {
    const own = fieldPath(path, branchName(branch));
    const type = proposedType(branch, own, context);
    if (type !== undefined) fields.push({ name: names[i]!, aliases: [], path: own, type });
  });
  return fields.length === 0 ? undefined : { type: 'struct', fields };
}

/** Short names of the branches; full ones, dots as underscores, where two short ones clash. */
function unionFieldNames(branches: readonly AvroSchema[]): string[] {
  const short = branches.map((branch) => branchName(branch).replace(/^.*\./, ''));
  const names = new ColumnNames(false);
  return branches.map((branch, i) => {
    const clash = short.some(
      (other, j) => j !== i && other.toLowerCase() === short[i]!.toLowerCase(),
    );
    return names.take(clash ? branchName(branch).replaceAll('.', '_') : short[i]!);
  });
}

function logicalType(logical: AvroLogical, options: TypeOptions): ProposedType {
  switch (logical.kind) {
    case 'decimal':
      // A wider one is text.
      return logical.precision > MAX_DECIMAL_PRECISION
        ? 'string'
        : `decimal(${logical.precision}, ${logical.scale})`;
    case 'uuid':
      return 'uuid';
    case 'date':
      return 'date';
    case 'duration':
      return 'fixed[12]';
    case 'time-millis':
    case 'time-micros':
    case 'time-nanos':
    case 'wide-time-millis':
    case 'wide-time-micros':
      return options.time;
    case 'zoned-timestamp':
      return 'timestamptz';
    case 'timestamp-millis':
    case 'timestamp-micros':
      return 'timestamptz';
    case 'timestamp-nanos':
      return options.nanos ? 'timestamptz_ns' : 'timestamptz';
    case 'local-timestamp-millis':
    case 'local-timestamp-micros':
      return 'timestamp';
    case 'local-timestamp-nanos':
      return options.nanos ? 'timestamp_ns' : 'timestamp';
  }
}
