// Schemas: finding fields, assigning ids, checking, and which type changes Iceberg allows.
// Not for: names and types of partition columns (partition.ts) or values (value.ts).
// Source: Iceberg table spec, "Schemas and Data Types" and "Schema Evolution".
import { FloeError } from '../../base/error.ts';
import {
  isList,
  isMap,
  isPrimitive,
  isStruct,
  isV3Type,
  type Primitive,
  parsePrimitive,
} from './primitive.ts';
import type { IcebergType, NestedField, Schema, StructType } from './types.ts';

/** A field together with where it stands. List elements and map entries count as fields, as in the spec. */
export interface FieldInSchema {
  readonly id: number;
  readonly name: string;
  readonly required: boolean;
  readonly type: IcebergType;
  /** Names from the root; `element`, `key` and `value` for the parts of lists and maps. */
  readonly path: readonly string[];
  /** Path joined by dots, as `FileMetrics`, sort orders and engines name it. */
  readonly fullName: string;
  readonly parentId: number | undefined;
  /** Some ancestor may be null. */
  readonly underOptional: boolean;
  /** Inside a list or a map: not one value per row. */
  readonly repeated: boolean;
  readonly field: NestedField | undefined;
}

/** Nesting that schemas may have; deeper ones are refused (stack depth of every recursive reader). */
export const MAX_SCHEMA_DEPTH = 64;

/** All fields, parents before children, in order of the schema. */
export function walkFields(schema: StructType): FieldInSchema[] {
  const found: FieldInSchema[] = [];
  const visit = (part: Omit<FieldInSchema, 'fullName'>) => {
    if (part.path.length > MAX_SCHEMA_DEPTH) {
      throw new FloeError(
        'invalid',
        `a schema nests at most ${MAX_SCHEMA_DEPTH} levels: ${part.path[0]} goes deeper`,
      );
    }
    found.push({ ...part, fullName: part.path.join('.') });
    for (const child of childrenOf(part)) visit(child);
  };
  for (const child of structChildren(schema, undefined)) visit(child);
  return found;
}

type Part = Omit<FieldInSchema, 'fullName'>;

function structChildren(struct: StructType, parent: Part | undefined): Part[] {
  return struct.fields.map((field) => ({
    id: field.id,
    name: field.name,
    required: field.required,
    type: field.type,
    path: [...(parent?.path ?? []), field.name],
    parentId: parent?.id,
    underOptional: parent !== undefined && (parent.underOptional || !parent.required),
    repeated: parent?.repeated ?? false,
    field,
  }));
}

function childrenOf(parent: Part): Part[] {
  const { type } = parent;
  const entry = (id: number, name: string, required: boolean, entryType: IcebergType): Part => ({
    id,
    name,
    required,
    type: entryType,
    path: [...parent.path, name],
    parentId: parent.id,
    underOptional: parent.underOptional || !parent.required,
    repeated: true,
    field: undefined,
  });
  if (isStruct(type)) return structChildren(type, parent);
  if (isList(type))
    return [entry(type['element-id'], 'element', type['element-required'], type.element)];
  if (isMap(type)) {
    return [
      entry(type['key-id'], 'key', true, type.key),
      entry(type['value-id'], 'value', type['value-required'], type.value),
    ];
  }
  return [];
}

export interface SchemaIndex {
  readonly byId: ReadonlyMap<number, FieldInSchema>;
  readonly byName: ReadonlyMap<string, FieldInSchema>;
  /** 0 for a schema without fields. */
  readonly highestId: number;
}

const indexes = new WeakMap<StructType, SchemaIndex>();

/** Fields by id and by full name; kept as long as the schema object lives. */
export function indexSchema(schema: StructType): SchemaIndex {
  let index = indexes.get(schema);
  if (index === undefined) {
    const fields = walkFields(schema);
    index = {
      byId: new Map(fields.map((field) => [field.id, field])),
      byName: new Map(fields.map((field) => [field.fullName, field])),
      highestId: fields.reduce((highest, field) => Math.max(highest, field.id), 0),
    };
    indexes.set(schema, index);
  }
  return index;
}

/** The field of an id or of a full name (`a.b`, `tags.element`), or undefined. */
export function findField(
  schema: StructType,
  idOrName: number | string,
): FieldInSchema | undefined {
  const { byId, byName } = indexSchema(schema);
  return typeof idOrName === 'number' ? byId.get(idOrName) : byName.get(idOrName);
}

/** Full names by field id. */
export function fullNames(schema: StructType): ReadonlyMap<number, string> {
  return new Map([...indexSchema(schema).byId].map(([id, field]) => [id, field.fullName]));
}

export function highestFieldId(schema: StructType): number {
  return indexSchema(schema).highestId;
}

export interface FreshSchema {
  readonly schema: Schema;
  /** Old field id → new one. */
  readonly ids: ReadonlyMap<number, number>;
  readonly lastColumnId: number;
}

/**
 * Gives every field a new id, counting from `lastColumnId` + 1: all fields of a struct first, then what is in them,
 * which is the order other catalogs use. Identifier fields follow.
 */
export function assignFreshIds(schema: Schema, lastColumnId = 0): FreshSchema {
  const ids = new Map<number, number>();
  let last = lastColumnId;
  const renew = (old: number) => {
    last += 1;
    ids.set(old, last);
    return last;
  };
  const struct = (type: StructType): NestedField[] => {
    const numbered = type.fields.map((field) => ({ ...field, id: renew(field.id) }));
    return numbered.map((field) => ({ ...field, type: inner(field.type) }));
  };
  const inner = (type: IcebergType): IcebergType => {
    if (isStruct(type)) return { type: 'struct', fields: struct(type) };
    if (isList(type)) {
      const id = renew(type['element-id']);
      return { ...type, 'element-id': id, element: inner(type.element) };
    }
    if (isMap(type)) {
      const keyId = renew(type['key-id']);
      const valueId = renew(type['value-id']);
      return {
        ...type,
        'key-id': keyId,
        'value-id': valueId,
        key: inner(type.key),
        value: inner(type.value),
      };
    }
    return type;
  };
  const fields = struct(schema);
  const identifiers = schema['identifier-field-ids']?.map((id) => ids.get(id) ?? id);
  return {
    schema: {
      ...schema,
      fields,
      ...(identifiers === undefined ? {} : { 'identifier-field-ids': identifiers }),
    },
    ids,
    lastColumnId: last,
  };
}

/** May a column of type `from` become `to` without rewriting files? Equal types count as allowed. */
export function isPromotionAllowed(from: IcebergType, to: IcebergType, formatVersion = 2): boolean {
  if (!isPrimitive(from) || !isPrimitive(to)) return sameType(from, to);
  const a = parsePrimitive(from);
  const b = parsePrimitive(to);
  if (samePrimitive(a, b)) return true;
  if (a.kind === 'int') return b.kind === 'long';
  if (a.kind === 'float') return b.kind === 'double';
  if (a.kind === 'decimal')
    return b.kind === 'decimal' && a.scale === b.scale && b.precision > a.precision;
  if (formatVersion < 3) return false;
  if (a.kind === 'unknown') return true;
  return a.kind === 'date' && (b.kind === 'timestamp' || b.kind === 'timestamp_ns');
}

function samePrimitive(a: Primitive, b: Primitive): boolean {
  return (
    a.kind === b.kind && a.precision === b.precision && a.scale === b.scale && a.length === b.length
  );
}

/** Structurally equal: field ids, names, nullability, types, defaults and docs. */
export function sameType(a: IcebergType, b: IcebergType): boolean {
  if (isPrimitive(a) || isPrimitive(b)) {
    return (
      isPrimitive(a) &&
      isPrimitive(b) &&
      (a === b || samePrimitive(parsePrimitive(a), parsePrimitive(b)))
    );
  }
  if (isStruct(a)) return isStruct(b) && sameFields(a.fields, b.fields);
  if (isList(a)) {
    return (
      isList(b) &&
      a['element-id'] === b['element-id'] &&
      a['element-required'] === b['element-required'] &&
      sameType(a.element, b.element)
    );
  }
  return (
    isMap(b) &&
    a['key-id'] === b['key-id'] &&
    a['value-id'] === b['value-id'] &&
    a['value-required'] === b['value-required'] &&
    sameType(a.key, b.key) &&
    sameType(a.value, b.value)
  );
}

function sameFields(a: readonly NestedField[], b: readonly NestedField[]): boolean {
  return a.length === b.length && a.every((field, index) => sameField(field, b[index]!));
}

function sameField(a: NestedField, b: NestedField): boolean {
  return (
    a.id === b.id &&
    a.name === b.name &&
    a.required === b.required &&
    (a.doc ?? '') === (b.doc ?? '') &&
    sameDefault(a['initial-default'], b['initial-default']) &&
    sameDefault(a['write-default'], b['write-default']) &&
    sameType(a.type, b.type)
  );
}

const sameDefault = (a: unknown, b: unknown) =>
  JSON.stringify(a ?? null, bigintText) === JSON.stringify(b ?? null, bigintText);
const bigintText = (_key: string, value: unknown) =>
  typeof value === 'bigint' ? String(value) : value;

/** Same columns and identifier fields; the schema ids may differ. */
export function sameSchema(a: Schema, b: Schema): boolean {
  const identifiers = (schema: Schema) =>
    [...(schema['identifier-field-ids'] ?? [])].sort((x, y) => x - y).join();
  return sameFields(a.fields, b.fields) && identifiers(a) === identifiers(b);
}

/**
 * Refuses what no table may have: an unknown type, a name or id twice, a v3 type or default in a v2 table,
 * an identifier field that Iceberg doesn't allow.
 * @throws FloeError `invalid` naming the field.
 */
export function checkSchema(schema: Schema, formatVersion: number): void {
  const names = new Set<string>();
  const ids = new Set<number>();
  for (const field of walkFields(schema)) {
    checkField(field, formatVersion);
    if (names.has(field.fullName))
      throw new FloeError('invalid', `the schema names "${field.fullName}" twice`);
    if (ids.has(field.id))
      throw new FloeError('invalid', `field id ${field.id} ("${field.fullName}") is used twice`);
    names.add(field.fullName);
    ids.add(field.id);
  }
  for (const id of schema['identifier-field-ids'] ?? []) checkIdentifier(schema, id);
}

function checkField({ type, fullName, id, field }: FieldInSchema, formatVersion: number): void {
  if (!Number.isInteger(id)) throw new FloeError('invalid', `field "${fullName}" has no id`);
  if (isPrimitive(type)) {
    parsePrimitive(type);
    if (formatVersion < 3 && isV3Type(type)) {
      throw new FloeError(
        'invalid',
        `field "${fullName}": ${type} needs format version 3, the table has ${formatVersion}`,
      );
    }
  } else if (!isStruct(type) && !isList(type) && !isMap(type)) {
    throw new FloeError('invalid', `field "${fullName}" has no Iceberg type`);
  }
  if (formatVersion < 3 && field?.['initial-default'] != null) {
    throw new FloeError('invalid', `field "${fullName}": defaults need format version 3`);
  }
}

function checkIdentifier(schema: Schema, id: number): void {
  const field = findField(schema, id);
  if (field === undefined) throw new FloeError('invalid', `identifier field ${id} does not exist`);
  const reason =
    !field.required || field.underOptional
      ? 'is optional'
      : field.repeated
        ? 'is inside a list or map'
        : !isPrimitive(field.type) || field.type === 'float' || field.type === 'double'
          ? 'is neither an integer, text nor another exact primitive'
          : undefined;
  if (reason !== undefined)
    throw new FloeError('invalid', `identifier field "${field.fullName}" ${reason}`);
}

/** The schema of `id`. @throws FloeError `invalid` when the table has none. */
export function schemaById(schemas: readonly Schema[], id: number): Schema {
  const found = schemas.find((schema) => schema['schema-id'] === id);
  if (found === undefined) throw new FloeError('invalid', `the table has no schema ${id}`);
  return found;
}

/** The schema with nothing but the wanted fields and the structs around them. */
export function onlyFields(schema: Schema, ids: ReadonlySet<number>): Schema {
  return { ...schema, fields: fieldsOf(schema, ids) };
}

function fieldsOf({ fields }: StructType, ids: ReadonlySet<number>): NestedField[] {
  return fields.flatMap((field): NestedField[] => {
    if (ids.has(field.id)) return [field];
    if (typeof field.type === 'string' || field.type.type !== 'struct') return [];
    const inner = fieldsOf(field.type, ids);
    return inner.length === 0 ? [] : [{ ...field, type: { type: 'struct', fields: inner } }];
  });
}
