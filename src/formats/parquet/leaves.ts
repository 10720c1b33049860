// The Parquet schema of an Iceberg schema: schema elements in file order and the leaves that hold values.
// Source: Iceberg table spec, appendix A "Parquet"; parquet-format, LogicalTypes.md.
import type { SchemaElement } from 'hyparquet';
import { assert } from '../../base/assert.ts';
import { decimalBytes, type Primitive, parsePrimitive } from '../iceberg/primitive.ts';
import type { IcebergType, PrimitiveTypeName, Schema } from '../iceberg/types.ts';

export type PhysicalType =
  | 'BOOLEAN'
  | 'INT32'
  | 'INT64'
  | 'FLOAT'
  | 'DOUBLE'
  | 'BYTE_ARRAY'
  | 'FIXED_LEN_BYTE_ARRAY';

/** One step from a table's top-level column down to a leaf. */
export type LeafStep =
  | { readonly kind: 'field'; readonly index: number; readonly required: boolean }
  | { readonly kind: 'element'; readonly required: boolean }
  | { readonly kind: 'key' }
  | { readonly kind: 'value'; readonly required: boolean };

/** A column of the file. */
export interface Leaf {
  readonly fieldId: number;
  /** The name of the top-level column it belongs to. */
  readonly topLevel: string;
  readonly path: readonly string[];
  /** The first step is the top-level field. */
  readonly steps: readonly LeafStep[];
  readonly type: PrimitiveTypeName;
  readonly primitive: Primitive;
  readonly physical: PhysicalType;
  /** Bytes of a FIXED_LEN_BYTE_ARRAY, else 0. */
  readonly width: number;
  readonly maxDefinition: number;
  readonly maxRepetition: number;
}

export interface FileSchema {
  readonly elements: readonly SchemaElement[];
  readonly leaves: readonly Leaf[];
}

interface Place {
  readonly id: number;
  readonly name: string;
  readonly required: boolean;
  readonly path: readonly string[];
  readonly steps: readonly LeafStep[];
  /** Levels above this node, its own optionality not yet counted. */
  readonly definition: number;
  readonly repetition: number;
}

/** A worker writes many files of a table between two changes of its schema. */
const known = new WeakMap<Schema, FileSchema>();

/** The file schema of `schema`; leaves in file order. */
export function fileSchema(schema: Schema): FileSchema {
  let found = known.get(schema);
  if (found === undefined) {
    found = buildFileSchema(schema);
    known.set(schema, found);
  }
  return found;
}

function buildFileSchema(schema: Schema): FileSchema {
  const elements: SchemaElement[] = [
    { name: 'table', num_children: schema.fields.length } as SchemaElement,
  ];
  const leaves: Leaf[] = [];
  schema.fields.forEach((field, index) => {
    addNode({ elements, leaves }, field.type, {
      ...field,
      path: [field.name],
      steps: [{ kind: 'field', index, required: field.required }],
      definition: 0,
      repetition: 0,
    });
  });
  return { elements, leaves };
}

interface Target {
  readonly elements: SchemaElement[];
  readonly leaves: Leaf[];
}

function addNode(target: Target, type: IcebergType, place: Place): void {
  if (typeof type === 'string') addLeaf(target, type, place);
  else if (type.type === 'struct') addStruct(target, type, place);
  else addRepeated(target, type, place);
}

const repetitionType = (required: boolean) => (required ? 'REQUIRED' : 'OPTIONAL');
const levelOf = ({ definition, required }: Place) => definition + (required ? 0 : 1);

function addStruct(
  target: Target,
  type: Extract<IcebergType, { type: 'struct' }>,
  place: Place,
): void {
  assert(type.fields.length > 0, 'Parquet has no empty groups');
  target.elements.push({
    name: place.name,
    field_id: place.id,
    repetition_type: repetitionType(place.required),
    num_children: type.fields.length,
  });
  type.fields.forEach((field, index) => {
    addNode(target, field.type, {
      ...field,
      path: [...place.path, field.name],
      steps: [...place.steps, { kind: 'field', index, required: field.required }],
      definition: levelOf(place),
      repetition: place.repetition,
    });
  });
}

/** The three-level form of lists and maps. */
function addRepeated(
  target: Target,
  type: Extract<IcebergType, { type: 'list' | 'map' }>,
  place: Place,
): void {
  const isList = type.type === 'list';
  const group = isList ? 'list' : 'key_value';
  target.elements.push({
    name: place.name,
    field_id: place.id,
    repetition_type: repetitionType(place.required),
    num_children: 1,
    converted_type: isList ? 'LIST' : 'MAP',
    logical_type: { type: isList ? 'LIST' : 'MAP' },
  });
  target.elements.push({
    name: group,
    repetition_type: 'REPEATED',
    num_children: isList ? 1 : 2,
  });
  const inside = { definition: levelOf(place) + 1, repetition: place.repetition + 1 };
  const child = (name: string, step: LeafStep, id: number, required: boolean): Place => ({
    id,
    name,
    required,
    path: [...place.path, group, name],
    steps: [...place.steps, step],
    ...inside,
  });
  if (isList) {
    const required = type['element-required'];
    const element = child('element', { kind: 'element', required }, type['element-id'], required);
    addNode(target, type.element, element);
    return;
  }
  addNode(target, type.key, child('key', { kind: 'key' }, type['key-id'], true));
  const required = type['value-required'];
  const value = child('value', { kind: 'value', required }, type['value-id'], required);
  addNode(target, type.value, value);
}

function addLeaf(target: Target, type: PrimitiveTypeName, place: Place): void {
  const primitive = parsePrimitive(type);
  const { physical, width, annotation } = physicalType(primitive);
  target.elements.push({
    name: place.name,
    type: physical,
    field_id: place.id,
    repetition_type: repetitionType(place.required),
    ...(width === 0 ? {} : { type_length: width }),
    ...annotation,
  });
  target.leaves.push({
    fieldId: place.id,
    topLevel: place.path[0]!,
    path: place.path,
    steps: place.steps,
    type,
    primitive,
    physical,
    width,
    maxDefinition: levelOf(place),
    maxRepetition: place.repetition,
  });
}

type Annotation = Pick<SchemaElement, 'converted_type' | 'logical_type' | 'precision' | 'scale'>;

interface Physical {
  readonly physical: PhysicalType;
  readonly width: number;
  readonly annotation: Annotation;
}

const plain = (physical: PhysicalType, annotation: Annotation = {}, width = 0): Physical => ({
  physical,
  width,
  annotation,
});

function timestamp(isAdjustedToUTC: boolean, unit: 'MICROS' | 'NANOS'): Physical {
  const logical_type = { type: 'TIMESTAMP', isAdjustedToUTC, unit } as const;
  // The old annotation means UTC and has no nanoseconds.
  return plain('INT64', {
    logical_type,
    ...(isAdjustedToUTC && unit === 'MICROS' ? { converted_type: 'TIMESTAMP_MICROS' } : {}),
  });
}

function physicalType(primitive: Primitive): Physical {
  switch (primitive.kind) {
    case 'boolean':
      return plain('BOOLEAN');
    case 'int':
      return plain('INT32');
    case 'long':
      return plain('INT64');
    case 'float':
      return plain('FLOAT');
    case 'double':
      return plain('DOUBLE');
    case 'date':
      return plain('INT32', { converted_type: 'DATE', logical_type: { type: 'DATE' } });
    case 'time':
      return plain('INT64', {
        logical_type: { type: 'TIME', isAdjustedToUTC: false, unit: 'MICROS' },
      });
    case 'timestamp':
      return timestamp(false, 'MICROS');
    case 'timestamptz':
      return timestamp(true, 'MICROS');
    case 'timestamp_ns':
      return timestamp(false, 'NANOS');
    case 'timestamptz_ns':
      return timestamp(true, 'NANOS');
    case 'string':
      return plain('BYTE_ARRAY', { converted_type: 'UTF8', logical_type: { type: 'STRING' } });
    case 'uuid':
      return plain('FIXED_LEN_BYTE_ARRAY', { logical_type: { type: 'UUID' } }, 16);
    case 'fixed':
      return plain('FIXED_LEN_BYTE_ARRAY', {}, primitive.length);
    case 'decimal':
      return decimal(primitive);
    default:
      return plain('BYTE_ARRAY');
  }
}

function decimal({ precision, scale }: Primitive): Physical {
  const annotation: Annotation = {
    converted_type: 'DECIMAL',
    logical_type: { type: 'DECIMAL', precision, scale },
    precision,
    scale,
  };
  if (precision <= 9) return plain('INT32', annotation);
  if (precision <= 18) return plain('INT64', annotation);
  return plain('FIXED_LEN_BYTE_ARRAY', annotation, decimalBytes(precision));
}
