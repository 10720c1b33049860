// What a file's dictionaries said of equal values is a hint: rows that carry it are written as the same bytes as rows
// that don't.
import { describe, expect, it } from 'vitest';
import { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type { Column } from '../arrow/column.ts';
import type { ListColumn, StructColumn } from '../arrow/nested-columns.ts';
import { FloatColumn, Int32Column, Int64Column } from '../arrow/scalar-columns.ts';
import { TableColumns } from '../arrow/table-columns.ts';
import type { IcebergType, Schema } from '../iceberg/types.ts';
import { DEFAULT_LAYOUT, type FileLayout } from './layout.ts';
import { ParquetReader } from './read/reader.ts';
import { ParquetWriter } from './writer.ts';

const TYPES = [
  ...['int', 'date', 'long', 'timestamptz', 'float', 'double', 'string', 'binary', 'uuid'],
  ...['fixed[3]', 'fixed[8]', 'decimal(9,2)', 'decimal(18,4)', 'decimal(38,10)'],
];
/** After an evolution: what Iceberg lets a type become. */
const PROMOTED: Readonly<Record<string, string>> = {
  ...{ int: 'long', float: 'double' },
  ...{ 'decimal(9,2)': 'decimal(18,2)', 'decimal(18,4)': 'decimal(38,4)' },
};

/** A column of each type, a list of text, a struct with an int in it. */
function schemaOf(types: readonly string[]): Schema {
  const fields = types.map((type, i) => ({
    ...{ id: i + 1, name: `c${i + 1}`, required: false },
    type: type as IcebergType,
  }));
  const list: IcebergType = {
    ...{ type: 'list', 'element-id': 101, 'element-required': false, element: 'string' },
  };
  const struct: IcebergType = {
    type: 'struct',
    fields: [{ id: 103, name: 'inner', required: false, type: 'int' }],
  };
  return {
    ...{ type: 'struct', 'schema-id': 0 },
    fields: [
      ...fields,
      { id: 100, name: 'list', required: false, type: list },
      { id: 102, name: 'struct', required: false, type: struct },
    ],
  };
}

const OLD = schemaOf(TYPES);
const NEW = schemaOf(TYPES.map((type) => PROMOTED[type] ?? type));

function append(column: Column, value: number): void {
  if (column instanceof Int32Column) column.append(value - 3);
  else if (column instanceof Int64Column) column.append((value - 3) * 10_000_000_000);
  else if (column instanceof FloatColumn) column.append(value === 0 ? NaN : value / 4);
  else if (column instanceof BytesColumn) column.appendText('v'.repeat(value % 40) + value);
  else if (column instanceof FixedColumn) {
    if (String(column.type).startsWith('decimal')) column.appendBigInt(BigInt(value - 3));
    else column.append(new Uint8Array(16).fill(value), 0);
  }
}

/** Row n has `pick(n)` everywhere; negative ones are nulls. */
function fill(columns: TableColumns, rows: number, pick: (row: number) => number): void {
  for (let n = 0; n < rows; n++) {
    const value = pick(n);
    for (const column of columns.columns.slice(0, -2)) {
      if (value < 0) column.appendNull();
      else append(column, value);
    }
    const [list, struct] = columns.columns.slice(-2) as [ListColumn, StructColumn];
    for (let m = 0; m < value % 3; m++) append(list.element, value + m);
    list.end();
    if (value >= 0) append(struct.childAt(0), value);
    struct.end();
    columns.endRow();
  }
}

function fileOf(schema: Schema, groups: readonly TableColumns[], layout: Partial<FileLayout> = {}) {
  const writer = new ParquetWriter({ schema, layout: { ...DEFAULT_LAYOUT, ...layout } });
  for (const columns of groups) writer.writeRowGroup(columns);
  return new Uint8Array(Buffer.concat(writer.finish().parts));
}

function rows(schema: Schema, count: number, pick: (row: number) => number): TableColumns {
  const columns = new TableColumns(schema);
  fill(columns, count, pick);
  return columns;
}

/** Two row groups of values that differ, a file that has neither dictionaries nor repeats, one that has both again. */
const FILES = [
  fileOf(OLD, [rows(OLD, 700, (n) => (n % 7) - 1), rows(OLD, 300, (n) => 20 + ((n * n) % 11))]),
  fileOf(OLD, [rows(OLD, 90, (n) => n)], { dictionaryBytes: 0 }),
  fileOf(OLD, [rows(OLD, 5, () => -1), rows(OLD, 400, (n) => (n * 3) % 13)], { pageRows: 90 }),
];

/** The same files read twice: noting what dictionaries say, and not. */
function readBoth(schema: Schema, work: (columns: TableColumns) => void = readAll) {
  return [true, false].map((notes) => {
    const columns = new TableColumns(schema);
    if (notes) columns.noteCodes();
    work(columns);
    return columns;
  }) as [TableColumns, TableColumns];
}

function readAll(columns: TableColumns): void {
  for (const bytes of FILES) {
    const reader = new ParquetReader(bytes);
    reader.rowGroups.forEach((_, group) => {
      reader.readRowGroup(group, columns);
    });
  }
  columns.align();
}

function expectSameFile(
  [noted, plain]: readonly [TableColumns, TableColumns],
  layout: Partial<FileLayout> = {},
): void {
  const { schema } = noted;
  const bytes = fileOf(schema, [noted], layout);
  expect(Buffer.compare(bytes, fileOf(schema, [plain], layout))).toBe(0);
}

describe('codes of values', () => {
  it('tell the writer nothing wrong: every type, several dictionaries, pages without one, nulls', () => {
    const both = readBoth(OLD);
    expectSameFile(both);
    for (const id of [...TYPES.keys()].map((i) => i + 1)) {
      const { codes } = both[0].byId(id)!;
      expect([codes!.rows, codes!.size > 20]).toEqual([1_495, true]);
      expect(both[1].byId(id)!.codes).toBeNull();
    }
  });

  it('stay with rows that are taken out, moved and repeated', () => {
    const order = Int32Array.from({ length: 1_200 }, (_, n) => (n * 7_919) % 1_495);
    const both = readBoth(OLD).map((columns) => columns.gather(order)) as [
      TableColumns,
      TableColumns,
    ];
    expect(both[0].byId(1)!.codes!.rows).toBe(1_200);
    expectSameFile(both);
  });

  it('are of the values that columns have now, not of those that the file had', () => {
    expectSameFile(readBoth(NEW));
  });

  it('leave a dictionary that grows too large to the same end', () => {
    expectSameFile(readBoth(OLD), { dictionaryBytes: 100 });
    expectSameFile(readBoth(OLD), { dictionaryBytes: 0 });
  });

  it('are forgotten with their rows', () => {
    const appended = (columns: TableColumns) => fill(columns, 600, (n) => 30 + (n % 5));
    const cut = (columns: TableColumns) => {
      for (const column of columns.columns) column.truncate(500);
      columns.rowCount = 500;
    };
    const later: ((columns: TableColumns) => void)[] = [
      (columns) => columns.clear(),
      cut,
      (columns) => {
        cut(columns);
        appended(columns);
        readAll(columns);
      },
    ];
    for (const forget of later) {
      const both = readBoth(OLD, (columns) => {
        readAll(columns);
        forget(columns);
        appended(columns);
      });
      expectSameFile(both);
      const all = Int32Array.from({ length: both[0].rowCount }, (_, n) => n);
      expectSameFile([both[0].gather(all), both[1].gather(all)]);
    }
  });

  it('end where there would be too many', () => {
    const both = readBoth(OLD, (columns) => {
      readAll(columns);
      for (const column of columns.columns)
        if (column.codes !== null) column.codes.addDictionary(2 ** 20 - 100);
      readAll(columns);
    });
    expectSameFile(both);
  });
});
