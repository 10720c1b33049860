// Partition and sort expressions of a topic's config against a schema: an Iceberg partition spec or sort order, or the
// reason why not.
import { FloeError } from '../base/error.ts';
import { bindSpec, FIRST_PARTITION_FIELD_ID } from '../formats/iceberg/partition.ts';
import { isPrimitive } from '../formats/iceberg/primitive.ts';
import { findField } from '../formats/iceberg/schema.ts';
import { canTransform, parseTransform } from '../formats/iceberg/transform.ts';
import type { PartitionField, PartitionSpec, Schema, SortField } from '../formats/iceberg/types.ts';
import {
  formatPath,
  type PartitionExpression,
  type SortExpression,
  transformText,
} from './column-list.ts';

/**
 * Fields of the spec. Those that `present` specs have already (same source, same transform) keep their ids and
 * names, as the specification asks; others are numbered from `lastPartitionId` + 1.
 * @throws FloeError `invalid` naming the column or the transform that doesn't fit.
 */
export function buildPartitionFields(
  expressions: readonly PartitionExpression[],
  schema: Schema,
  present: { readonly specs: readonly PartitionSpec[]; readonly lastPartitionId: number } = {
    specs: [],
    lastPartitionId: FIRST_PARTITION_FIELD_ID - 1,
  },
): readonly PartitionField[] {
  let lastId = Math.max(present.lastPartitionId, FIRST_PARTITION_FIELD_ID - 1);
  const known = present.specs.flatMap((spec) => spec.fields);
  const fields: PartitionField[] = [];
  for (const expression of expressions) {
    const source = sourceColumn('table.topic.partition.by', expression, schema);
    const transform = transformText(expression);
    const same = known.find(
      (field) => field['source-id'] === source.id && field.transform === transform,
    );
    const name = same?.name ?? uniqueName(fieldName(expression), [...fields, ...known], schema);
    if (fields.some((field) => field['source-id'] === source.id && field.transform === transform)) {
      throw new FloeError(
        'invalid',
        `table.topic.partition.by: "${formatPath(expression.column)}" is there twice with the same transform`,
      );
    }
    if (same === undefined) lastId += 1;
    fields.push({
      'source-id': source.id,
      'field-id': same?.['field-id'] ?? lastId,
      name,
      transform,
    });
  }
  checkTransforms(fields, schema);
  return fields;
}

/** @throws FloeError `invalid` when there is no such column, or it is inside a list or map. */
function sourceColumn(setting: string, { column }: PartitionExpression, schema: Schema) {
  const source = findField(schema, column.join('.'));
  if (source !== undefined && !source.repeated) return source;
  throw new FloeError(
    'invalid',
    `${setting}: there is no column "${formatPath(column)}" to go by; columns are ${schema.fields.map((field) => field.name).join(', ')}`,
  );
}

/**
 * Fields of the sort order.
 * @throws FloeError `invalid` naming the column or the transform that doesn't fit.
 */
export function buildSortFields(
  expressions: readonly SortExpression[],
  schema: Schema,
): readonly SortField[] {
  const setting = 'table.topic.sort.by';
  return expressions.map((expression) => {
    const source = sourceColumn(setting, expression, schema);
    const transform = transformText(expression);
    if (!isPrimitive(source.type) || !canTransform(parseTransform(transform), source.type)) {
      const type = isPrimitive(source.type) ? source.type : source.type.type;
      throw new FloeError(
        'invalid',
        `${setting}: ${transform} can't take "${formatPath(expression.column)}", a ${type}`,
      );
    }
    return {
      transform,
      'source-id': source.id,
      direction: expression.direction,
      'null-order': `nulls-${expression.nulls}` as const,
    };
  });
}

export function sameSortFields(a: readonly SortField[], b: readonly SortField[]): boolean {
  return (
    a.length === b.length &&
    a.every(
      (field, i) =>
        field['source-id'] === b[i]!['source-id'] &&
        field.transform === b[i]!.transform &&
        field.direction === b[i]!.direction &&
        field['null-order'] === b[i]!['null-order'],
    )
  );
}

function checkTransforms(fields: readonly PartitionField[], schema: Schema): void {
  try {
    bindSpec({ 'spec-id': 0, fields }, schema);
  } catch (caught) {
    throw new FloeError('invalid', `table.topic.partition.by: ${FloeError.from(caught).message}`, {
      cause: caught,
    });
  }
}

/** The names other writers give: `ts_hour`, `id_bucket_16`, `name_trunc_4`; identity is the column's own. */
function fieldName({ transform, column, parameter }: PartitionExpression): string {
  const name = column.join('.');
  switch (transform) {
    case 'identity':
      return name;
    case 'bucket':
      return `${name}_bucket_${parameter}`;
    case 'truncate':
      return `${name}_trunc_${parameter}`;
    case 'void':
      return `${name}_null`;
    default:
      return `${name}_${transform}`;
  }
}

/** A partition field may not be called like a column that isn't its identity source. */
function uniqueName(wanted: string, fields: readonly PartitionField[], schema: Schema): string {
  const identity = findField(schema, wanted) !== undefined;
  let name = wanted;
  for (
    let n = 2;
    fields.some((field) => field.name === name) ||
    (!identity && schema.fields.some((field) => field.name === name));
    n += 1
  ) {
    name = `${wanted}_${n}`;
  }
  return name;
}

/** Whether a spec says the same as `fields`. */
export function sameSpec(spec: PartitionSpec, fields: readonly PartitionField[]): boolean {
  return (
    spec.fields.length === fields.length &&
    spec.fields.every(
      (field, i) =>
        field['source-id'] === fields[i]!['source-id'] && field.transform === fields[i]!.transform,
    )
  );
}
