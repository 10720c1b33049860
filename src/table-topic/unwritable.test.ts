// One bad row never takes its neighbours along, up to the writer itself.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { partitionRows } from '../formats/arrow/partition.ts';
import type { Int32Column, Int64Column } from '../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../formats/arrow/table-columns.ts';
import type { PartitionSpec, Schema } from '../formats/iceberg/types.ts';
import { Bench } from './testing/bench.ts';
import { readRows } from './testing/parquet-rows.ts';
import { unencodableRows, unfitPartitions } from './unwritable.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const rowsOf = async (name: string) => readRows(bench.warehouse, await bench.load(name));

test('a partition value that its type can’t hold is a dead letter, the rest are rows', async () => {
  const topic = await bench.topic('t', {
    'table.topic.convert.value.type': 'json',
    'table.topic.partition.by': '[truncate(n, 10)]',
  });
  bench.produce(topic, [{ value: '{"n":17}' }, { value: '{"n":18}' }]);
  await bench.tables.commit('t');
  bench.produce(topic, [
    { value: '{"n":1}' },
    { value: '{"n":-9223372036854775808}' },
    { value: '{"n":2}' },
  ]);
  await bench.tables.commit('t');
  const rows = await rowsOf('t');
  expect(rows.map((row) => Number(row['n'])).toSorted((a, b) => a - b)).toEqual([1, 2, 17, 18]);
  const [letter] = await rowsOf('t_dlq');
  expect(letter).toMatchObject({ stage: 'writer', reason: 'unwritable' });
  expect(Number(letter!['offset'])).toBe(3);
  expect(letter!['error']).toMatch(/truncate\[10\].*-9223372036854775810, out of long/);
  expect(await bench.tables.status('t')).toMatchObject({ state: 'running', lagRecords: 0 });
});

test('a truncation below the least value of its type is found, its neighbours aren’t', () => {
  const schema: Schema = {
    type: 'struct',
    'schema-id': 0,
    fields: [
      { id: 1, name: 'i', required: false, type: 'int' },
      { id: 2, name: 'l', required: false, type: 'long' },
    ],
  };
  const columns = new TableColumns(schema);
  for (const [i, l] of [
    [5, 5n],
    [-(2 ** 31), 5n],
    [-(2 ** 31) + 8, -(2n ** 63n)],
  ] as const) {
    (columns.byId(1) as Int32Column).append(i);
    (columns.byId(2) as Int64Column).appendBigInt(l);
    columns.endRow();
  }
  const spec: PartitionSpec = {
    'spec-id': 0,
    fields: [
      { 'source-id': 1, 'field-id': 1000, name: 'i_trunc', transform: 'truncate[10]' },
      { 'source-id': 2, 'field-id': 1001, name: 'l_trunc', transform: 'truncate[10]' },
    ],
  };
  const { groups } = partitionRows(columns, spec);
  expect([...unfitPartitions(groups, { schema, spec }).keys()].toSorted()).toEqual([1, 2]);
});

test('rows that an encoder trips over are found among many, a bounded number at a time', async () => {
  const bad = new Set([3, 500, 501, 999]);
  const rows = Int32Array.from({ length: 1_000 }, (_, n) => n);
  let encodes = 0;
  const encode = async ({ groups }: { groups: readonly { rows: Int32Array }[] }) => {
    encodes += 1;
    for (const row of groups[0]!.rows) if (bad.has(row)) throw new RangeError(`row ${row}`);
  };
  const request = { groups: [{ values: [], rows }] } as unknown as Parameters<
    typeof unencodableRows
  >[0];
  const found = await unencodableRows(request, encode);
  expect([...found]).toEqual([...bad].map((row) => [row, `row ${row}`]));
  expect(encodes).toBeLessThan(80);
  for (const row of rows) bad.add(row);
  expect((await unencodableRows(request, encode)).size).toBe(16);
});

test('a value deeper than the stack harms nobody else', async () => {
  const topic = await bench.topic('t', { 'table.topic.convert.value.type': 'json' });
  const deep = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
  const list = `{"l":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
  bench.produce(topic, [
    { value: '{"id":1}' },
    { value: deep },
    { value: list },
    { value: '{"id":2}' },
  ]);
  await bench.tables.commit('t');
  const rows = await rowsOf('t');
  expect(
    rows
      .map((row) => Number(row['id']))
      .filter((id) => id > 0)
      .toSorted(),
  ).toEqual([1, 2]);
  expect(await bench.tables.status('t')).toMatchObject({ state: 'running', lagRecords: 0 });
});
