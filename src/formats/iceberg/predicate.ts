// Predicates over columns, and what they can rule out: a manifest by its partition summaries, a file by its partition
// tuple and its column bounds. "May match" is inclusive: a false answer is a proof that no row matches.
// Source: Iceberg table spec, "Scan Planning".

import type { BoundPartitionField, BoundPartitionSpec } from './partition.ts';
import type { PartitionFieldSummary } from './partition-summary.ts';
import { isPrimitive } from './primitive.ts';
import { findField } from './schema.ts';
import { transformResultType } from './transform.ts';
import type { DataFile, PartitionValue, PrimitiveTypeName, Schema } from './types.ts';
import { compareValues, decodeSingleValue, type PrimitiveValue } from './value.ts';

export type CompareOperator = '=' | '!=' | '<' | '<=' | '>' | '>=';

/** Every comparison is false for null, as in SQL. Values have the form of the column's type (types.ts, PartitionValue). */
export type Predicate =
  | { readonly kind: 'and' | 'or'; readonly parts: readonly Predicate[] }
  | {
      readonly kind: 'compare';
      readonly operator: CompareOperator;
      readonly fieldId: number;
      readonly value: PrimitiveValue;
    }
  | { readonly kind: 'in'; readonly fieldId: number; readonly values: readonly PrimitiveValue[] }
  | { readonly kind: 'is-null' | 'not-null'; readonly fieldId: number };

/** What is known about one column's values in a file or manifest. Undefined means unknown. */
interface Range {
  readonly lower: PrimitiveValue | undefined;
  readonly upper: PrimitiveValue | undefined;
  readonly mayBeNull: boolean;
  readonly mayBeValue: boolean;
  /** Engines order NaN above all numbers, and bounds leave it out. */
  readonly mayBeNan: boolean;
}

type RangeOf = (fieldId: number) => readonly RangeTest[];

/** A range, and how a predicate's value is brought into its terms: through a partition transform, or as it is. */
interface RangeTest {
  readonly range: Range;
  readonly project: (value: PrimitiveValue) => PartitionValue;
  /** `exact`: the values themselves; `ordered`: a transform that keeps order; `equal`: one that keeps equality only. */
  readonly keeps: 'exact' | 'ordered' | 'equal';
}

function evaluate(predicate: Predicate, rangeOf: RangeOf): boolean {
  switch (predicate.kind) {
    case 'and':
      return predicate.parts.every((part) => evaluate(part, rangeOf));
    case 'or':
      return predicate.parts.some((part) => evaluate(part, rangeOf));
    case 'is-null':
      return rangeOf(predicate.fieldId).every(({ range }) => range.mayBeNull);
    case 'not-null':
      return rangeOf(predicate.fieldId).every(({ range }) => range.mayBeValue);
    case 'in':
      return predicate.values.some((value) =>
        rangeOf(predicate.fieldId).every((test) => mayCompare(test, '=', value)),
      );
    case 'compare':
      return rangeOf(predicate.fieldId).every((test) =>
        mayCompare(test, predicate.operator, predicate.value),
      );
  }
}

function mayCompare(
  { range, project, keeps }: RangeTest,
  operator: CompareOperator,
  value: PrimitiveValue,
): boolean {
  if (!range.mayBeValue) return false;
  if (Number.isNaN(value)) return true;
  const projected = project(value);
  if (projected === null) return true;
  const { lower, upper } = range;
  const below = (strict: boolean) => {
    if (lower === undefined) return true;
    const order = compareValues(lower, projected);
    return strict ? order < 0 : order <= 0;
  };
  const above = (strict: boolean) => {
    if (upper === undefined || range.mayBeNan) return true;
    const order = compareValues(upper, projected);
    return strict ? order > 0 : order >= 0;
  };
  // A transform maps several values to one: strict comparison of its results would lose the border.
  const strict = keeps === 'exact';
  switch (operator) {
    case '=':
      return below(false) && (upper === undefined || compareValues(upper, projected) >= 0);
    case '!=':
      return keeps !== 'exact' || range.mayBeNan || !isOnly(range, projected);
    case '<':
    case '<=':
      return keeps === 'equal' || below(strict && operator === '<');
    case '>':
    case '>=':
      return keeps === 'equal' || above(strict && operator === '>');
  }
}

const isOnly = ({ lower, upper }: Range, value: PrimitiveValue) =>
  lower !== undefined &&
  upper !== undefined &&
  compareValues(lower, value) === 0 &&
  compareValues(upper, value) === 0;

/** Partition fields of one source column that say something about its values. */
function useful(spec: BoundPartitionSpec, fieldId: number): [BoundPartitionField, number][] {
  return spec.fields
    .map((bound, index): [BoundPartitionField, number] => [bound, index])
    .filter(
      ([{ field, transform }]) =>
        field['source-id'] === fieldId && transform.name !== 'void' && transform.name !== 'unknown',
    );
}

function testOf({ transform, apply }: BoundPartitionField, range: Range): RangeTest {
  const keeps =
    transform.name === 'identity' ? 'exact' : transform.name === 'bucket' ? 'equal' : 'ordered';
  return { range, project: apply, keeps };
}

const isFloat = (type: PrimitiveTypeName) => type === 'float' || type === 'double';

/** May any file of a manifest with these summaries match? */
export function manifestMayMatch(
  predicate: Predicate,
  spec: BoundPartitionSpec,
  summaries: readonly PartitionFieldSummary[] | undefined,
): boolean {
  if (summaries === undefined || summaries.length !== spec.fields.length) return true;
  return evaluate(predicate, (fieldId) =>
    useful(spec, fieldId).map(([bound, index]) =>
      testOf(bound, summaryRange(summaries[index]!, bound)),
    ),
  );
}

function summaryRange(summary: PartitionFieldSummary, bound: BoundPartitionField): Range {
  const type = transformResultType(bound.transform, bound.sourceType);
  const decode = (bytes: Uint8Array | undefined) =>
    bytes === undefined ? undefined : decodeSingleValue(type, bytes);
  const mayBeNan = isFloat(type) && summary.containsNan !== false;
  return {
    lower: decode(summary.lowerBound),
    upper: decode(summary.upperBound),
    mayBeNull: summary.containsNull,
    mayBeValue: summary.lowerBound !== undefined || mayBeNan,
    mayBeNan,
  };
}

/** May any row of the file match, by its partition tuple and its column bounds? */
export function fileMayMatch(
  predicate: Predicate,
  file: DataFile,
  context: { readonly spec: BoundPartitionSpec; readonly schema: Schema },
): boolean {
  const { spec, schema } = context;
  return evaluate(predicate, (fieldId) => {
    const tests = useful(spec, fieldId).map(([bound, index]) =>
      testOf(bound, tupleRange(file.partition[index] ?? null)),
    );
    const bounds = boundsRange(file, schema, fieldId);
    if (bounds !== undefined)
      tests.push({ range: bounds, project: (value) => value, keeps: 'exact' });
    return tests;
  });
}

function tupleRange(value: PartitionValue): Range {
  if (value === null || Number.isNaN(value)) {
    return {
      lower: undefined,
      upper: undefined,
      mayBeNull: value === null,
      mayBeValue: value !== null,
      mayBeNan: value !== null,
    };
  }
  return { lower: value, upper: value, mayBeNull: false, mayBeValue: true, mayBeNan: false };
}

function boundsRange(file: DataFile, schema: Schema, fieldId: number): Range | undefined {
  const field = findField(schema, fieldId);
  if (field === undefined || !isPrimitive(field.type) || field.repeated) return undefined;
  const { type } = field;
  const { lowerBounds, upperBounds, valueCounts, nullValueCounts, nanValueCounts } = file.metrics;
  const decode = (bytes: Uint8Array | undefined) => {
    const value = bytes === undefined ? undefined : decodeSingleValue(type, bytes);
    return Number.isNaN(value) ? undefined : value;
  };
  const nulls = nullValueCounts.get(fieldId);
  const values = valueCounts.get(fieldId);
  return {
    lower: decode(lowerBounds.get(fieldId)),
    upper: decode(upperBounds.get(fieldId)),
    mayBeNull: nulls === undefined || nulls > 0,
    mayBeValue: nulls === undefined || values === undefined || nulls < values,
    mayBeNan: isFloat(type) && nanValueCounts.get(fieldId) !== 0,
  };
}
