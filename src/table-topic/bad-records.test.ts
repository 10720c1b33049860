// Records that can't be rows, and a world that isn't there: each harms nothing else and says what it was.
import avsc from 'avsc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FloeError } from '../base/error.ts';
import { seededPrng } from '../base/prng.ts';
import { batchBytes, lastOffsetDelta } from '../protocol/record-batch.ts';
import { buildBatch, type RecordInput } from '../protocol/record-builder.ts';
import { Bench, framed } from './testing/bench.ts';
import { FaultyCatalog } from './testing/faulty.ts';
import { readRows } from './testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const order = { type: 'record', name: 'Order', fields: [{ name: 'id', type: 'int' }] } as const;
const orders = avsc.Type.forSchema(order as unknown as avsc.Schema);
const orderValue = (schemaId: number, id: number) => framed(schemaId, orders.toBuffer({ id }));

const tableRows = async (name: string) => {
  const rows = await readRows(bench.warehouse, await bench.load(name));
  return rows.toSorted((a, b) => Number(a['_kafka_offset']) - Number(b['_kafka_offset']));
};

/** What the dead-letter table says: offset, stage, reason. */
async function letters(name: string): Promise<unknown[][]> {
  const rows = await tableRows(`${name}_dlq`);
  return rows
    .map((row) => [Number(row['offset']), row['stage'], row['reason']])
    .toSorted((a, b) => Number(a[0]) - Number(b[0]));
}

const waitFor = (name: string, state: string) =>
  expect.poll(async () => (await bench.tables.status(name)).state).toBe(state);

test('by schema id: every way of being wrong is a dead letter with its coordinates, the rest are rows', async () => {
  const id = await bench.schemas.register('o-value', JSON.stringify(order));
  const unsupported = await bench.schemas.register('p', 'syntax = "proto3";', 'PROTOBUF');
  const topic = await bench.topic('o');
  const records: RecordInput[] = [
    { value: orderValue(id, 1), key: 'k', headers: [['h', 'v']] },
    { value: orderValue(99, 1) },
    { value: framed(id, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff])) },
    { value: framed(id, Buffer.from([2, 7, 7])) },
    { value: null },
    { value: '' },
    { value: 'plain text' },
    { value: orderValue(unsupported, 1) },
    { value: orderValue(id, 2) },
  ];
  bench.produce(topic, records);
  await bench.tables.commit('o');
  expect((await tableRows('o')).map((row) => row['id'])).toEqual([1, 2]);
  expect(await letters('o')).toEqual([
    [1, 'value', 'unknown_schema_id'],
    [2, 'value', 'undecodable'],
    [3, 'value', 'undecodable'],
    [4, 'value', 'null_value'],
    [5, 'value', 'no_schema_id'],
    [6, 'value', 'no_schema_id'],
    [7, 'value', 'unsupported_schema'],
  ]);
  const raw = await tableRows('o_dlq');
  expect(raw.map((row) => row['table'])).toEqual(raw.map(() => 'kafka.o'));
  expect(raw[0]).toMatchObject({ topic: 'o', partition: 0, schema_id: 99 });
  expect(await bench.tables.status('o')).toMatchObject({
    state: 'running',
    lagRecords: 0,
    counters: { rows: 2, deadLetters: 7 },
  });
});

test('a value of another schema lands in the same table, several interleaved in one file', async () => {
  const id = await bench.schemas.register('o-value', JSON.stringify(order));
  const other = {
    ...order,
    fields: [
      { name: 'name', type: 'string' },
      { name: 'id', type: 'long' },
    ],
  };
  const otherId = await bench.schemas.register('other', JSON.stringify(other));
  const named = avsc.Type.forSchema(other as unknown as avsc.Schema);
  const topic = await bench.topic('o');
  const records = Array.from({ length: 20 }, (_, n) => ({
    value:
      n % 2 === 0 ? orderValue(id, n) : framed(otherId, named.toBuffer({ name: `n${n}`, id: n })),
  }));
  bench.produce(topic, records);
  await bench.tables.commit('o');
  const rows = await tableRows('o');
  expect(rows.map((row) => Number(row['id']))).toEqual(records.map((_, n) => n));
  expect(rows.map((row) => row['name'] ?? null)).toEqual(
    records.map((_, n) => (n % 2 === 0 ? null : `n${n}`)),
  );
  expect((await bench.tables.status('o')).counters).toMatchObject({ files: 1, deadLetters: 0 });
});

test('skip counts and drops; none suspends this table only, and resumes by itself when cured', async () => {
  const skipping = await bench.topic('s', {
    'table.topic.convert.value.type': 'json',
    'table.topic.errors.tolerance': 'skip',
  });
  const strict = await bench.topic('n', {
    'table.topic.convert.value.type': 'by_schema_id',
    'table.topic.errors.tolerance': 'none',
  });
  bench.produce(skipping, [{ value: '{"a":1}' }, { value: 'no json' }]);
  bench.produce(strict, [{ value: orderValue(1, 5) }]);
  await bench.tables.commit('s');
  expect(await bench.tables.status('s')).toMatchObject({
    counters: { rows: 1, skipped: 1, deadLetters: 0 },
  });
  await waitFor('n', 'suspended');
  expect((await bench.tables.status('n')).reason).toMatch(
    /partition 0 offset 0 can't be a row \(unknown_schema_id: schema id 1 is not registered\)/,
  );
  await bench.schemas.register('n-value', JSON.stringify(order));
  await expect
    .poll(async () => (await bench.tables.status('n')).counters.rows, { timeout: 5_000 })
    .toBe(1);
  expect((await bench.tables.status('n')).state).toBe('running');
});

test('an unreachable registry suspends; nothing is lost, and it goes on by itself', async () => {
  const id = await bench.schemas.register('o-value', JSON.stringify(order));
  const topic = await bench.topic('o');
  await waitFor('o', 'running');
  bench.schemas.down = true;
  bench.produce(topic, [{ value: orderValue(id, 1) }]);
  await waitFor('o', 'suspended');
  expect((await bench.tables.status('o')).reason).toMatch(/registry does not answer/);
  bench.schemas.down = false;
  await expect.poll(async () => (await bench.tables.status('o')).counters.commits).toBe(1);
  expect((await tableRows('o')).map((row) => row['id'])).toEqual([1]);
});

test('a partition column or transform that doesn’t fit suspends by name; correcting it cures', async () => {
  const topic = await bench.topic('p', {
    'table.topic.convert.value.type': 'json',
    'table.topic.partition.by': '[nowhere]',
  });
  bench.produce(topic, [{ value: '{"a":"x"}' }]);
  await waitFor('p', 'suspended');
  expect((await bench.tables.status('p')).reason).toMatch(/no column "nowhere"/);
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.partition.by': '[hour(a)]' });
  await expect
    .poll(async () => (await bench.tables.status('p')).reason)
    .toMatch(/hour can't take "a", a string/);
  await bench.directory.alterConfig(topic.topicId, {
    'table.topic.partition.by': '[truncate(a, 1)]',
  });
  await expect.poll(async () => (await bench.tables.status('p')).counters.commits).toBe(1);
});

test('a warehouse without room, or out of reach, suspends with the reason; nothing is lost, nothing left', async () => {
  const { store } = bench;
  const put = store.put.bind(store);
  for (const [name, error] of [
    ['full', new FloeError('exhausted', 'no space left on the disk: free some')],
    ['away', new FloeError('unavailable', 'the object store does not answer')],
  ] as const) {
    const topic = await bench.topic(name, { 'table.topic.convert.value.type': 'string' });
    await waitFor(name, 'running');
    store.put = (key, ...rest) =>
      key.includes(`/${name}-`) ? Promise.reject(error) : put(key, ...rest);
    bench.produce(topic, [{ value: 'x' }]);
    await waitFor(name, 'suspended');
    expect((await bench.tables.status(name)).reason).toContain(error.message);
    store.put = put;
    await expect.poll(async () => (await bench.tables.status(name)).counters.commits).toBe(1);
    expect((await tableRows(name)).map((row) => row['_kafka_value'])).toEqual(['x']);
  }
  const files: string[] = [];
  for await (const { key } of store.list('')) if (key.endsWith('.parquet')) files.push(key);
  expect(files).toHaveLength(2);
});

test('T9: an unreachable catalog for one table, its neighbours commit on', async () => {
  await bench.tables.stop();
  let broken = true;
  const catalog = new FaultyCatalog(bench.catalog, seededPrng(1), async () => {});
  const { loadTable } = catalog;
  catalog.loadTable = (identifier) =>
    broken && identifier.name === 'bad'
      ? Promise.reject(new FloeError('unavailable', 'catalog does not answer'))
      : loadTable.call(catalog, identifier);
  bench.start({ catalog });
  const config = { 'table.topic.convert.value.type': 'string' };
  const bad = await bench.topic('bad', config);
  const good = await bench.topic('good', config);
  bench.produce(bad, [{ value: 'x' }]);
  bench.produce(good, [{ value: 'y' }]);
  await bench.tables.commit('good');
  expect(await bench.tables.status('bad')).toMatchObject({
    state: 'suspended',
    reason: 'catalog does not answer',
    lagRecords: 1,
  });
  broken = false;
  await expect.poll(async () => (await bench.tables.status('bad')).counters.commits).toBe(1);
});

test('a batch whose inside lies becomes one dead letter; the batches around it are rows', async () => {
  const topic = await bench.topic('b', { 'table.topic.convert.value.type': 'string' });
  bench.produce(topic, [{ value: 'a' }]);
  const lying = buildBatch([{ value: 'b' }, { value: 'c' }]);
  // The second record claims to be longer than the batch.
  lying[batchBytes(lying) - 8] = 0x7e;
  expect(lastOffsetDelta(lying)).toBe(1);
  bench.log.add(topic.partitions[0]!, lying);
  bench.produce(topic, [{ value: 'd' }]);
  await bench.tables.commit('b');
  expect((await tableRows('b')).map((row) => row['_kafka_value'])).toEqual(['a', 'b', 'd']);
  expect(await letters('b')).toEqual([[2, 'batch', 'unreadable_batch']]);
});

test('JSON by policy: suspend and dlq instead of a further column', async () => {
  const json = (value: unknown) => ({ value: JSON.stringify(value) });
  const config = { 'table.topic.convert.value.type': 'json' };
  const dlq = await bench.topic('d', { ...config, 'table.topic.evolution.incompatible': 'dlq' });
  const halt = await bench.topic('h', {
    ...config,
    'table.topic.evolution.incompatible': 'suspend',
  });
  for (const topic of [dlq, halt]) bench.produce(topic, [json({ a: 1 })]);
  await bench.tables.commit('d');
  await bench.tables.commit('h');
  for (const topic of [dlq, halt]) bench.produce(topic, [json({ a: 'x' }), json({ a: 2, b: 1 })]);
  await bench.tables.commit('d');
  expect((await tableRows('d')).map((row) => Number(row['a']))).toEqual([1, 2]);
  expect(await letters('d')).toEqual([[1, 'value', 'incompatible_type']]);
  await waitFor('h', 'suspended');
  expect((await bench.tables.status('h')).reason).toMatch(/further columns a__string/);
});
