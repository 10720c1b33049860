// Several topics in one table: who may, what its rows and columns are, and two coordinators committing at once.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Topic } from '../metadata/topics.ts';
import { tableIdentifier } from './settings/index.ts';
import { Bench } from './testing/bench.ts';
import { liveFiles, readRows } from './testing/parquet-rows.ts';
import { createTopicConfigValidator } from './validate.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const SHARED = {
  'table.topic.convert.value.type': 'json',
  'table.topic.name': 'all',
  'table.topic.shared': 'true',
};

const produce = (topic: Topic, values: readonly unknown[]) =>
  bench.produce(
    topic,
    values.map((value) => ({ value: typeof value === 'string' ? value : JSON.stringify(value) })),
  );

test('two topics fill one table: their rows, their own offsets, columns shared by name', async () => {
  const a = await bench.topic('a', SHARED);
  const b = await bench.topic('b', SHARED);
  produce(a, [{ id: 1, name: 'x' }, 'no json']);
  produce(b, [{ id: 'text', more: true }, 'no json either']);
  await Promise.all([bench.tables.commit('a'), bench.tables.commit('b')]);
  for (let round = 0; round < 5; round += 1) {
    produce(a, [{ id: 10 + round }]);
    produce(b, [{ id: `b${round}` }]);
    await Promise.all([bench.tables.commit('a'), bench.tables.commit('b')]);
  }
  const metadata = await bench.load('all');
  const rows = await readRows(bench.warehouse, metadata);
  const seen = rows.map((row) => `${row['_kafka_topic']}/${row['_kafka_offset']}`).toSorted();
  const expected = ['a', 'b'].flatMap((topic) =>
    [0, 2, 3, 4, 5, 6].map((offset) => `${topic}/${offset}`),
  );
  expect(seen).toEqual(expected);
  // The first to come gave the column its type; the other's values of another type have a column of their own.
  const names = metadata.schemas.at(-1)!.fields.map((field) => field.name);
  expect(names.filter((name) => name.startsWith('id'))).toHaveLength(2);
  expect(
    rows.every((row) => row['id'] != null || row['id__string'] != null || row['id__long'] != null),
  ).toBe(true);
  const dead = await readRows(bench.warehouse, await bench.load('all_dlq'));
  expect(dead.map((row) => row['topic']).toSorted()).toEqual(['a', 'b']);
  for (const topic of ['a', 'b']) {
    expect(await bench.tables.status(topic)).toMatchObject({ state: 'running', lagRecords: 0 });
  }
});

test('each goes on from its own offsets after a restart; a topic that ends leaves the rows', async () => {
  const a = await bench.topic('a', SHARED);
  const b = await bench.topic('b', SHARED);
  produce(a, [{ id: 1 }]);
  produce(b, [{ id: 2 }]);
  await bench.tables.commit('a');
  await bench.tables.commit('b');
  await bench.tables.stop();
  produce(a, [{ id: 3 }]);
  produce(b, [{ id: 4 }]);
  bench.start();
  await Promise.all([bench.tables.commit('a'), bench.tables.commit('b')]);
  await bench.directory.delete(b.topicId);
  produce(a, [{ id: 5 }]);
  await bench.tables.commit('a');
  const rows = await readRows(bench.warehouse, await bench.load('all'));
  expect(rows.map((row) => Number(row['id'])).toSorted()).toEqual([1, 2, 3, 4, 5]);
});

test('a topic that doesn’t share finds the table taken; one that begins to share keeps its rows', async () => {
  const plain = { ...SHARED, 'table.topic.shared': 'false' };
  const a = await bench.topic('a', plain);
  produce(a, [{ id: 1 }]);
  await bench.tables.commit('a');
  const b = await bench.topic('b', SHARED);
  produce(b, [{ id: 2 }]);
  await expect(bench.tables.commit('b')).rejects.toThrow(/exists and isn't this topic's/);
  await bench.directory.alterConfig(a.topicId, { 'table.topic.shared': 'true' });
  await bench.tables.commit('a');
  await bench.tables.resume('b');
  await bench.tables.commit('b');
  const rows = await readRows(bench.warehouse, await bench.load('all'));
  expect(rows.map((row) => [Number(row['id']), row['_kafka_topic'] ?? null]).toSorted()).toEqual([
    [1, null],
    [2, 'b'],
  ]);
  const c = await bench.topic('c', plain);
  produce(c, [{ id: 3 }]);
  await expect(bench.tables.commit('c')).rejects.toThrow(/is shared by other topics/);
});

test('configs that would clash are refused; sharing topics agree on the layout', async () => {
  await bench.topic('a', { ...SHARED, 'table.topic.partition.by': '[bucket(id, 4)]' });
  const validator = createTopicConfigValidator({
    directory: bench.directory,
    schemas: bench.schemas,
    catalog: bench.catalog,
  });
  const check = (name: string, over: Readonly<Record<string, string>>) =>
    validator.validate(name, { 'table.topic.enable': 'true', ...SHARED, ...over });
  await check('b', { 'table.topic.partition.by': '[bucket(id, 4)]' });
  await expect(check('b', {})).rejects.toThrow(/partition\.by: topic "a" fills the same table/);
  await expect(check('b', { 'table.topic.shared': 'false' })).rejects.toThrow(
    /belongs to topic "a".*table\.topic\.shared=true on both/,
  );
  await expect(
    check('b', { 'table.topic.name': 'ALL', 'table.topic.shared': 'false' }),
  ).rejects.toThrow(/belongs to topic "a"/);
  await expect(check('b', { 'table.topic.name': 'all_dlq' })).rejects.toThrow(/belongs to topic/);
});

test('names: templates by the topic’s parts, any script, and what doesn’t fit', () => {
  const of = (topic: string, namespace: string, name: string) => {
    const found = tableIdentifier(topic, {
      'table.topic.namespace': namespace,
      'table.topic.name': name,
    });
    return [...found.namespace, found.name].join('/');
  };
  expect(of('db.shop.orders', `lake.\${topic[0]}`, `\${topic[-1]}_v1`)).toBe('lake/db/orders_v1');
  expect(of('db.shop-eu.orders', 'lake', `\${topic}`)).toBe('lake/db_shop_eu_orders');
  expect(of('t', 'данные.日本', 'таблица-é')).toBe('данные/日本/таблица-é');
  expect(() => of('t', 'lake', `\${topic[1]}`)).toThrow(/topic "t" has no part 1/);
  expect(() => of('a..b', `\${topic[1]}`, '')).toThrow(/has no part 1/);
  expect(() => of('x'.repeat(200), 'a', `\${topic}\${topic}`)).toThrow(/too long/);
});

test('a name in another script is a table as any other', async () => {
  const topic = await bench.topic('t', {
    'table.topic.convert.value.type': 'string',
    'table.topic.namespace': 'данные',
    'table.topic.name': '表',
  });
  produce(topic, ['eins']);
  await bench.tables.commit('t');
  const files = await liveFiles(bench.warehouse, await bench.load('表', 'данные'));
  expect(files).toHaveLength(1);
});
