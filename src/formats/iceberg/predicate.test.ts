import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bindSpec } from './partition.ts';
import { summarisePartitions } from './partition-summary.ts';
import { fileMayMatch, manifestMayMatch, type Predicate } from './predicate.ts';
import { TestTable } from './test-table.ts';
import type { PartitionValue, Schema } from './types.ts';
import { compareValues, encodeSingleValue, type PrimitiveValue } from './value.ts';

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'n', required: false, type: 'long' },
    { id: 2, name: 's', required: false, type: 'string' },
    { id: 3, name: 'd', required: false, type: 'double' },
    { id: 4, name: 't', required: false, type: 'timestamptz' },
  ],
};
const TYPES: Readonly<Record<number, string>> = {
  1: 'long',
  2: 'string',
  3: 'double',
  4: 'timestamptz',
};
const VALUES: Readonly<Record<number, fc.Arbitrary<PrimitiveValue>>> = {
  1: fc.bigInt({ min: -20n, max: 20n }),
  2: fc.string({ maxLength: 3, unit: fc.constantFrom('a', 'b', 'é', '\u{1F680}') }),
  3: fc.constantFrom(-1.5, -0, 0, 2, 7, Number.NaN, Number.POSITIVE_INFINITY),
  4: fc.bigInt({ min: -200_000_000_000n, max: 200_000_000_000n }),
};

const predicates: fc.Arbitrary<Predicate> = fc.letrec<{ any: Predicate }>((tie) => {
  const fieldId = fc.constantFrom(1, 2, 3, 4);
  const leaf = fieldId.chain((id): fc.Arbitrary<Predicate> => {
    const value = VALUES[id]!;
    return fc.oneof(
      fc.record({
        kind: fc.constant('compare' as const),
        operator: fc.constantFrom('=', '!=', '<', '<=', '>', '>='),
        fieldId: fc.constant(id),
        value,
      }),
      fc.record({
        kind: fc.constant('in' as const),
        fieldId: fc.constant(id),
        values: fc.array(value, { maxLength: 3 }),
      }),
      fc.record({ kind: fc.constantFrom('is-null', 'not-null'), fieldId: fc.constant(id) }),
    );
  });
  return {
    any: fc.oneof(
      { depthSize: 'small', maxDepth: 3 },
      leaf,
      fc.record({
        kind: fc.constantFrom('and' as const, 'or' as const),
        parts: fc.array(tie('any'), { minLength: 1, maxLength: 3 }),
      }),
    ),
  };
}).any;

type Row = Readonly<Record<number, PartitionValue>>;
const rows: fc.Arbitrary<Row[]> = fc.array(
  fc.record(
    Object.fromEntries(Object.entries(VALUES).map(([id, value]) => [id, fc.option(value)])),
  ) as fc.Arbitrary<Row>,
  { minLength: 1, maxLength: 5 },
);

/** As engines order: NaN equals itself and is above all numbers. */
function order(a: PrimitiveValue, b: PrimitiveValue): number {
  if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return compareValues(a, b);
}

function matches(predicate: Predicate, row: Row): boolean {
  if ('parts' in predicate) {
    const test = (part: Predicate) => matches(part, row);
    return predicate.kind === 'and' ? predicate.parts.every(test) : predicate.parts.some(test);
  }
  const value = row[predicate.fieldId] ?? null;
  if (predicate.kind === 'is-null') return value === null;
  if (!('operator' in predicate || 'values' in predicate)) return value !== null;
  if (value === null) return false;
  if ('values' in predicate) return predicate.values.some((one) => order(value, one) === 0);
  const sign = order(value, predicate.value);
  const truth = {
    '=': sign === 0,
    '!=': sign !== 0,
    '<': sign < 0,
    '<=': sign <= 0,
    '>': sign > 0,
    '>=': sign >= 0,
  };
  return truth[predicate.operator];
}

/** Bounds and counts of the rows, as a writer would state them. */
function metricsOf(file: readonly Row[]) {
  const maps = {
    columnSizes: new Map<number, number>(),
    valueCounts: new Map<number, number>(),
    nullValueCounts: new Map<number, number>(),
    nanValueCounts: new Map<number, number>(),
    lowerBounds: new Map<number, Uint8Array>(),
    upperBounds: new Map<number, Uint8Array>(),
  };
  for (const id of [1, 2, 3, 4]) {
    const values = file.map((row) => row[id] ?? null);
    const present = values.filter((one) => one !== null && !Number.isNaN(one)) as PrimitiveValue[];
    present.sort(compareValues);
    maps.valueCounts.set(id, values.length);
    maps.nullValueCounts.set(id, values.filter((one) => one === null).length);
    maps.nanValueCounts.set(id, values.filter((one) => Number.isNaN(one)).length);
    if (present.length === 0) continue;
    maps.lowerBounds.set(id, encodeSingleValue(TYPES[id]!, present[0]!));
    maps.upperBounds.set(id, encodeSingleValue(TYPES[id]!, present.at(-1)!));
  }
  return maps;
}

const table = new TestTable({ schema });

test('a file or manifest is never left out while one of its rows matches', () => {
  const spec = bindSpec({ 'spec-id': 0, fields: [] }, schema);
  fc.assert(
    fc.property(rows, predicates, (file, predicate) => {
      const description = table.file({ metrics: metricsOf(file) });
      if (file.some((row) => matches(predicate, row)))
        expect(fileMayMatch(predicate, description, { spec, schema })).toBe(true);
    }),
    { seed: 1, numRuns: 3000 },
  );
});

test('nor by its partition, whatever the transform', () => {
  const transforms = [
    'identity',
    'bucket[4]',
    'truncate[2]',
    'day',
    'hour',
    'month',
    'year',
    'void',
  ];
  const choices = [1, 2, 3, 4].flatMap((source) =>
    transforms.map((transform) => ({ source, transform })),
  );
  const valid = choices.flatMap(({ source, transform }) => {
    const fields = [{ 'source-id': source, 'field-id': 1000, name: 'p', transform }];
    try {
      return [bindSpec({ 'spec-id': 0, fields }, schema)];
    } catch {
      return [];
    }
  });
  expect(valid.length).toBeGreaterThan(12);
  fc.assert(
    fc.property(fc.constantFrom(...valid), rows, predicates, (spec, some, predicate) => {
      const [{ field, apply }] = spec.fields as [(typeof spec.fields)[number]];
      const key = (row: Row) => apply(row[field['source-id']] ?? null);
      const partition = [key(some[0]!)];
      const file = some.filter((row) => String(key(row)) === String(partition[0]));
      const description = table.file({ partition });
      if (!file.some((row) => matches(predicate, row))) return;
      expect(fileMayMatch(predicate, description, { spec, schema })).toBe(true);
      expect(manifestMayMatch(predicate, spec, summarisePartitions(spec, [partition]))).toBe(true);
    }),
    { seed: 2, numRuns: 3000 },
  );
});

test('what certainly holds no match is left out', () => {
  const spec = bindSpec(
    { 'spec-id': 0, fields: [{ 'source-id': 4, 'field-id': 1000, name: 'h', transform: 'hour' }] },
    schema,
  );
  const file = table.file({
    partition: [10],
    metrics: metricsOf([{ 1: 5n, 2: 'b', 3: 1, 4: null }]),
  });
  const may = (predicate: Predicate) => fileMayMatch(predicate, file, { spec, schema });
  const hours = (value: bigint) => value * 3_600_000_000n;
  expect(may({ kind: 'compare', operator: '>', fieldId: 1, value: 5n })).toBe(false);
  expect(may({ kind: 'compare', operator: '!=', fieldId: 1, value: 5n })).toBe(false);
  expect(may({ kind: 'in', fieldId: 2, values: ['a', 'c'] })).toBe(false);
  expect(may({ kind: 'is-null', fieldId: 1 })).toBe(false);
  expect(may({ kind: 'compare', operator: '>=', fieldId: 4, value: hours(11n) })).toBe(false);
  expect(may({ kind: 'compare', operator: '<', fieldId: 4, value: hours(9n) })).toBe(false);
  const summaries = summarisePartitions(spec, [[10], [12]]);
  const late: Predicate = { kind: 'compare', operator: '>', fieldId: 4, value: hours(14n) };
  expect(manifestMayMatch(late, spec, summaries)).toBe(false);
});
