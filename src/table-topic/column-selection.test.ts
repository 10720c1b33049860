// Columns chosen and renamed: the syntax, the proposal, and tables under it.
import avsc from 'avsc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ProposedStruct } from '../formats/arrow/proposed-schema.ts';
import type { Topic } from '../metadata/topics.ts';
import { parseColumns } from './column-list.ts';
import { formatRenames, ignoredPaths, parseRenames, selectColumns } from './column-selection.ts';
import { parseTopicConfig } from './settings/index.ts';
import { Bench, framed } from './testing/bench.ts';
import { readRows } from './testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

test('renames: text to rules and back, and what is wrong with them', () => {
  const text = '[userId: user_id, place.lat: latitude, `odd, name`: `a: b`]';
  expect(formatRenames(parseRenames(text))).toBe(text);
  expect(parseRenames('')).toEqual([]);
  for (const bad of ['[a]', '[a: b.c]', '[a b: c]', '[a: b: c]', '[a: b, a: c]']) {
    expect(() => parseRenames(bad), bad).toThrow();
  }
  expect(() => parseTopicConfig('table.topic.columns.rename', 'a: _kafka_offset')).toThrow(
    /Floe’s own/,
  );
  // Below the top level nothing is reserved.
  parseTopicConfig('table.topic.columns.rename', 'a.b: _kafka_offset');
});

const field = (path: string, type: ProposedStruct['fields'][number]['type']) => ({
  name: path.split('.').at(-1)!,
  aliases: [],
  path,
  type,
});
const PROPOSED: ProposedStruct = {
  type: 'struct',
  fields: [
    field('id', 'long'),
    field('place', {
      type: 'struct',
      fields: [field('place.lat', 'double'), field('place.lon', 'double')],
    }),
    field('items', {
      type: 'list',
      elementPath: 'items[]',
      element: {
        type: 'struct',
        fields: [
          { ...field('x', 'string'), path: 'items[].sku' },
          { ...field('x', 'int'), path: 'items[].count' },
        ],
      },
    }),
  ],
};

test('include and exclude reach into structs and lists; a struct without fields goes', () => {
  const select = (include: string, exclude: string) =>
    JSON.stringify(
      selectColumns(PROPOSED, {
        include: parseColumns(include),
        exclude: parseColumns(exclude),
        rename: [],
      }),
    ).match(/"path":"[^"]*"/g);
  const paths = (...all: string[]) => all.map((path) => `"path":"${path}"`);
  expect(selectColumns(PROPOSED, { include: [], exclude: [], rename: [] })).toBe(PROPOSED);
  expect(select('[place.lat, items.sku]', '')).toEqual(
    paths('place', 'place.lat', 'items', 'items[].sku'),
  );
  expect(select('', '[place, items.count]')).toEqual(paths('id', 'items', 'items[].sku'));
  expect(select('', '[place.lat, place.lon, items]')).toEqual(paths('id'));
  expect(select('[place]', '[place.lon]')).toEqual(paths('place', 'place.lat'));
  const ignored = ignoredPaths({ include: parseColumns('[a.b]'), exclude: [] })!;
  expect(['a', 'a.b', 'a.b.c', 'a[].b'].map(ignored)).toEqual([false, false, false, false]);
  expect(['a.c', 'b', 'a\\.b'].map(ignored)).toEqual([true, true, true]);
});

const alter = (topic: Topic, changes: Readonly<Record<string, string | null>>) =>
  bench.directory.alterConfig(topic.topicId, changes);

async function columns(table: string): Promise<string[]> {
  const metadata = await bench.load(table);
  const schema = metadata.schemas.find(
    (one) => one['schema-id'] === metadata['current-schema-id'],
  )!;
  return schema.fields.map(({ name }) => name).filter((name) => !name.startsWith('_kafka'));
}

async function rows(table: string): Promise<Record<string, unknown>[]> {
  const all = await readRows(bench.warehouse, await bench.load(table));
  return all.toSorted((a, b) => Number(a['_kafka_offset']) - Number(b['_kafka_offset']));
}

test('JSON: what is excluded makes no column, no dead letter and no further round', async () => {
  const topic = await bench.topic('j', {
    'table.topic.convert.value.type': 'json',
    'table.topic.columns.exclude': '[secret, place.lon]',
    'table.topic.columns.rename': '[userId: user_id]',
  });
  const value = (n: number, more = {}) =>
    JSON.stringify({ userId: n, secret: `s${n}`, place: { lat: 1.5, lon: 2 }, ...more });
  bench.produce(topic, [{ value: value(1) }, { value: value(2) }]);
  await bench.tables.commit('j');
  bench.produce(topic, [{ value: value(3, { secret: { deeper: [1] }, extra: true }) }]);
  await bench.tables.commit('j');
  expect(await columns('j')).toEqual(['user_id', 'place', 'extra']);
  expect((await rows('j')).map((row) => [Number(row['user_id']), row['place']])).toEqual(
    [1, 2, 3].map((n) => [n, { lat: 1.5 }]),
  );
  expect((await bench.tables.status('j')).counters).toMatchObject({ rows: 3, deadLetters: 0 });
  // Excluded later: the column stays and is null from then on. Included again: it fills.
  await alter(topic, { 'table.topic.columns.exclude': '[secret, extra, place.lon]' });
  bench.produce(topic, [{ value: value(4, { extra: false }) }]);
  await bench.tables.commit('j');
  await alter(topic, { 'table.topic.columns.exclude': '[secret]' });
  bench.produce(topic, [{ value: value(5, { extra: false }) }]);
  await bench.tables.commit('j');
  expect((await rows('j')).map((row) => row['extra'] ?? null).slice(2)).toEqual([
    true,
    null,
    false,
  ]);
  expect(await columns('j')).toEqual(['user_id', 'place', 'extra']);
});

const schema = (...names: string[]) =>
  JSON.stringify({
    type: 'record',
    name: 'R',
    fields: names.map((name) => ({ name, type: 'int', doc: `about ${name}` })),
  });

test('Avro: columns included; a rename while data flows renames the column for old rows too', async () => {
  await bench.schemas.register('a-value', schema('id', 'userId', 'noise'));
  const encode = (n: number) =>
    framed(
      1,
      avsc.Type.forSchema(JSON.parse(schema('id', 'userId', 'noise'))).toBuffer({
        id: n,
        userId: n * 10,
        noise: 7,
      }),
    );
  const topic = await bench.topic('a', {
    'table.topic.columns.include': '[id, userId]',
    'table.topic.partition.by': '[userId]',
  });
  bench.produce(topic, [{ value: encode(1) }]);
  await bench.tables.commit('a');
  expect(await columns('a')).toEqual(['id', 'userId']);
  await alter(topic, {
    'table.topic.columns.rename': '[userId: user_id]',
    'table.topic.partition.by': '[user_id]',
  });
  bench.produce(topic, [{ value: encode(2) }]);
  await bench.tables.commit('a');
  expect(await columns('a')).toEqual(['id', 'user_id']);
  const metadata = await bench.load('a');
  // Renamed by id: the spec's source is the same column.
  expect(metadata['partition-specs']).toHaveLength(1);
  expect(metadata.schemas.at(-1)!.fields[1]).toMatchObject({ id: 2, doc: 'about userId' });
  // A name that another column has is refused, and the table goes on once the rule is gone.
  await alter(topic, { 'table.topic.columns.rename': '[userId: id]' });
  await expect(bench.tables.commit('a')).rejects.toThrow(/can’t become "id"/);
  await alter(topic, { 'table.topic.columns.rename': null });
  bench.produce(topic, [{ value: encode(3) }]);
  await bench.tables.commit('a');
  expect(await columns('a')).toEqual(['id', 'user_id']);
  expect((await bench.tables.status('a')).counters).toMatchObject({ rows: 3, deadLetters: 0 });
});
