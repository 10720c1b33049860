// SQL that gives a table's column out of a file whose layout is known: by field id at every depth.
import {
  type IcebergType,
  isList,
  isMap,
  isPrimitive,
  isStruct,
  type NestedField,
  type PartitionValue,
  type PrimitiveTypeName,
  singleValueToJson,
} from '../formats/iceberg/index.ts';
import { type Layout, type LayoutNode, partsOf } from './layout.ts';
import { duckType, identifier, literal } from './sql-text.ts';

/** The expression of a top-level column. A file without it gives its partition's value, else the default. */
export function columnExpression(
  field: NestedField,
  layout: Layout,
  partition: ReadonlyMap<number, PartitionValue>,
): string {
  const node = layout.columns.find((column) => column.fieldId === field.id);
  if (node !== undefined)
    return expression(field.type, node, { sql: identifier(node.name), depth: 0 });
  const value = partition.get(field.id);
  if (value !== undefined && value !== null && isPrimitive(field.type))
    return constant(field.type, singleValueToJson(field.type, value));
  return missing(field);
}

/** `initial-default`, or null. */
export function missing(field: NestedField): string {
  const value = field['initial-default'];
  if (value === undefined || value === null || !isPrimitive(field.type))
    return `NULL::${duckType(field.type)}`;
  return constant(field.type, value);
}

function constant(type: PrimitiveTypeName, json: unknown): string {
  return `${literal(constantText(type, json))}::${duckType(type)}`;
}

/** A value in the JSON form of appendix D as text that DuckDB casts to the type. */
export function constantText(type: PrimitiveTypeName, json: unknown): string {
  const isBytes = type === 'binary' || type.startsWith('fixed');
  return isBytes ? String(json).replaceAll(/../g, '\\x$&') : String(json);
}

interface Source {
  /** SQL of the value as it is in the file. */
  readonly sql: string;
  /** Lambdas around it, for names that don't clash. */
  readonly depth: number;
}

function expression(type: IcebergType, node: LayoutNode, { sql, depth }: Source): string {
  if (isPrimitive(type)) return `CAST(${sql} AS ${duckType(type)})`;
  const parts = partsOf(type, node);
  const part = (id: number) => parts.find((child) => child.fieldId === id);
  const variable = `v${depth}`;
  const inner = (item: IcebergType, child: LayoutNode | undefined, from: string) =>
    child === undefined
      ? `NULL::${duckType(item)}`
      : expression(item, child, { sql: from, depth: depth + 1 });
  if (isStruct(type)) {
    const fields = type.fields.map((field) => {
      const child = part(field.id);
      const value =
        child === undefined
          ? missing(field)
          : inner(field.type, child, `struct_extract(${sql}, ${literal(child.name)})`);
      return `${identifier(field.name)} := ${value}`;
    });
    return `CASE WHEN ${sql} IS NULL THEN NULL ELSE struct_pack(${fields.join(', ')}) END`;
  }
  if (isList(type)) {
    const item = inner(type.element, part(type['element-id']) ?? parts[0], variable);
    return `list_transform(${sql}, lambda ${variable}: ${item})`;
  }
  if (isMap(type)) {
    const key = inner(type.key, part(type['key-id']) ?? parts[0], `${variable}.key`);
    const value = inner(type.value, part(type['value-id']) ?? parts[1], `${variable}.value`);
    return `map_from_entries(list_transform(map_entries(${sql}), lambda ${variable}: struct_pack(key := ${key}, value := ${value})))`;
  }
  return `NULL::${duckType(type)}`;
}
