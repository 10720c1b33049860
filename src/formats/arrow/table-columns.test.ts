import { describe, expect, it } from 'vitest';
import type { NestedField, Schema } from '../iceberg/types.ts';
import type { BytesColumn } from './byte-columns.ts';
import type { ListColumn, MapColumn, StructColumn } from './nested-columns.ts';
import type { Int32Column, Int64Column } from './scalar-columns.ts';
import { TableColumns } from './table-columns.ts';

const field = (id: number, name: string, type: NestedField['type']): NestedField => ({
  id,
  name,
  required: false,
  type,
});

const schema: Schema = {
  type: 'struct',
  'schema-id': 3,
  fields: [
    field(1, 'n', 'int'),
    field(2, 'big', 'long'),
    field(3, 'text', 'string'),
    field(4, 'point', { type: 'struct', fields: [field(5, 'x', 'int'), field(6, 'y', 'string')] }),
    field(7, 'list', {
      type: 'list',
      'element-id': 8,
      'element-required': false,
      element: 'int',
    }),
    field(9, 'map', {
      type: 'map',
      'key-id': 10,
      key: 'string',
      'value-id': 11,
      'value-required': false,
      value: 'long',
    }),
  ],
};

const utf8 = (text: string) => new TextEncoder().encode(text);

/** Appends one row with everything set. */
function appendRow(columns: TableColumns, n: number): void {
  columns.align();
  (columns.byId(1) as Int32Column).append(n);
  (columns.byId(2) as Int64Column).append(n * 1e12);
  const text = utf8(`text ${n}`);
  (columns.byId(3) as BytesColumn).append(text, 0, text.length);
  const point = columns.byId(4) as StructColumn;
  (point.childAt(0) as Int32Column).append(n);
  point.end();
  const list = columns.byId(7) as ListColumn;
  for (let i = 0; i < n % 4; i++) (list.element as Int32Column).append(i);
  list.end();
  const map = columns.byId(9) as MapColumn;
  for (let i = 0; i < n % 3; i++) {
    (map.key as BytesColumn).appendText(`k${i}`);
    (map.value as Int64Column).append(i);
  }
  map.end();
}

const rowOf = (n: number) => [
  n,
  BigInt(n) * 10n ** 12n,
  `text ${n}`,
  { x: n, y: null },
  Array.from({ length: n % 4 }, (_, i) => i),
  Array.from({ length: n % 3 }, (_, i) => [`k${i}`, BigInt(i)]),
];

const rowAt = (columns: TableColumns, row: number) => columns.columns.map((c) => c.valueAt(row));

describe('TableColumns', () => {
  it('grows past its first capacity, nested columns too', () => {
    const columns = new TableColumns(schema);
    for (let n = 0; n < 5000; n++) {
      appendRow(columns, n);
      columns.endRow();
    }
    columns.align();
    for (const n of [0, 1, 1023, 1024, 4999]) expect(rowAt(columns, n)).toEqual(rowOf(n));
  });

  it('undoes a row that failed half-way, children without a row included', () => {
    const columns = new TableColumns(schema);
    appendRow(columns, 3);
    columns.endRow();
    (columns.byId(1) as Int32Column).append(9);
    (columns.byId(3) as BytesColumn).appendNull();
    ((columns.byId(7) as ListColumn).element as Int32Column).append(7);
    ((columns.byId(4) as StructColumn).childAt(1) as BytesColumn).appendText('half');
    ((columns.byId(9) as MapColumn).key as BytesColumn).appendText('half');
    columns.rollback();
    appendRow(columns, 5);
    columns.endRow();
    columns.align();
    expect(rowAt(columns, 0)).toEqual(rowOf(3));
    expect(rowAt(columns, 1)).toEqual(rowOf(5));
    expect(columns.byId(3)!.nullCount).toBe(0);
  });

  it('reads columns nobody touched as null', () => {
    const columns = new TableColumns(schema);
    columns.endRow();
    appendRow(columns, 1);
    columns.endRow();
    columns.endRow();
    columns.align();
    expect(rowAt(columns, 0)).toEqual([null, null, null, null, null, null]);
    expect(rowAt(columns, 1)).toEqual(rowOf(1));
    expect(columns.columns.map((column) => column.nullCount)).toEqual([2, 2, 2, 2, 2, 2]);
  });

  it('gathers rows in any order', () => {
    const columns = new TableColumns(schema);
    for (let n = 0; n < 50; n++) {
      if (n % 5 !== 0) appendRow(columns, n);
      columns.endRow();
    }
    const gathered = columns.gather(Int32Array.of(49, 5, 7, 7, 0));
    expect(gathered.rowCount).toBe(5);
    expect(rowAt(gathered, 0)).toEqual(rowOf(49));
    expect(rowAt(gathered, 1)).toEqual([null, null, null, null, null, null]);
    expect(rowAt(gathered, 3)).toEqual(rowOf(7));
  });

  it('gathers into the columns of an earlier gather as into new ones', () => {
    const columns = new TableColumns(schema);
    for (let n = 0; n < 3_000; n++) {
      if (n % 5 !== 0) appendRow(columns, n);
      columns.endRow();
    }
    // Larger, without nulls, then smaller with some, then larger than ever.
    const selections = [
      Int32Array.from({ length: 600 }, (_, n) => 5 * (n % 500) + 1),
      Int32Array.of(7, 10, 2_998, 0),
      Int32Array.from({ length: 3_000 }, (_, n) => 2_999 - n),
    ];
    let reused: TableColumns | undefined;
    for (const rows of selections) {
      reused = columns.gather(rows, reused);
      const fresh = columns.gather(rows);
      expect(reused.rowCount).toBe(rows.length);
      for (const n of rows.keys()) expect(rowAt(reused, n)).toEqual(rowAt(fresh, n));
    }
  });

  it('is empty after clear', () => {
    const columns = new TableColumns(schema);
    for (let n = 0; n < 10; n++) {
      appendRow(columns, n);
      columns.endRow();
    }
    columns.clear();
    expect(columns.byteSize()).toBe(0);
    appendRow(columns, 2);
    columns.endRow();
    columns.align();
    expect(rowAt(columns, 0)).toEqual(rowOf(2));
  });

  it('makes room for what is expected, and keeps what is there', () => {
    const columns = new TableColumns(schema);
    columns.expect(5_000);
    for (const n of [1, 2]) {
      appendRow(columns, n);
      columns.endRow();
    }
    columns.align();
    columns.expect(5_000);
    const capacities = columns.columns.map((column) => column.capacity);
    expect(Math.min(...capacities)).toBeGreaterThanOrEqual(5_000);
    expect([0, 1].map((row) => rowAt(columns, row))).toEqual([rowOf(1), rowOf(2)]);
    columns.expect(3);
    expect(columns.columns.map((column) => column.capacity)).toEqual(capacities);
  });

  it('keeps 64-bit integers exact', () => {
    const columns = new TableColumns(schema);
    const column = columns.byId(2) as Int64Column;
    const values = [
      0,
      -1,
      2 ** 31,
      -(2 ** 31) - 1,
      Number.MAX_SAFE_INTEGER,
      Number.MIN_SAFE_INTEGER,
    ];
    for (const value of values) column.append(value);
    for (const value of [2n ** 63n - 1n, -(2n ** 63n), -1n]) column.appendBigInt(value);
    expect(Array.from(column.bigints())).toEqual([
      ...values.map(BigInt),
      2n ** 63n - 1n,
      -(2n ** 63n),
      -1n,
    ]);
  });
});
