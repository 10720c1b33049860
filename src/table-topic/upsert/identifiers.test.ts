// Identifier fields as engines read them: set with a new table, gone before a row may lack one.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { currentSchema } from '../../formats/iceberg/history.ts';
import { Bench } from '../testing/bench.ts';
import { liveRows } from './testing/live-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const CONFIG = {
  'table.topic.convert.value.type': 'json',
  'table.topic.upsert.enable': 'true',
  'table.topic.id.columns': '[id, at]',
};

const value = (fields: object) => ({ value: JSON.stringify(fields) });

async function identifiers(): Promise<string[]> {
  const schema = currentSchema(await bench.load('t'));
  const ids = schema['identifier-field-ids'] ?? [];
  const named = ids.map((id) => schema.fields.find((field) => field.id === id)!);
  expect(named.every(({ required }) => required)).toBe(true);
  expect(schema.fields.filter(({ required }) => required)).toHaveLength(named.length);
  return named.map(({ name }) => name);
}

const texts = async () =>
  (await liveRows(bench.warehouse, await bench.load('t')))
    .map((row) => `${row['id']}/${row['at']}=${row['text']}`)
    .toSorted();

test('set with the table, kept while it evolves, gone with upserts', async () => {
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [value({ id: 1, at: 'x', text: 'a' }), value({ id: 1, text: 'null id' })]);
  await bench.tables.commit('t');
  expect(await identifiers()).toEqual(['id', 'at']);
  bench.produce(topic, [value({ id: 1, at: 'x', text: 'b', more: true })]);
  bench.produce(topic, [value({ id: 2, at: 'y', text: 'c' })]);
  await bench.tables.commit('t');
  expect(await identifiers()).toEqual(['id', 'at']);
  expect(await texts()).toEqual(['1/x=b', '2/y=c']);
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.upsert.enable': 'false' });
  bench.produce(topic, [value({ text: 'no id at all' })]);
  await bench.tables.commit('t');
  expect(await identifiers()).toEqual([]);
  expect(await texts()).toEqual(['1/x=b', '2/y=c', 'null/null=no id at all']);
});

test('with other id columns a row may lack the former ones', async () => {
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [value({ id: 1, at: 'x', text: 'a' })]);
  await bench.tables.commit('t');
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.id.columns': '[id]' });
  bench.produce(topic, [value({ id: 1, text: 'b' }), value({ id: 2, text: 'c' })]);
  await bench.tables.commit('t');
  expect(await identifiers()).toEqual([]);
  expect(await texts()).toEqual(['1/null=b', '2/null=c']);
});

test.each([
  ['a double', '[price]', 'error'],
  ['a column inside a struct', '[place.x]', 'error'],
  ['null as a value', '[id]', 'match'],
])('not set: %s', async (_, columns, nulls) => {
  const config = { ...CONFIG, 'table.topic.id.columns': columns, 'table.topic.id.null': nulls };
  const topic = await bench.topic('t', config);
  bench.produce(topic, [value({ id: 1, price: 1.5, place: { x: 1 } })]);
  await bench.tables.commit('t');
  expect(await identifiers()).toEqual([]);
});
