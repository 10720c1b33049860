// Dead letters tried again: rows by now, each once, over lost answers and restarts.
import avsc from 'avsc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import { Bench, framed } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';

let bench: Bench;
/** What the next commits do: the answer is lost after the commit, or it never happens. */
let mishaps: ('lost' | 'down')[] = [];

const wrapCatalog = (catalog: Catalog): Catalog =>
  new Proxy(catalog, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]) => {
        const mishap = name === 'commitTable' ? mishaps.shift() : undefined;
        if (mishap === 'down') throw new FloeError('unavailable', 'the catalog is down');
        const result = await Reflect.apply(value, target, args);
        if (mishap === 'lost') throw new FloeError('timeout', 'the answer was lost');
        return result;
      };
    },
  });

beforeEach(async () => {
  mishaps = [];
  bench = await Bench.open({ wrapCatalog });
  bench.start();
});

afterEach(() => bench.stop());

const order = { type: 'record', name: 'Order', fields: [{ name: 'id', type: 'int' }] } as const;
const type = avsc.Type.forSchema(order as unknown as avsc.Schema);
const value = (schemaId: number, id: number) => framed(schemaId, type.toBuffer({ id }));

const ids = async () =>
  (await readRows(bench.warehouse, await bench.load('t')))
    .map((row) => Number(row['id']))
    .toSorted((a, b) => a - b);

/** Rows 1 and 4; letters 2 and 3 of schema 2, which isn't there yet, and one that never will be a row. */
async function withLetters(tolerance = 'dlq_table') {
  await bench.schemas.register('t-value', JSON.stringify(order));
  const topic = await bench.topic('t', { 'table.topic.errors.tolerance': tolerance });
  bench.produce(topic, [{ value: value(1, 1) }, { value: value(2, 2) }, { value: 'no schema' }]);
  bench.produce(topic, [{ value: value(2, 3) }, { value: value(1, 4) }]);
  await bench.tables.commit('t');
  expect(await ids()).toEqual([1, 4]);
  return topic;
}

/** The schema appears; unknown ids are asked for again after a restart at the latest. */
async function cure() {
  await bench.tables.stop();
  await bench.schemas.register('t-value', JSON.stringify(order));
  bench.start();
}

const letters = async (topicId: string) =>
  (await bench.metadata.tables.openLetters(topicId)).reduce((sum, { count }) => sum + count, 0);

test.each(['dlq_table', 'dlq_topic'])(
  '%s: what is a row by now enters the table, once',
  async (tolerance) => {
    const { topicId } = await withLetters(tolerance);
    expect(await bench.tables.replay('t')).toEqual({ rows: 0, letters: 3, gone: 0 });
    await cure();
    expect(await bench.tables.replay('t')).toEqual({ rows: 2, letters: 1, gone: 0 });
    expect(await ids()).toEqual([1, 2, 3, 4]);
    expect(await bench.tables.replay('t')).toEqual({ rows: 0, letters: 1, gone: 0 });
    expect(await ids()).toEqual([1, 2, 3, 4]);
    expect(await letters(topicId)).toBe(1);
    bench.produce(bench.directory.byName('t')!, [{ value: value(1, 5) }]);
    await bench.tables.commit('t');
    expect(await ids()).toEqual([1, 2, 3, 4, 5]);
    expect(await bench.tables.status('t')).toMatchObject({ state: 'running', lagRecords: 0 });
  },
);

test('a lost answer is found out, not repeated', async () => {
  await withLetters();
  await cure();
  await bench.tables.commit('t');
  mishaps = ['lost'];
  expect(await bench.tables.replay('t')).toMatchObject({ rows: 2 });
  expect(await ids()).toEqual([1, 2, 3, 4]);
});

test('an outcome that stays unknown is found at the next start', async () => {
  const { topicId } = await withLetters();
  await cure();
  await bench.tables.commit('t');
  // It lands, and the look afterwards never comes: the process ends not knowing.
  const end = bench.metadata.tables.endReplay.bind(bench.metadata.tables);
  bench.metadata.tables.endReplay = async () => {
    throw new FloeError('unavailable', 'the process ends');
  };
  await expect(bench.tables.replay('t')).rejects.toThrow(/process ends/);
  bench.metadata.tables.endReplay = end;
  expect(await letters(topicId)).toBe(3);
  await bench.tables.stop();
  bench.start();
  await bench.tables.commit('t');
  expect(await letters(topicId)).toBe(1);
  expect(await bench.tables.replay('t')).toEqual({ rows: 0, letters: 1, gone: 0 });
  expect(await ids()).toEqual([1, 2, 3, 4]);
});

test('what can’t be committed stays a letter; nothing is lost when it can', async () => {
  const { topicId } = await withLetters();
  await cure();
  await bench.tables.commit('t');
  mishaps = Array.from({ length: 10 }, () => 'down' as const);
  await expect(bench.tables.replay('t')).rejects.toThrow(/catalog is down/);
  mishaps = [];
  expect(await letters(topicId)).toBe(3);
  // Nobody knows yet that the requests can't arrive any more; a commit moves the table past them.
  expect(await bench.tables.replay('t')).toEqual({ rows: 0, letters: 1, gone: 0 });
  bench.produce(bench.directory.byName('t')!, [{ value: value(1, 5) }]);
  await bench.tables.commit('t');
  expect(await bench.tables.replay('t')).toEqual({ rows: 2, letters: 1, gone: 0 });
  expect(await ids()).toEqual([1, 2, 3, 4, 5]);
});

test('letters whose records retention took are told of', async () => {
  const topic = await withLetters();
  await cure();
  bench.log.expire(topic.partitions[0]!, 3);
  expect(await bench.tables.replay('t')).toEqual({ rows: 1, letters: 0, gone: 2 });
  expect(await ids()).toEqual([1, 3, 4]);
});

test('after a rewind a replayed letter is a row like others', async () => {
  await withLetters();
  await cure();
  await bench.tables.replay('t');
  expect(await bench.tables.rewind('t', { kind: 'start' })).toMatchObject({ rows: 4 });
  await bench.tables.commit('t');
  expect(await ids()).toEqual([1, 2, 3, 4]);
  expect(await bench.tables.replay('t')).toMatchObject({ rows: 0, letters: 1 });
});
