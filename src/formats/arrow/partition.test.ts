import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileTransform, parseTransform } from '../iceberg/transform.ts';
import type {
  NestedField,
  PartitionField,
  PartitionValue,
  PrimitiveTypeName,
  Schema,
} from '../iceberg/types.ts';
import type { BytesColumn, FixedColumn } from './byte-columns.ts';
import type { StructColumn } from './nested-columns.ts';
import { partitionRows } from './partition.ts';
import type { BooleanColumn, FloatColumn, Int32Column, Int64Column } from './scalar-columns.ts';
import { TableColumns } from './table-columns.ts';

const schemaOf = (...types: NestedField['type'][]): Schema => ({
  type: 'struct',
  'schema-id': 0,
  fields: types.map((type, i) => ({ id: i + 1, name: `c${i}`, required: false, type })),
});

const specOf = (...fields: (readonly [source: number, transform: string])[]) => ({
  'spec-id': 1,
  fields: fields.map(
    ([source, transform], i): PartitionField => ({
      'source-id': source,
      'field-id': 1000 + i,
      name: `p${i}`,
      transform,
    }),
  ),
});

function append(columns: TableColumns, value: PartitionValue): void {
  const column = columns.columns[0]!;
  if (value === null) column.appendNull();
  else if (typeof value === 'boolean') (column as BooleanColumn).append(value);
  else if (typeof value === 'string') (column as BytesColumn).appendText(value);
  else if (typeof value === 'bigint' && String(column.type).startsWith('decimal')) {
    (column as FixedColumn).appendBigInt(value);
  } else if (typeof value === 'bigint') (column as Int64Column).appendBigInt(value);
  else if (typeof value === 'number') (column as Int32Column | FloatColumn).append(value);
  else if (column.type === 'binary') (column as BytesColumn).append(value, 0, value.length);
  else (column as FixedColumn).append(value, 0);
  columns.endRow();
}

const micros = fc.bigInt({ min: -(2n ** 55n), max: 2n ** 55n });
const bytes = (size: number) => fc.uint8Array({ minLength: size, maxLength: size });

/** For each type: values, and the transforms that take it. */
const CASES: Record<string, [fc.Arbitrary<PartitionValue>, string[]]> = {
  boolean: [fc.boolean(), ['identity', 'void']],
  int: [fc.integer(), ['identity', 'bucket[7]', 'truncate[10]']],
  long: [
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    ['identity', 'bucket[16]', 'truncate[100]'],
  ],
  date: [
    fc.integer({ min: -800_000, max: 800_000 }),
    ['identity', 'year', 'month', 'day', 'bucket[5]'],
  ],
  timestamp: [micros, ['identity', 'year', 'month', 'day', 'hour', 'bucket[3]']],
  timestamptz: [micros, ['year', 'month', 'day', 'hour']],
  timestamptz_ns: [
    fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }),
    ['year', 'day', 'hour', 'bucket[4]'],
  ],
  string: [fc.string({ unit: 'grapheme', maxLength: 6 }), ['identity', 'bucket[9]', 'truncate[2]']],
  binary: [fc.uint8Array({ maxLength: 4 }), ['identity', 'bucket[9]', 'truncate[1]']],
  uuid: [bytes(16), ['identity', 'bucket[8]']],
  'decimal(20,2)': [
    fc.bigInt({ min: -(10n ** 19n), max: 10n ** 19n }),
    ['identity', 'bucket[8]', 'truncate[50]'],
  ],
};

const comparable = (value: PartitionValue) =>
  value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value;

describe('partitionRows', () => {
  for (const [type, [values, transforms]] of Object.entries(CASES)) {
    for (const transform of transforms) {
      it(`agrees with ${transform} of each ${type}`, () => {
        const apply = compileTransform(parseTransform(transform), type as PrimitiveTypeName);
        const rows = fc.array(fc.option(values, { nil: null }), { minLength: 1, maxLength: 60 });
        fc.assert(
          fc.property(rows, (given) => {
            const columns = new TableColumns(schemaOf(type as PrimitiveTypeName));
            for (const value of given) append(columns, value);
            const { groups } = partitionRows(columns, specOf([1, transform]));
            const seen: unknown[] = new Array(given.length);
            for (const group of groups) {
              for (const row of group.rows) seen[row] = comparable(group.values[0]!);
            }
            expect(seen).toEqual(given.map((value) => comparable(apply(value))));
            const tuples = groups.map((group) => String(comparable(group.values[0]!)));
            expect(new Set(tuples).size).toBe(groups.length);
          }),
          { numRuns: 40, seed: 7 },
        );
      });
    }
  }

  it('combines fields, nested sources included, and keeps the order of rows', () => {
    const schema = schemaOf('int', {
      type: 'struct',
      fields: [{ id: 9, name: 'x', required: false, type: 'string' }],
    });
    const columns = new TableColumns(schema);
    for (let i = 0; i < 12; i++) {
      (columns.byId(1) as Int32Column).append(i % 2);
      const struct = columns.byId(2) as StructColumn;
      if (i % 3 === 0) struct.appendNull();
      else {
        (struct.childAt(0) as BytesColumn).appendText(i % 3 === 1 ? 'a' : 'b');
        struct.end();
      }
      columns.endRow();
    }
    const { groups } = partitionRows(columns, specOf([1, 'identity'], [9, 'identity']));
    expect(groups.map(({ values, rows }) => [values, Array.from(rows)])).toEqual([
      [
        [0, null],
        [0, 6],
      ],
      [
        [1, 'a'],
        [1, 7],
      ],
      [
        [0, 'b'],
        [2, 8],
      ],
      [
        [1, null],
        [3, 9],
      ],
      [
        [0, 'a'],
        [4, 10],
      ],
      [
        [1, 'b'],
        [5, 11],
      ],
    ]);
  });

  it('gives one group without partition fields, none without rows', () => {
    const columns = new TableColumns(schemaOf('int'));
    expect(partitionRows(columns, specOf())).toEqual({ groups: [], cut: 0 });
    append(columns, 1);
    append(columns, 2);
    expect(partitionRows(columns, specOf())).toEqual({
      groups: [{ values: [], rows: Int32Array.of(0, 1) }],
      cut: 2,
    });
  });

  it('stops before the row that would open one partition too many', () => {
    const columns = new TableColumns(schemaOf('int'));
    for (const value of [5, 6, 5, 7, 6, 8, 5]) append(columns, value);
    const spec = specOf([1, 'identity'], [77, 'void']);
    const { groups, cut } = partitionRows(columns, spec, 3);
    expect(cut).toBe(5);
    expect(groups.map(({ values, rows }) => [values, Array.from(rows)])).toEqual([
      [
        [5, null],
        [0, 2],
      ],
      [
        [6, null],
        [1, 4],
      ],
      [[7, null], [3]],
    ]);
    expect(() => partitionRows(columns, specOf([77, 'day']))).toThrow('no source column');
  });
});
