// T10 end to end: sources change, the table follows one change at a time, older records still land.
import avsc from 'avsc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fieldMapOf } from './field-map.ts';
import { Bench, framed } from './testing/bench.ts';
import { readRows } from './testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

type Field = { name: string; type: unknown; aliases?: string[]; default?: unknown };

async function register(fields: Field[]) {
  const schema = { type: 'record', name: 'R', fields };
  const id = await bench.schemas.register('t-value', JSON.stringify(schema));
  const type = avsc.Type.forSchema(schema as unknown as avsc.Schema);
  return (value: object) => ({ value: framed(id, type.toBuffer(value)) });
}

const rows = async () => {
  const found = await readRows(bench.warehouse, await bench.load('t'));
  return found.toSorted((a, b) => Number(a['_kafka_offset']) - Number(b['_kafka_offset']));
};

test('T10: added, promoted and renamed fields; an older version interleaved lands and never renames back', async () => {
  const v1 = await register([
    { name: 'a', type: 'int' },
    { name: 'old', type: 'string' },
  ]);
  const topic = await bench.topic('t', { 'table.topic.commit.interval.ms': '900000' });
  bench.produce(topic, [v1({ a: 1, old: 'x' })]);
  await bench.tables.commit('t');
  const v2 = await register([
    { name: 'a', type: 'long' },
    { name: 'now', type: 'string', aliases: ['old'] },
    { name: 'b', type: ['null', 'double'] },
  ]);
  bench.produce(topic, [
    v1({ a: 2, old: 'y' }),
    v2({ a: 2 ** 40, now: 'z', b: 1.5 }),
    v1({ a: 3, old: 'w' }),
  ]);
  await bench.tables.commit('t');
  expect(
    (await rows()).map((row) => [Number(row['a']), row['now'] ?? row['old'], row['b'] ?? null]),
  ).toEqual([
    [1, 'x', null],
    [2, 'y', null],
    [2 ** 40, 'z', 1.5],
    [3, 'w', null],
  ]);
  const metadata = await bench.load('t');
  const current = metadata.schemas.find(
    (one) => one['schema-id'] === metadata['current-schema-id'],
  )!;
  expect(current.fields.map((field) => [field.id, field.name, field.type]).slice(0, 2)).toEqual([
    [1, 'a', 'long'],
    [2, 'now', 'string'],
  ]);
  // The table alone says which column a source field owns.
  const map = fieldMapOf(metadata);
  expect([map.get('a'), map.get('old'), map.get('now')]).toEqual([1, 2, 2]);
  bench.produce(topic, [v1({ a: 4, old: 'v' })]);
  await bench.tables.commit('t');
  expect((await bench.load('t'))['current-schema-id']).toBe(metadata['current-schema-id']);
});

test('a type Iceberg can’t widen to takes a further column; both go on being filled', async () => {
  const v1 = await register([{ name: 'a', type: 'int' }]);
  const topic = await bench.topic('t', { 'table.topic.commit.interval.ms': '900000' });
  const v2 = await register([{ name: 'a', type: 'string' }]);
  bench.produce(topic, [v1({ a: 1 }), v2({ a: 'x' }), v1({ a: 2 })]);
  await bench.tables.commit('t');
  // Created from the newest version: its type has the plain name.
  expect((await rows()).map((row) => [row['a__int'] ?? null, row['a'] ?? null])).toEqual([
    [1, null],
    [null, 'x'],
    [2, null],
  ]);
});

test('transform none keeps the value whole; keys by schema become a struct of their own', async () => {
  const value = await register([{ name: 'a', type: 'int' }]);
  const keySchema = { type: 'record', name: 'K', fields: [{ name: 'id', type: 'int' }] };
  const keyId = await bench.schemas.register('t-key', JSON.stringify(keySchema));
  const key = avsc.Type.forSchema(keySchema as unknown as avsc.Schema);
  const topic = await bench.topic('t', {
    'table.topic.transform.value.type': 'none',
    'table.topic.convert.key.type': 'by_schema_id',
  });
  bench.produce(topic, [
    { ...value({ a: 1 }), key: framed(keyId, key.toBuffer({ id: 7 })) },
    { ...value({ a: 2 }), key: null },
    { ...value({ a: 3 }), key: 'not framed' },
  ]);
  await bench.tables.commit('t');
  expect((await rows()).map((row) => [row['_kafka_value'], row['_kafka_key'] ?? null])).toEqual([
    [{ a: 1 }, { id: 7 }],
    [{ a: 2 }, null],
  ]);
  const [letter] = await readRows(bench.warehouse, await bench.load('t_dlq'));
  expect(letter).toMatchObject({ stage: 'key', reason: 'no_schema_id' });
});

test('a foreign column and a foreign commit in between are welcome', async () => {
  const v1 = await register([{ name: 'a', type: 'int' }]);
  const topic = await bench.topic('t', { 'table.topic.commit.interval.ms': '900000' });
  bench.produce(topic, [v1({ a: 1 })]);
  await bench.tables.commit('t');
  const { metadata, identifier } = await bench.catalog.loadTable({
    namespace: ['kafka'],
    name: 't',
  });
  const [schema] = metadata.schemas;
  const id = metadata['last-column-id'] + 1;
  await bench.catalog.commitTable(identifier, {
    requirements: [],
    updates: [
      {
        action: 'add-schema',
        schema: {
          ...schema,
          fields: [...schema!.fields, { id, name: 'theirs', required: false, type: 'int' }],
        },
        'last-column-id': id,
      },
      { action: 'set-current-schema', 'schema-id': -1 },
    ],
  });
  const v2 = await register([
    { name: 'a', type: 'int' },
    { name: 'ours', type: 'int' },
  ]);
  bench.produce(topic, [v2({ a: 2, ours: 5 })]);
  await bench.tables.commit('t');
  expect((await rows()).map((row) => [row['a'], row['ours'] ?? null])).toEqual([
    [1, null],
    [2, 5],
  ]);
  const after = await bench.load('t');
  expect(after.schemas.at(-1)!.fields.map((field) => field.name)).toEqual(
    expect.arrayContaining(['theirs', 'ours']),
  );
});
