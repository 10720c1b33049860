// How a data file that isn't written as the table's schema says gives a column all the same: by name where the file has no
// field ids, from its partition where a Hive-style writer left the column out, else by the column's default.
// Not for: reading files (parquet/read/, queries/).
// Source: Iceberg table spec, "Column Projection" and "Name Mapping Serialization".
import { FloeError } from '../../base/error.ts';
import { currentSchema } from './history.ts';
import { type BoundPartitionSpec, bindTableSpec } from './partition.ts';
import { isList, isMap, isPrimitive } from './primitive.ts';
import type {
  DataFile,
  IcebergType,
  NestedField,
  PartitionValue,
  Schema,
  StructType,
  TableMetadata,
} from './types.ts';

export const NAME_MAPPING = 'schema.name-mapping.default';

/** The ids of one level of columns by the names that files without ids may have for them. */
export type NameMapping = readonly MappedField[];

export interface MappedField {
  readonly 'field-id'?: number;
  readonly names: readonly string[];
  readonly fields?: NameMapping;
}

/** What to know of a table to read columns of one of its data files. Plain data. */
export interface FileProjection {
  /** Of no use to files that have field ids. */
  readonly mapping: NameMapping;
  /** What the file may leave out: values of identity partition fields by source column. */
  readonly partition: ReadonlyMap<number, PartitionValue>;
}

/** A file that has all its columns under their ids. */
export const WHOLE_FILE: FileProjection = { mapping: [], partition: new Map() };

export function projectionOf(metadata: TableMetadata, file: DataFile): FileProjection {
  return {
    mapping: nameMapping(metadata) ?? [],
    partition: identityValues(file, bindTableSpec(metadata, file.specId)),
  };
}

/** Undefined when the table has none. @throws FloeError `corrupt`. */
export function nameMapping({ properties }: TableMetadata): NameMapping | undefined {
  const text = properties?.[NAME_MAPPING];
  if (text === undefined) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new FloeError('corrupt', `table property ${NAME_MAPPING} is not JSON`, { cause });
  }
  if (isMapping(parsed)) return parsed;
  throw new FloeError(
    'corrupt',
    `table property ${NAME_MAPPING} is no name mapping: a list of {"field-id", "names", "fields"} is one, not ${text.slice(0, MAX_SHOWN)}`,
  );
}

/** Of a property's text in an error. */
const MAX_SHOWN = 100;

const isMapping = (parsed: unknown): parsed is NameMapping =>
  Array.isArray(parsed) && parsed.every(isMapped);

function isMapped(parsed: unknown): parsed is MappedField {
  if (typeof parsed !== 'object' || parsed === null) return false;
  const { names, fields } = parsed as Partial<MappedField>;
  return (
    Array.isArray(names) &&
    names.every((name) => typeof name === 'string') &&
    (fields === undefined || isMapping(fields))
  );
}

/** By every name that its columns have ever had: the newest has a name that several had. */
export const mappingOfTable = (metadata: TableMetadata): NameMapping =>
  [...metadata.schemas, currentSchema(metadata)].reduce<NameMapping>(
    (before, schema) => mappingOf(schema, before),
    [],
  );

/** The property of a table that has a mapping, once it has this schema; nothing for other tables. */
export function mappingProperty(
  metadata: TableMetadata,
  schema: Schema,
): Readonly<Record<string, string>> {
  const before = nameMapping(metadata);
  return before === undefined ? {} : { [NAME_MAPPING]: JSON.stringify(mappingOf(schema, before)) };
}

/** Values of identity partition fields by source column. */
export function identityValues(
  file: DataFile,
  spec: BoundPartitionSpec | undefined,
): ReadonlyMap<number, PartitionValue> {
  const values = new Map<number, PartitionValue>();
  for (const [index, { field, transform }] of (spec?.fields ?? []).entries())
    if (transform.name === 'identity')
      values.set(field['source-id'], file.partition[index] ?? null);
  return values;
}

/**
 * The mapping once the table has this schema: every column by its name, and by those it had; dropped ones stay, as files
 * still have them. A name that went over to another column is that one's alone.
 */
export function mappingOf({ fields }: StructType, before: NameMapping = []): NameMapping {
  return mapped(fields, before);
}

type Part = Pick<NestedField, 'id' | 'name' | 'type'>;

function mapped(parts: readonly Part[], before: NameMapping): NameMapping {
  const taken = new Set(parts.map(({ name }) => name));
  const former = before.map((one) => ({ ...one, names: one.names.filter((n) => !taken.has(n)) }));
  const present = parts.map(({ id, name, type }): MappedField => {
    const known = former.find((one) => one['field-id'] === id);
    const fields = mapped(partsOf(type), known?.fields ?? []);
    const names = [name, ...(known?.names ?? [])];
    return { 'field-id': id, names, ...(fields.length === 0 ? {} : { fields }) };
  });
  const ids = new Set(parts.map(({ id }) => id));
  return [...present, ...former.filter((one) => !ids.has(one['field-id'] ?? -1))];
}

function partsOf(type: IcebergType): readonly Part[] {
  if (isPrimitive(type)) return [];
  if (isList(type)) return [{ id: type['element-id'], name: 'element', type: type.element }];
  if (isMap(type)) {
    return [
      { id: type['key-id'], name: 'key', type: type.key },
      { id: type['value-id'], name: 'value', type: type.value },
    ];
  }
  return type.fields;
}
