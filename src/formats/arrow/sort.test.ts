// Sorted rows against a plain comparison sort of the same values, over every type, direction and place of nulls.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileTransform, parseTransform } from '../iceberg/transform.ts';
import type { PrimitiveTypeName, SortField, SortOrder } from '../iceberg/types.ts';
import { bigintFromBytes } from '../iceberg/value.ts';
import type { BytesColumn, FixedColumn } from './byte-columns.ts';
import type { Column } from './column.ts';
import type { StructColumn } from './nested-columns.ts';
import type { BooleanColumn, FloatColumn, Int32Column, Int64Column } from './scalar-columns.ts';
import { sortRows } from './sort.ts';
import { TableColumns } from './table-columns.ts';

const fewOr = <T>(few: readonly T[], any: fc.Arbitrary<T>) =>
  fc.oneof(fc.constantFrom(...few), any);

const text = fewOr(
  ['', 'a', 'a\0', 'same long beginning 1', 'same long beginning 2', 'é', '\u{10ffff}', '\uffff'],
  fc.string({ unit: 'binary', maxLength: 20 }).filter((s) => s.isWellFormed()),
);
const bits = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });

type Append = (column: Column, value: never) => void;
const KINDS: readonly (readonly [PrimitiveTypeName, fc.Arbitrary<unknown>, Append])[] = [
  ['boolean', fc.boolean(), (c, v) => (c as BooleanColumn).append(v)],
  ['int', fewOr([0, -1, 5], fc.integer()), (c, v) => (c as Int32Column).append(v)],
  ['long', fewOr([0n, -1n], bits), (c, v) => (c as Int64Column).appendBigInt(v)],
  ['timestamptz', fewOr([0n, 3n], bits), (c, v) => (c as Int64Column).appendBigInt(v)],
  [
    'double',
    fewOr([0, -0, Number.NaN, Number.POSITIVE_INFINITY], fc.double()),
    (c, v) => (c as FloatColumn).append(v),
  ],
  ['float', fc.float(), (c, v) => (c as FloatColumn).append(v)],
  ['string', text, (c, v) => (c as BytesColumn).appendText(v)],
  [
    'decimal(20, 2)',
    fc.bigInt({ min: -(10n ** 20n) + 1n, max: 10n ** 20n - 1n }),
    (c, v) => (c as FixedColumn).appendBigInt(v),
  ],
  [
    'fixed[3]',
    fc.uint8Array({ minLength: 3, maxLength: 3 }),
    (c, v) => (c as FixedColumn).append(v, 0),
  ],
];

function compare(type: PrimitiveTypeName, a: unknown, b: unknown): number {
  if (typeof a === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
  if (type.startsWith('decimal')) {
    const [x, y] = [bigintFromBytes(a as Uint8Array), bigintFromBytes(b as Uint8Array)];
    return x < y ? -1 : x > y ? 1 : 0;
  }
  if (a instanceof Uint8Array) return Buffer.compare(a, b as Uint8Array);
  if (typeof a === 'number' && typeof b === 'number') {
    if (Number.isNaN(a) || Number.isNaN(b))
      return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
    if (a === b) return Number(Object.is(b, -0)) - Number(Object.is(a, -0));
  }
  return (a as number) < (b as number) ? -1 : (a as number) > (b as number) ? 1 : 0;
}

function reference(columns: TableColumns, { fields }: SortOrder): number[] {
  const rows = Array.from({ length: columns.rowCount }, (_, row) => row);
  return rows.sort((x, y) => {
    for (const field of fields) {
      const column = columns.byId(field['source-id'])!;
      const [a, b] = [column.valueAt(x), column.valueAt(y)];
      const nulls = field['null-order'] === 'nulls-first' ? -1 : 1;
      if (a === null || b === null) {
        if (a !== b) return a === null ? nulls : -nulls;
        continue;
      }
      const order = compare(column.type as PrimitiveTypeName, a, b);
      if (order !== 0) return field.direction === 'asc' ? order : -order;
    }
    return x - y;
  });
}

const fieldArbitrary = (sources: number) =>
  fc.record({
    transform: fc.constant('identity'),
    'source-id': fc.integer({ min: 1, max: sources }),
    direction: fc.constantFrom('asc' as const, 'desc' as const),
    'null-order': fc.constantFrom('nulls-first' as const, 'nulls-last' as const),
  });

test('any rows come in the order of a comparison sort, ties as they were', () => {
  const row = fc.tuple(
    ...KINDS.map(([, values]) =>
      fc.oneof({ weight: 1, arbitrary: fc.constant(null) }, { weight: 4, arbitrary: values }),
    ),
  );
  fc.assert(
    fc.property(
      fc.array(row, { maxLength: 60 }),
      fc.array(fieldArbitrary(KINDS.length), { minLength: 1, maxLength: 3 }),
      (rows, fields) => {
        const columns = new TableColumns({
          type: 'struct',
          'schema-id': 0,
          fields: KINDS.map(([type], i) => ({ id: i + 1, name: `c${i}`, required: false, type })),
        });
        for (const values of rows) {
          values.forEach((value, i) => {
            const column = columns.columns[i]!;
            if (value === null) column.appendNull();
            else KINDS[i]![2](column, value as never);
          });
          columns.endRow();
        }
        const order = { 'order-id': 1, fields };
        expect([...sortRows(columns, order)]).toEqual(reference(columns, order));
      },
    ),
    { seed: 11, numRuns: 400 },
  );
});

const asc = (transform: string, id: number, over: Partial<SortField> = {}): SortField => ({
  transform,
  'source-id': id,
  direction: 'asc',
  'null-order': 'nulls-first',
  ...over,
});

function longs(values: readonly (bigint | null)[], type: PrimitiveTypeName = 'long') {
  const columns = new TableColumns({
    type: 'struct',
    'schema-id': 0,
    fields: [{ id: 1, name: 'c', required: false, type }],
  });
  const [column] = columns.columns as [Int64Column];
  for (const value of values) {
    if (value === null) column.appendNull();
    else column.appendBigInt(value);
    columns.endRow();
  }
  return columns;
}

test('transforms sort by their result, ties as they were; void and unknown ones don’t sort', () => {
  const values = [7n, 3n, null, 12n, 9n, 5n, 1n];
  const columns = longs(values);
  const apply = compileTransform(parseTransform('bucket[3]'), 'long');
  const buckets = values.map((value) => (value === null ? -1 : Number(apply(value))));
  const rows = sortRows(columns, { 'order-id': 1, fields: [asc('bucket[3]', 1)] });
  const expected = [...values.keys()].sort((a, b) => buckets[a]! - buckets[b]! || a - b);
  expect([...rows]).toEqual(expected);
  const last = { 'null-order': 'nulls-last', direction: 'desc' } as const;
  const truncated = sortRows(columns, { 'order-id': 1, fields: [asc('truncate[5]', 1, last)] });
  expect([...truncated].map((row) => values[row])).toEqual([12n, 7n, 9n, 5n, 3n, 1n, null]);
  const as = (transform: string) =>
    sortRows(columns, { 'order-id': 1, fields: [asc(transform, 1)] });
  expect([...as('void')]).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect([...as('zorder[1,2]')]).toEqual([0, 1, 2, 3, 4, 5, 6]);
});

test('some of the rows, a field of a struct, a column that is gone; sorted rows stay the same array', () => {
  const columns = new TableColumns({
    type: 'struct',
    'schema-id': 0,
    fields: [
      {
        id: 1,
        name: 's',
        required: false,
        type: { type: 'struct', fields: [{ id: 2, name: 'x', required: false, type: 'int' }] },
      },
    ],
  });
  const struct = columns.columns[0] as StructColumn;
  for (const value of [4, null, 2, undefined, 9]) {
    if (value === null) struct.appendNull();
    else {
      if (value !== undefined) (struct.childAt(0) as Int32Column).append(value);
      struct.end();
    }
    columns.endRow();
  }
  const order = { 'order-id': 1, fields: [asc('identity', 99), asc('identity', 2)] };
  expect([...sortRows(columns, order)]).toEqual([1, 3, 2, 0, 4]);
  expect([...sortRows(columns, order, Int32Array.of(4, 2, 1))]).toEqual([1, 2, 4]);
  const already = Int32Array.of(2, 0, 4);
  expect(sortRows(columns, order, already)).toBe(already);
});

test('many rows with long common beginnings', () => {
  const columns = new TableColumns({
    type: 'struct',
    'schema-id': 0,
    fields: [{ id: 1, name: 'c', required: false, type: 'string' }],
  });
  const [column] = columns.columns as [BytesColumn];
  for (let i = 0; i < 20_000; i++) {
    column.appendText(`https://example.org/some/path/${(i * 7919) % 20_000}/end`);
    columns.endRow();
  }
  const rows = sortRows(columns, { 'order-id': 1, fields: [asc('identity', 1)] });
  const texts = [...rows].map((row) => column.valueAt(row) as string);
  expect(texts).toEqual(texts.toSorted());
});
