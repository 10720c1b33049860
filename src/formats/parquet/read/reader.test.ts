import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BytesColumn, FixedColumn } from '../../arrow/byte-columns.ts';
import type { Column } from '../../arrow/column.ts';
import { ListColumn, MapColumn, StructColumn } from '../../arrow/nested-columns.ts';
import {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../../arrow/scalar-columns.ts';
import { TableColumns } from '../../arrow/table-columns.ts';
import type { IcebergType, NestedField, Schema } from '../../iceberg/types.ts';
import { createChunkEncoder, ParquetWriter } from '../writer.ts';
import { ParquetReader } from './reader.ts';

const PRIMITIVES = [
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'date',
  'timestamptz',
  'string',
  'binary',
  'uuid',
  'fixed[3]',
  'decimal(9,2)',
  'decimal(18,4)',
  'decimal(38,10)',
] as const;

/** Types without ids; ids are given in order of appearance. */
const typeShape: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  type: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(...PRIMITIVES),
    fc.record({ struct: fc.array(tie('type'), { minLength: 1, maxLength: 3 }) }),
    fc.record({ list: tie('type') }),
    fc.record({ key: fc.constantFrom('string', 'int'), value: tie('type') }),
  ),
})).type;

function schemaOf(shapes: readonly unknown[]): Schema {
  let id = 0;
  const typeOf = (shape: unknown): IcebergType => {
    if (typeof shape === 'string') return shape as IcebergType;
    const one = shape as { struct?: unknown[]; list?: unknown; key?: string; value?: unknown };
    if (one.struct !== undefined) return { type: 'struct', fields: fieldsOf(one.struct) };
    if (one.list !== undefined) {
      const element = ++id;
      return {
        type: 'list',
        'element-id': element,
        'element-required': false,
        element: typeOf(one.list),
      };
    }
    const key = ++id;
    const value = ++id;
    return {
      type: 'map',
      'key-id': key,
      key: one.key as IcebergType,
      'value-id': value,
      'value-required': false,
      value: typeOf(one.value),
    };
  };
  const fieldsOf = (list: readonly unknown[]): NestedField[] =>
    list.map((shape) => {
      const own = ++id;
      return { id: own, name: `f${own}`, required: false, type: typeOf(shape) };
    });
  return { type: 'struct', 'schema-id': 0, fields: fieldsOf(shapes) };
}

/** Fills one row of a column with something that depends on `next` alone. */
function fill(column: Column, next: () => number, nullable = true): void {
  if (nullable && next() % 4 === 0) {
    column.appendNull();
    return;
  }
  if (column instanceof BooleanColumn) column.append(next() % 2 === 0);
  else if (column instanceof Int32Column) column.append((next() * 2654435761) | 0);
  else if (column instanceof Int64Column) column.appendHalves(next() | 0, next() % 3);
  else if (column instanceof FloatColumn) column.append(next() / 7);
  else if (column instanceof BytesColumn) column.appendText('x'.repeat(next() % 40) + next());
  else if (column instanceof FixedColumn) {
    const decimal = String(column.type).startsWith('decimal');
    if (decimal) column.appendBigInt(BigInt((next() % 2_000_000) - 1_000_000));
    else column.append(new Uint8Array(16).fill(next()), 0);
  } else if (column instanceof StructColumn) {
    column.children.forEach((_, i) => {
      fill(column.childAt(i), next);
    });
    column.end();
  } else if (column instanceof ListColumn) {
    for (let n = next() % 4; n > 0; n--) fill(column.element, next);
    column.end();
  } else if (column instanceof MapColumn) {
    for (let n = next() % 3; n > 0; n--) {
      fill(column.key, next, false);
      column.value.padTo(column.key.length - 1);
      fill(column.value, next);
    }
    column.end();
  }
}

function filled(schema: Schema, rows: number, seed: number): TableColumns {
  const columns = new TableColumns(schema);
  let state = seed;
  const next = () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state >>> 8;
  };
  for (let row = 0; row < rows; row++) {
    for (const column of columns.columns) fill(column, next);
    columns.endRow();
  }
  columns.align();
  return columns;
}

const rowsOf = (columns: TableColumns) =>
  Array.from({ length: columns.rowCount }, (_, row) =>
    columns.columns.map((column) => column.valueAt(row)),
  );

const encoder = createChunkEncoder();

function written(groups: readonly TableColumns[]): Uint8Array {
  const writer = new ParquetWriter({ schema: groups[0]!.schema }, encoder);
  for (const columns of groups) writer.writeRowGroup(columns);
  return new Uint8Array(Buffer.concat(writer.finish().parts));
}

function readAll(bytes: Uint8Array, schema: Schema): TableColumns {
  const reader = new ParquetReader(bytes);
  const columns = new TableColumns(schema);
  for (const index of reader.rowGroups.keys()) reader.readRowGroup(index, columns);
  columns.align();
  return columns;
}

describe('ParquetReader', () => {
  it('reads back what the writer wrote, whatever the schema, row groups one after the other', () => {
    fc.assert(
      fc.property(
        fc.array(typeShape, { minLength: 1, maxLength: 4 }),
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1, max: 1_000_000 }),
        (shapes, sizes, seed) => {
          const schema = schemaOf(shapes);
          const groups = sizes.map((rows, n) => filled(schema, rows, seed + n));
          const read = readAll(written(groups), schema);
          expect(rowsOf(read)).toEqual(groups.flatMap(rowsOf));
          // And again: what was read is as good as what was appended.
          expect(rowsOf(readAll(written([read]), schema))).toEqual(rowsOf(read));
        },
      ),
      { numRuns: 40, seed: 42 },
    );
  });

  it.each([
    ['with and without elements', (row: number) => row % 3],
    ['without any element', () => 0],
    ['of one element', () => 1],
  ])('reads lists back, required or not, %s', (_, sizeOf) => {
    const list = (id: number, required: boolean, elements: boolean): NestedField => ({
      ...{ id, name: `l${id}`, required },
      type: { type: 'list', 'element-id': id + 1, 'element-required': elements, element: 'int' },
    });
    const schema: Schema = {
      type: 'struct',
      'schema-id': 0,
      fields: [list(1, true, true), list(3, true, false), list(5, false, true)],
    };
    const columns = new TableColumns(schema);
    for (let row = 0; row < 50; row++) {
      for (const column of columns.columns as ListColumn[]) {
        for (let n = 0; n < sizeOf(row); n++) (column.element as Int32Column).append(row + n);
        column.end();
      }
      columns.endRow();
    }
    const read = readAll(written([columns, columns]), schema);
    expect(rowsOf(read)).toEqual([...rowsOf(columns), ...rowsOf(columns)]);
  });

  it('spans many pages and dictionaries that overflow', () => {
    const schema = schemaOf(['long', 'string', { list: 'int' }, { struct: ['string', 'double'] }]);
    const columns = filled(schema, 70_000, 9);
    const bytes = written([columns]);
    const read = readAll(bytes, schema);
    expect(Buffer.compare(written([read]), bytes)).toBe(0);
    for (let row = 0; row < columns.rowCount; row += 997)
      for (const [i, column] of read.columns.entries())
        expect(column.valueAt(row)).toEqual(columns.columns[i]!.valueAt(row));
  });

  it('leaves columns behind that a file lacks, passes over those the table lacks', () => {
    const old = schemaOf(['int', { struct: ['string', 'long'] }]);
    const columns = filled(old, 50, 3);
    const [first, second] = old.fields as [NestedField, NestedField];
    const struct = second.type as { type: 'struct'; fields: NestedField[] };
    const schema: Schema = {
      ...old,
      fields: [
        {
          ...second,
          name: 'renamed',
          type: {
            type: 'struct',
            fields: [struct.fields[1]!, { id: 90, name: 'n', required: false, type: 'date' }],
          },
        },
        { id: 91, name: 'new', required: false, type: 'string' },
        { ...first, type: 'long' },
      ],
    };
    const read = rowsOf(readAll(written([columns]), schema));
    expect(read).toEqual(
      rowsOf(columns).map(([int, value]) => {
        const inner = value as Record<string, unknown> | null;
        const name = struct.fields[1]!.name;
        return [
          inner === null ? null : { [name]: inner[name], n: null },
          null,
          int === null ? null : BigInt(int as number),
        ];
      }),
    );
  });
});

describe('files of DuckDB', () => {
  let folder: string;
  let duckdb: DuckDBInstance;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'floe-read-'));
    duckdb = await DuckDBInstance.create(':memory:', { threads: '1' });
  });
  afterAll(async () => {
    duckdb.closeSync();
    await rm(folder, { recursive: true });
  });

  const schema = schemaOf([
    'long',
    'string',
    { list: { struct: ['int', 'string'] } },
    { key: 'string', value: 'double' },
    'decimal(9,2)',
    'decimal(38,10)',
    'boolean',
    'timestamptz',
    'date',
    'uuid',
  ]);

  it.each(['snappy', 'zstd', 'gzip', 'uncompressed', 'brotli', 'lz4_raw'])(
    'compressed by %s',
    async (codec) => {
      const path = join(folder, `${codec}.parquet`);
      const connection = await duckdb.connect();
      await connection.run("SET TimeZone = 'UTC'");
      await connection.run(`COPY (SELECT
        CASE WHEN i % 7 = 0 THEN NULL ELSE i END::BIGINT AS a,
        CASE WHEN i % 5 = 0 THEN NULL ELSE 'text ' || (i % 100) END AS b,
        CASE WHEN i % 11 = 0 THEN NULL ELSE [{'x': i::INT, 'y': 'e' || i}, NULL, {'x': NULL, 'y': ''}] END AS c,
        MAP {'k': i / 2.0, 'l': NULL}::MAP(VARCHAR, DOUBLE) AS d,
        (i / 100.0)::DECIMAL(9,2) AS e, (-i)::DECIMAL(38,10) AS f, i % 2 = 0 AS g,
        make_timestamptz(i * 1000000) AS h, DATE '2020-01-01' + (i % 1000)::INT AS j,
        '00000000-0000-0000-0000-0000000000ff'::UUID AS k
      FROM range(5000) t(i)) TO '${path}' (FORMAT parquet, CODEC '${codec}', ROW_GROUP_SIZE 2048, FIELD_IDS {
        a: 1, b: 2, c: {__duckdb_field_id: 3, element: {__duckdb_field_id: 4, x: 5, y: 6}},
        d: {__duckdb_field_id: 7, key: 8, value: 9}, e: 10, f: 11, g: 12, h: 13, j: 14, k: 15})`);
      connection.closeSync();
      const read = readAll(readFileSync(path), schema);
      expect(read.rowCount).toBe(5000);
      expect(rowsOf(read).slice(0, 2)).toEqual([
        [
          null,
          null,
          null,
          [
            ['k', 0],
            ['l', null],
          ],
          new Uint8Array(16),
          new Uint8Array(16),
          true,
          0n,
          18262,
          expect.anything(),
        ],
        [
          1n,
          'text 1',
          [{ f5: 1, f6: 'e1' }, null, { f5: null, f6: '' }],
          [
            ['k', 0.5],
            ['l', null],
          ],
          expect.anything(),
          expect.anything(),
          false,
          1_000_000n,
          18263,
          expect.anything(),
        ],
      ]);
      expect(read.columns[0]!.nullCount).toBe(Math.ceil(5000 / 7));
      const last = rowsOf(read)[4999]!;
      expect(last[1]).toBe('text 99');
      expect(Buffer.from(last[5] as Uint8Array).toString('hex')).toBe(
        BigInt.asUintN(128, -4999n * 10n ** 10n).toString(16),
      );
    },
  );
});

describe('damage', () => {
  const schema = schemaOf(['long', 'string', { list: 'int' }]);
  const bytes = written([filled(schema, 200, 5)]);
  const rows = rowsOf(readAll(bytes, schema));
  const footer = bytes.length - 8 - Buffer.from(bytes).readUInt32LE(bytes.length - 8);

  /** What is read of a file with one wrong byte; undefined when that is told. */
  function readDamaged(at: number, change: number): unknown {
    const damaged = bytes.slice();
    damaged[at]! ^= change;
    try {
      return rowsOf(readAll(damaged, schema));
    } catch (caught) {
      expect(caught).toMatchObject({
        code: expect.stringMatching(/corrupt|unsupported|exhausted/),
      });
      return undefined;
    }
  }

  it('is told, whatever byte is wrong', () => {
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        readDamaged(at, change);
      }),
      { numRuns: 400, seed: 7 },
    );
  });

  it('of pages is never read as values', () => {
    fc.assert(
      fc.property(fc.nat(footer - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
        const read = readDamaged(at, change);
        if (read !== undefined) expect(read).toEqual(rows);
      }),
      { numRuns: 400, seed: 8 },
    );
  });
});
