import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BytesColumn } from '../formats/arrow/byte-columns.ts';
import type { StructColumn } from '../formats/arrow/nested-columns.ts';
import type { Int32Column, Int64Column } from '../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../formats/arrow/table-columns.ts';
import { bindSpec, partitionKey } from '../formats/iceberg/partition.ts';
import type { PartitionSpec, PartitionValue, Schema } from '../formats/iceberg/types.ts';
import { Clusterer } from './cluster.ts';

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'at', required: false, type: 'timestamptz' },
    { id: 2, name: 'name', required: false, type: 'string' },
    {
      id: 3,
      name: 's',
      required: false,
      type: { type: 'struct', fields: [{ id: 4, name: 'n', required: false, type: 'int' }] },
    },
  ],
};

interface Row {
  readonly at: bigint | null;
  readonly name: string | null;
  /** Null: the struct is null. */
  readonly n: number | null;
}

function build(rows: readonly Row[]): TableColumns {
  const columns = new TableColumns(schema);
  const [at, name, s] = columns.columns as [Int64Column, BytesColumn, StructColumn];
  for (const row of rows) {
    if (row.at === null) at.appendNull();
    else at.appendBigInt(row.at);
    if (row.name === null) name.appendNull();
    else name.appendText(row.name);
    if (row.n === null) s.appendNull();
    else {
      (s.childAt(0) as Int32Column).append(row.n);
      s.end();
    }
    columns.endRow();
  }
  columns.align();
  return columns;
}

const row: fc.Arbitrary<Row> = fc.record({
  at: fc.option(
    fc.oneof(
      fc.bigInt({ min: -(10n ** 16n), max: 10n ** 16n }),
      fc.bigInt({ min: 0n, max: 2n ** 62n }),
    ),
  ),
  name: fc.option(fc.constantFrom('', 'a', 'ab', 'äöü', '😀x', 'zebra')),
  n: fc.option(fc.integer({ min: -3, max: 3 })),
});

const specs: PartitionSpec[] = [
  [['hour', 1]],
  [
    ['month', 1],
    ['truncate[1]', 2],
  ],
  [
    ['identity', 2],
    ['bucket[3]', 4],
  ],
  [
    ['year', 1],
    ['identity', 4],
    ['void', 2],
  ],
].map((fields, id) => ({
  'spec-id': id,
  fields: fields.map(([transform, source], n) => ({
    'source-id': source as number,
    'field-id': 1000 + n,
    name: `f${n}`,
    transform: transform as string,
  })),
}));

test('every row is in the group of its own tuple, in order, up to the bound', () => {
  fc.assert(
    fc.property(
      fc.array(row, { maxLength: 60 }),
      fc.constantFrom(...specs),
      fc.integer({ min: 1, max: 20 }),
      (rows, spec, maximum) => {
        const columns = build(rows);
        const { groups, cut } = new Clusterer(spec, schema).cluster(columns, maximum);
        const bound = bindSpec(spec, schema);
        const sourceOf = (of: Row, id: number): PartitionValue =>
          [of.at, of.name, null, of.n][id - 1]!;
        const tuple = (of: Row) =>
          bound.fields.map((field) => field.apply(sourceOf(of, field.field['source-id'])));
        const seen: number[] = [];
        for (const group of groups) {
          const members = group.rows ?? Int32Array.from({ length: cut }, (_, n) => n);
          expect([...members]).toEqual([...members].toSorted((a, b) => a - b));
          for (const n of members) {
            expect(partitionKey(0, tuple(rows[n]!))).toBe(partitionKey(0, group.partition));
            seen.push(n);
          }
        }
        expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: cut }, (_, n) => n));
        const keys = groups.map((group) => partitionKey(0, group.partition));
        expect(new Set(keys).size).toBe(keys.length);
        expect(groups.length).toBeLessThanOrEqual(maximum);
        if (cut < rows.length) expect(keys).not.toContain(partitionKey(0, tuple(rows[cut]!)));
      },
    ),
    { seed: 3, numRuns: 300 },
  );
});
