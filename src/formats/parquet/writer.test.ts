import { writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { parquetMetadata } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { BytesColumn, FixedColumn } from '../arrow/byte-columns.ts';
import type { ListColumn, MapColumn, StructColumn } from '../arrow/nested-columns.ts';
import type {
  BooleanColumn,
  FloatColumn,
  Int32Column,
  Int64Column,
} from '../arrow/scalar-columns.ts';
import { TableColumns } from '../arrow/table-columns.ts';
import type { NestedField, Schema } from '../iceberg/types.ts';
import { decodeSingleValue } from '../iceberg/value.ts';
import { DEFAULT_LAYOUT } from './layout.ts';
import { type ParquetFile, type ParquetOptions, ParquetWriter } from './writer.ts';

let folder: string;
let duckdb: DuckDBInstance;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'floe-parquet-'));
  duckdb = await DuckDBInstance.create(':memory:', { threads: '1' });
});
afterAll(async () => {
  duckdb.closeSync();
  await rm(folder, { recursive: true });
});

let files = 0;
/** Rows of a file as DuckDB, an independent reader, sees them. */
async function query(file: ParquetFile, sql: string): Promise<unknown[][]> {
  const path = join(folder, `${files++}.parquet`);
  writeFileSync(path, Buffer.concat(file.parts));
  const connection = await duckdb.connect();
  try {
    await connection.run("SET TimeZone = 'UTC'");
    const result = await connection.runAndReadAll(sql.replaceAll('FILE', `'${path}'`));
    return result.getRowsJson() as unknown[][];
  } finally {
    connection.closeSync();
  }
}

const field = (id: number, name: string, type: NestedField['type']): NestedField => ({
  id,
  name,
  required: false,
  type,
});
const schemaOf = (...fields: NestedField[]): Schema => ({
  type: 'struct',
  'schema-id': 0,
  fields,
});

function write(columns: TableColumns, options: Partial<ParquetOptions> = {}): ParquetFile {
  const writer = new ParquetWriter({ schema: columns.schema, ...options });
  writer.writeRowGroup(columns);
  const file = writer.finish();
  expect(file.byteLength).toBe(file.parts.reduce((sum, part) => sum + part.length, 0));
  return file;
}

const footerOf = ({ parts }: ParquetFile) =>
  parquetMetadata(new Uint8Array(Buffer.concat(parts)).buffer);

const bytes = (text: string) => new TextEncoder().encode(text);

describe('ParquetWriter', () => {
  it('writes every primitive type, nulls between, as DuckDB reads it', async () => {
    const columns = new TableColumns(
      schemaOf(
        field(1, 'b', 'boolean'),
        field(2, 'i', 'int'),
        field(3, 'l', 'long'),
        field(4, 'f', 'float'),
        field(5, 'd', 'double'),
        field(6, 'date', 'date'),
        field(7, 'time', 'time'),
        field(8, 'ts', 'timestamp'),
        field(9, 'tz', 'timestamptz'),
        field(10, 's', 'string'),
        field(11, 'y', 'binary'),
        field(12, 'u', 'uuid'),
        field(13, 'x', 'fixed[3]'),
        field(14, 'd9', 'decimal(9, 2)'),
        field(15, 'd18', 'decimal(18, 4)'),
        field(16, 'd38', 'decimal(38, 10)'),
      ),
    );
    const at = <T>(id: number) => columns.byId(id) as T;
    for (let i = 0; i < 3; i++) {
      if (i === 1) {
        columns.endRow();
        columns.align();
        continue;
      }
      const sign = i === 0 ? -1 : 1;
      at<BooleanColumn>(1).append(i === 2);
      at<Int32Column>(2).append(sign * 2147483647);
      at<Int64Column>(3).appendBigInt(BigInt(sign) * (2n ** 63n - 1n));
      at<FloatColumn>(4).append(sign * 1.5);
      at<FloatColumn>(5).append(sign * 0.1);
      at<Int32Column>(6).append(sign * 1);
      at<Int64Column>(7).append(i * 3_600_000_001);
      at<Int64Column>(8).append(sign * 1);
      at<Int64Column>(9).append(1_700_000_000_123_456);
      at<BytesColumn>(10).appendText('é😀'.repeat(i));
      at<BytesColumn>(11).append(Uint8Array.of(0, 255), 0, i);
      at<FixedColumn>(12).append(new Uint8Array(16).fill(i + 1), 0);
      at<FixedColumn>(13).append(bytes('abc'), 0);
      at<FixedColumn>(14).appendBigInt(BigInt(sign) * 999_999_999n);
      at<FixedColumn>(15).appendBigInt(BigInt(sign) * 10n ** 17n);
      at<FixedColumn>(16).appendBigInt(BigInt(sign) * (10n ** 38n - 1n));
      columns.endRow();
    }
    const rows = await query(
      write(columns),
      'SELECT * REPLACE (hex(y) AS y, hex(x) AS x, tz::VARCHAR AS tz) FROM FILE',
    );
    expect(rows).toEqual([
      [
        false,
        -2147483647,
        '-9223372036854775807',
        -1.5,
        -0.1,
        '1969-12-31',
        '00:00:00',
        '1969-12-31 23:59:59.999999',
        '2023-11-14 22:13:20.123456+00',
        '',
        '',
        '01010101-0101-0101-0101-010101010101',
        '616263',
        '-9999999.99',
        '-10000000000000.0000',
        '-9999999999999999999999999999.9999999999',
      ],
      Array(16).fill(null),
      [
        true,
        2147483647,
        '9223372036854775807',
        1.5,
        0.1,
        '1970-01-02',
        '02:00:00.000002',
        '1970-01-01 00:00:00.000001',
        '2023-11-14 22:13:20.123456+00',
        'é😀é😀',
        '00FF',
        '03030303-0303-0303-0303-030303030303',
        '616263',
        '9999999.99',
        '10000000000000.0000',
        '9999999999999999999999999999.9999999999',
      ],
    ]);
  });

  it('writes nested types: null, empty and filled lists, maps and structs within each other', async () => {
    const item: NestedField['type'] = {
      type: 'struct',
      fields: [
        field(3, 'n', 'int'),
        field(4, 'tags', {
          type: 'list',
          'element-id': 5,
          'element-required': false,
          element: 'string',
        }),
      ],
    };
    const columns = new TableColumns(
      schemaOf(
        field(1, 'items', {
          type: 'list',
          'element-id': 2,
          'element-required': false,
          element: item,
        }),
        field(6, 'm', {
          type: 'map',
          'key-id': 7,
          key: 'string',
          'value-id': 8,
          'value-required': false,
          value: 'long',
        }),
        field(9, 's', {
          type: 'struct',
          fields: [field(10, 'x', 'int'), field(11, 'y', 'string')],
        }),
      ),
    );
    const items = columns.byId(1) as ListColumn;
    const struct = items.element as StructColumn;
    const map = columns.byId(6) as MapColumn;
    const s = columns.byId(9) as StructColumn;
    const addItem = (n: number | null, tags: (string | null)[] | null) => {
      if (n !== null) (struct.childAt(0) as Int32Column).append(n);
      const list = struct.childAt(1) as ListColumn;
      if (tags !== null) {
        for (const tag of tags) {
          if (tag === null) list.element.appendNull();
          else (list.element as BytesColumn).appendText(tag);
        }
        list.end();
      }
      struct.end();
    };
    const endRow = () => {
      columns.endRow();
      columns.align();
    };
    endRow(); // all null
    items.end();
    map.end();
    s.end();
    endRow(); // all empty
    addItem(1, ['a', null, 'b']);
    struct.appendNull();
    addItem(null, []);
    addItem(2, null);
    items.end();
    for (const key of ['k', 'l']) {
      (map.key as BytesColumn).appendText(key);
      if (key === 'k') (map.value as Int64Column).append(5);
      else map.value.appendNull();
    }
    map.end();
    (s.childAt(0) as Int32Column).append(7);
    s.end();
    endRow();
    const file = write(columns);
    const rows = await query(
      file,
      'SELECT to_json(items)::VARCHAR, m::VARCHAR, to_json(s)::VARCHAR FROM FILE',
    );
    expect(rows).toEqual([
      [null, null, null],
      ['[]', '{}', '{"x":null,"y":null}'],
      [
        '[{"n":1,"tags":["a",null,"b"]},null,{"n":null,"tags":[]},{"n":2,"tags":null}]',
        '{k=5, l=NULL}',
        '{"x":7,"y":null}',
      ],
    ]);
    const ids = footerOf(file).schema.map((element) => [element.name, element.field_id]);
    expect(ids).toEqual([
      ['table', undefined],
      ['items', 1],
      ['list', undefined],
      ['element', 2],
      ['n', 3],
      ['tags', 4],
      ['list', undefined],
      ['element', 5],
      ['m', 6],
      ['key_value', undefined],
      ['key', 7],
      ['value', 8],
      ['s', 9],
      ['x', 10],
      ['y', 11],
    ]);
  });

  it('writes many pages and row groups, with and without dictionaries, compressed or not', async () => {
    const schema = schemaOf(
      field(1, 'seq', 'long'),
      field(2, 'few', 'string'),
      field(3, 'many', 'string'),
      field(4, 'small', 'int'),
      field(5, 'wide', 'long'),
      field(6, 'list', {
        type: 'list',
        'element-id': 7,
        'element-required': false,
        element: 'int',
      }),
      field(8, 'flag', 'boolean'),
    );
    for (const codec of ['zstd', 'uncompressed'] as const) {
      const writer = new ParquetWriter({ schema, layout: { ...DEFAULT_LAYOUT, codec } });
      const columns = new TableColumns(schema);
      let row = 0;
      for (let group = 0; group < 2; group++) {
        columns.clear();
        for (let i = 0; i < 150_000; i++, row++) {
          (columns.byId(1) as Int64Column).append(row);
          (columns.byId(2) as BytesColumn).appendText(`few-${row % 200}`);
          (columns.byId(3) as BytesColumn).appendText(`a longer text that is different ${row}`);
          if (row % 7 === 0) columns.byId(4)!.appendNull();
          else (columns.byId(4) as Int32Column).append((row % 300) - 150);
          (columns.byId(5) as Int64Column).append(Math.floor(row / 50) * 1e12);
          const list = columns.byId(6) as ListColumn;
          for (let k = 0; k < row % 4; k++) (list.element as Int32Column).append(row + k);
          list.end();
          (columns.byId(8) as BooleanColumn).append(row % 3 === 0);
          columns.endRow();
        }
        writer.writeRowGroup(columns);
      }
      const file = writer.finish();
      expect(file.recordCount).toBe(300_000);
      expect(file.splitOffsets).toHaveLength(2);
      const checks = `SELECT count(*), count(*) FILTER (
          seq = r AND few = 'few-' || (r % 200) AND many = 'a longer text that is different ' || r
          AND (CASE WHEN r % 7 = 0 THEN small IS NULL ELSE small = r % 300 - 150 END)
          AND wide = (r // 50) * 1000000000000 AND len(list) = r % 4 AND flag = (r % 3 = 0)
          AND list = [r + k FOR k IN range(r % 4)])
        FROM (SELECT *, row_number() OVER () - 1 AS r FROM FILE)`;
      expect(await query(file, checks)).toEqual([['300000', '300000']]);
      const pruned = 'SELECT count(*) FROM FILE WHERE seq BETWEEN 149990 AND 150009';
      expect(await query(file, pruned)).toEqual([['20']]);
      const codecs = footerOf(file).row_groups[0]!.columns.map((column) => column.meta_data!.codec);
      expect(new Set(codecs)).toEqual(new Set([codec === 'zstd' ? 'ZSTD' : 'UNCOMPRESSED']));
    }
  });

  it('stores chunks that do not shrink as they are', async () => {
    const columns = new TableColumns(schemaOf(field(1, 'noise', 'double'), field(2, 'one', 'int')));
    let state = 1;
    for (let i = 0; i < 5000; i++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      (columns.byId(1) as FloatColumn).append(Math.sin(state) * state);
      (columns.byId(2) as Int32Column).append(i);
      columns.endRow();
    }
    const file = write(columns);
    const codecs = footerOf(file).row_groups[0]!.columns.map((column) => column.meta_data!.codec);
    expect(codecs).toEqual(['UNCOMPRESSED', 'ZSTD']);
    expect(await query(file, 'SELECT count(DISTINCT noise), sum(one) FROM FILE')).toEqual([
      ['5000', '12497500'],
    ]);
  });

  it('compresses a chunk whose dictionary shrinks though its indices do not', async () => {
    const columns = new TableColumns(schemaOf(field(1, 'url', 'string')));
    const url = columns.columns[0] as BytesColumn;
    const number = (row: number) => Math.imul(row, 2654435761) >>> 22;
    for (let row = 0; row < 3000; row++) {
      url.appendText(`https://example.org/projects/${number(row)}/pages/${number(row) * 7}`);
      columns.endRow();
    }
    const file = write(columns);
    const { meta_data: chunk } = footerOf(file).row_groups[0]!.columns[0]!;
    expect(chunk!.codec).toBe('ZSTD');
    expect(chunk!.encodings).toContain('RLE_DICTIONARY');
    expect(await query(file, 'SELECT count(*), count(DISTINCT url), max(url) FROM FILE')).toEqual([
      ['3000', '1024', 'https://example.org/projects/999/pages/6993'],
    ]);
  });

  it('writes a file without rows', async () => {
    const schema = schemaOf(field(1, 'a', 'int'));
    const file = new ParquetWriter({ schema }).finish();
    expect(await query(file, 'SELECT count(*) FROM FILE')).toEqual([['0']]);
    expect(file).toMatchObject({ recordCount: 0, splitOffsets: [] });
  });

  it('keeps sort order and key-value pairs in the footer, and annotates uuid', () => {
    const columns = new TableColumns(schemaOf(field(1, 'a', 'int'), field(2, 'u', 'uuid')));
    (columns.byId(1) as Int32Column).append(1);
    columns.endRow();
    const file = write(columns, {
      keyValues: { 'floe.topic': 'flights' },
      createdBy: 'floe test',
      sortedBy: {
        'order-id': 1,
        fields: [
          { transform: 'identity', 'source-id': 2, direction: 'desc', 'null-order': 'nulls-last' },
          { transform: 'bucket[2]', 'source-id': 1, direction: 'asc', 'null-order': 'nulls-first' },
        ],
      },
    });
    const footer = footerOf(file);
    expect(footer.key_value_metadata).toEqual([{ key: 'floe.topic', value: 'flights' }]);
    expect(footer.created_by).toBe('floe test');
    expect(footer.row_groups[0]!.sorting_columns).toEqual([
      { column_idx: 1, descending: true, nulls_first: false },
    ]);
    expect(footer.schema.find((element) => element.name === 'u')!.logical_type).toEqual({
      type: 'UUID',
    });
  });
});

describe('metrics', () => {
  const metricsOf = (type: NestedField['type'], append: (columns: TableColumns) => void) => {
    const columns = new TableColumns(schemaOf(field(1, 'c', type)));
    append(columns);
    columns.rowCount = columns.columns[0]!.length;
    const { metrics } = write(columns);
    const bound = (side: Uint8Array | undefined) =>
      side === undefined ? undefined : decodeSingleValue(type as string, side);
    return {
      values: metrics.valueCounts.get(1),
      nulls: metrics.nullValueCounts.get(1),
      nans: metrics.nanValueCounts.get(1),
      lower: bound(metrics.lowerBounds.get(1)),
      upper: bound(metrics.upperBounds.get(1)),
    };
  };

  it('bounds numbers exactly and counts nulls and NaN', () => {
    const longs = metricsOf('timestamptz', ({ columns: [column] }) => {
      for (const v of [5n, -(2n ** 62n) - 1n, 2n ** 53n + 1n])
        (column as Int64Column).appendBigInt(v);
      column!.appendNull();
    });
    expect(longs).toEqual({
      values: 4,
      nulls: 1,
      nans: undefined,
      lower: -(2n ** 62n) - 1n,
      upper: 2n ** 53n + 1n,
    });
    const doubles = metricsOf('double', ({ columns: [column] }) => {
      for (const v of [NaN, 0, 7.5, NaN]) (column as FloatColumn).append(v);
    });
    expect(doubles).toEqual({ values: 4, nulls: 0, nans: 2, lower: -0, upper: 7.5 });
    const nothing = metricsOf('float', ({ columns: [column] }) => {
      (column as FloatColumn).append(NaN);
      column!.appendNull();
    });
    expect(nothing).toEqual({ values: 2, nulls: 1, nans: 1, lower: undefined, upper: undefined });
  });

  it.each(['decimal(9, 2)', 'decimal(18, 2)', 'decimal(30, 2)'] as const)('bounds %s', (type) => {
    const decimals = metricsOf(type, ({ columns: [column] }) => {
      for (const v of [128n, -129n, 0n, -1n]) (column as FixedColumn).appendBigInt(v);
    });
    expect(decimals).toMatchObject({ lower: -129n, upper: 128n });
  });

  it('cuts long text by code points and rounds its upper bound up', () => {
    const text = (...values: string[]) =>
      metricsOf('string', ({ columns: [column] }) => {
        for (const value of values) (column as BytesColumn).appendText(value);
      });
    expect(text('b', 'a', 'ab')).toMatchObject({ lower: 'a', upper: 'b' });
    expect(text('😀'.repeat(20))).toMatchObject({
      lower: '😀'.repeat(16),
      upper: `${'😀'.repeat(15)}😁`,
    });
    expect(text(`${'x'.repeat(15)}\u{10ffff}y`)).toMatchObject({ upper: `${'x'.repeat(14)}y` });
    expect(text('\u{10ffff}'.repeat(17))).toMatchObject({ upper: undefined });
    expect(text(`${'x'.repeat(15)}\ud7ffyy`)).toMatchObject({ upper: `${'x'.repeat(15)}\ue000` });
  });

  it('cuts long bytes and rounds up, or has no upper bound', () => {
    const binary = (value: Uint8Array) =>
      metricsOf('binary', ({ columns: [column] }) => {
        (column as BytesColumn).append(value, 0, value.length);
      });
    const mixed = Uint8Array.from({ length: 20 }, (_, i) => (i === 14 ? 1 : 255));
    expect(binary(mixed)).toMatchObject({
      lower: mixed.slice(0, 16),
      upper: Uint8Array.from({ length: 15 }, (_, i) => (i === 14 ? 2 : 255)),
    });
    expect(binary(new Uint8Array(20).fill(255))).toMatchObject({ upper: undefined });
  });

  it('counts repeated leaves without bounding them', () => {
    const type = {
      type: 'list',
      'element-id': 2,
      'element-required': false,
      element: 'int',
    } as const;
    const columns = new TableColumns(schemaOf(field(1, 'c', type)));
    const list = columns.byId(1) as ListColumn;
    for (const length of [0, 3]) {
      for (let i = 0; i < length; i++) (list.element as Int32Column).append(i);
      list.end();
      columns.endRow();
    }
    const { metrics } = write(columns);
    expect(metrics.valueCounts.get(2)).toBe(4);
    expect(metrics.lowerBounds.size).toBe(0);
    expect(metrics.columnSizes.get(2)).toBeGreaterThan(0);
  });
});
