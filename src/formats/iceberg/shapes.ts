// Untrusted JSON → schemas, specs, sort orders and snapshots: checked once at the border, trusted after it.
// Input is what parseIcebergJson gives (snapshot ids already bigint). Unknown extra keys are kept out.
import { FloeError } from '../../base/error.ts';
import { parsePrimitive } from './primitive.ts';
import { MAX_SCHEMA_DEPTH } from './schema.ts';
import type {
  IcebergType,
  NestedField,
  PartitionField,
  Schema,
  Snapshot,
  SortField,
  StructType,
} from './types.ts';

export type Json = Readonly<Record<string, unknown>>;

function wrong(what: string, wanted: string, got: unknown): FloeError {
  const shown = got === undefined ? 'missing' : `${typeof got} ${String(got).slice(0, 60)}`;
  return new FloeError('invalid', `${what} must be ${wanted}, it is ${shown}`);
}

export function asObject(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw wrong(what, 'an object', value);
  return value as Json;
}

export function asList(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong(what, 'a list', value);
  return value;
}

export function asText(value: unknown, what: string): string {
  if (typeof value !== 'string') throw wrong(what, 'text', value);
  return value;
}

export function asInt(value: unknown, what: string): number {
  if (!Number.isSafeInteger(value)) throw wrong(what, 'a whole number', value);
  return value as number;
}

/** A snapshot id; plain numbers are taken when they are exact. */
export function asSnapshotId(value: unknown, what: string): bigint {
  if (typeof value === 'bigint') return value;
  if (Number.isSafeInteger(value)) return BigInt(value as number);
  throw wrong(what, 'a 64-bit whole number', value);
}

export function asTextMap(value: unknown, what: string): Readonly<Record<string, string>> {
  const entries = Object.entries(asObject(value, what));
  return Object.fromEntries(entries.map(([key, text]) => [key, asText(text, `${what}.${key}`)]));
}

export function asSchema(value: unknown): Schema {
  const raw = asObject(value, 'schema');
  const identifiers = raw['identifier-field-ids'];
  return {
    type: 'struct',
    'schema-id': raw['schema-id'] === undefined ? 0 : asInt(raw['schema-id'], 'schema-id'),
    ...(identifiers === undefined || identifiers === null
      ? {}
      : {
          'identifier-field-ids': asList(identifiers, 'identifier-field-ids').map((id) =>
            asInt(id, 'identifier-field-ids'),
          ),
        }),
    fields: asStruct(raw, 'schema', 0).fields,
  };
}

function asStruct(raw: Json, what: string, depth: number): StructType {
  if (raw['type'] !== undefined && raw['type'] !== 'struct')
    throw wrong(`${what}.type`, '"struct"', raw['type']);
  const fields = asList(raw['fields'], `${what}.fields`);
  return {
    type: 'struct',
    fields: fields.map((field) => asField(asObject(field, `${what} field`), what, depth)),
  };
}

function asField(raw: Json, what: string, depth: number): NestedField {
  const name = asText(raw['name'], `${what} field name`);
  return {
    id: asInt(raw['id'], `id of field "${name}"`),
    name,
    required: raw['required'] === true,
    type: asType(raw['type'], name, depth + 1),
    ...(typeof raw['doc'] === 'string' ? { doc: raw['doc'] } : {}),
    ...(raw['initial-default'] == null ? {} : { 'initial-default': raw['initial-default'] }),
    ...(raw['write-default'] == null ? {} : { 'write-default': raw['write-default'] }),
  };
}

function asType(value: unknown, what: string, depth: number): IcebergType {
  if (depth > MAX_SCHEMA_DEPTH)
    throw new FloeError('invalid', `a schema nests at most ${MAX_SCHEMA_DEPTH} levels`);
  if (typeof value === 'string') {
    parsePrimitive(value);
    return value as IcebergType;
  }
  const raw = asObject(value, `type of "${what}"`);
  switch (raw['type']) {
    case 'struct':
      return asStruct(raw, what, depth);
    case 'list':
      return {
        type: 'list',
        'element-id': asInt(raw['element-id'], `element-id of "${what}"`),
        'element-required': raw['element-required'] === true,
        element: asType(raw['element'], `${what}.element`, depth + 1),
      };
    case 'map':
      return {
        type: 'map',
        'key-id': asInt(raw['key-id'], `key-id of "${what}"`),
        key: asType(raw['key'], `${what}.key`, depth + 1),
        'value-id': asInt(raw['value-id'], `value-id of "${what}"`),
        'value-required': raw['value-required'] === true,
        value: asType(raw['value'], `${what}.value`, depth + 1),
      };
    default:
      throw wrong(`type of "${what}"`, 'an Iceberg type', raw['type']);
  }
}

/** A partition field as asked for: its id may be left to the table. */
export type PartitionFieldRequest = Omit<PartitionField, 'field-id'> & {
  readonly 'field-id'?: number;
};

export function asPartitionFields(value: unknown): PartitionFieldRequest[] {
  const raw = asObject(value, 'partition spec');
  return asList(raw['fields'], 'fields of the partition spec').map((item) => {
    const field = asObject(item, 'partition field');
    const name = asText(field['name'], 'name of a partition field');
    return {
      'source-id': sourceId(field, `partition field "${name}"`),
      ...(field['field-id'] === undefined
        ? {}
        : { 'field-id': asInt(field['field-id'], `field-id of partition field "${name}"`) }),
      name,
      transform: asText(field['transform'], `transform of partition field "${name}"`),
    };
  });
}

/** v3 writes a list of sources; every transform of today has one. */
function sourceId(field: Json, what: string): number {
  const several = field['source-ids'];
  if (field['source-id'] === undefined && Array.isArray(several) && several.length === 1)
    return asInt(several[0], `source of ${what}`);
  return asInt(field['source-id'], `source-id of ${what}`);
}

export function asSortFields(value: unknown): SortField[] {
  const raw = asObject(value, 'sort order');
  return asList(raw['fields'], 'fields of the sort order').map((item) => {
    const field = asObject(item, 'sort field');
    const direction = field['direction'];
    const nulls = field['null-order'];
    if (direction !== 'asc' && direction !== 'desc')
      throw wrong('direction of a sort field', 'asc or desc', direction);
    if (nulls !== 'nulls-first' && nulls !== 'nulls-last')
      throw wrong('null-order of a sort field', 'nulls-first or nulls-last', nulls);
    return {
      transform: asText(field['transform'], 'transform of a sort field'),
      'source-id': sourceId(field, 'a sort field'),
      direction,
      'null-order': nulls,
    };
  });
}

export function asSnapshot(value: unknown): Snapshot {
  const raw = asObject(value, 'snapshot');
  const parent = raw['parent-snapshot-id'];
  const optionalInt = (key: string) =>
    raw[key] === undefined || raw[key] === null ? {} : { [key]: asInt(raw[key], key) };
  return {
    'snapshot-id': asSnapshotId(raw['snapshot-id'], 'snapshot-id'),
    ...(parent === undefined || parent === null || parent === -1n
      ? {}
      : { 'parent-snapshot-id': asSnapshotId(parent, 'parent-snapshot-id') }),
    ...optionalInt('sequence-number'),
    'timestamp-ms': asInt(raw['timestamp-ms'], 'timestamp-ms'),
    'manifest-list': asText(raw['manifest-list'], 'manifest-list'),
    ...(raw['summary'] == null ? {} : { summary: asTextMap(raw['summary'], 'summary') }),
    ...optionalInt('schema-id'),
    ...optionalInt('first-row-id'),
    ...optionalInt('added-rows'),
    ...(typeof raw['key-id'] === 'string' ? { 'key-id': raw['key-id'] } : {}),
  };
}
