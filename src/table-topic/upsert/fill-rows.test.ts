// Cells that a source didn't send are those of the key's row of before, wherever that row is: in the same job, the same
// commit, the table; against a replay of the events that fills them in itself.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RecordInput } from '../../protocol/record-builder.ts';
import { UNAVAILABLE } from '../debezium/unavailable.ts';
import { Bench } from '../testing/bench.ts';
import { liveRows } from './testing/live-rows.ts';

const CONFIG = {
  'table.topic.convert.value.type': 'json',
  'table.topic.convert.key.type': 'json',
  'table.topic.transform.value.type': 'flatten_debezium',
  'table.topic.upsert.enable': 'true',
  'table.topic.id.columns': '[id]',
};

interface Image {
  readonly id: number;
  readonly a?: unknown;
  readonly b?: unknown;
  readonly list?: unknown;
}

const json = JSON.stringify;
const event = (op: string, image: Image | undefined): RecordInput => ({
  key: image === undefined ? null : json({ id: image.id }),
  value: json({
    before: op === 'd' ? image : null,
    after: op === 'd' ? null : (image ?? null),
    source: { connector: 'postgresql', table: 't' },
    op,
    ts_ms: 2,
  }),
});

const put = (id: number, a: unknown, b: unknown = 'b', more: object = {}) =>
  event('u', { id, a, b, ...more });

async function rowsOf(bench: Bench): Promise<string[]> {
  const rows = await liveRows(bench.warehouse, await bench.load('t'));
  return rows
    .map(({ id, a, b, list }) => json([Number(id), a, b, ...(list === undefined ? [] : [list])]))
    .toSorted();
}

async function open(config: Readonly<Record<string, string>> = {}, partitions = 1) {
  const bench = await Bench.open();
  bench.start();
  return { bench, topic: await bench.topic('t', { ...CONFIG, ...config }, partitions) };
}

/** No file of the table says the placeholder, whether its rows are deleted or not. */
async function expectNoPlaceholder(bench: Bench): Promise<void> {
  for await (const { key } of bench.store.list('')) {
    if (!key.endsWith('.parquet')) continue;
    expect(Buffer.from(await bench.store.get(key)).includes(UNAVAILABLE), key).toBe(false);
  }
}

const UNCOMPRESSED = {
  'table.topic.properties.write.parquet.compression-codec': 'uncompressed',
};

describe.each(['2', '3'])('format version %s', (version) => {
  test('the old cell stays: of the job, of the table, of a key that is new', async () => {
    const { bench, topic } = await open({ ...UNCOMPRESSED, 'table.topic.format.version': version });
    bench.produce(topic, [
      put(1, 'one'),
      put(2, 'two'),
      put(2, UNAVAILABLE, 'x'),
      put(3, UNAVAILABLE),
      put(4, 'four'),
      event('d', { id: 4 }),
      put(4, UNAVAILABLE, 'again'),
    ]);
    await bench.tables.commit('t');
    const first = ['[1,"one","b"]', '[2,"two","x"]', '[3,null,"b"]', '[4,null,"again"]'];
    expect(await rowsOf(bench)).toEqual(first);
    await expectNoPlaceholder(bench);
    bench.produce(topic, [put(1, UNAVAILABLE, 'y'), put(2, UNAVAILABLE, UNAVAILABLE)]);
    bench.produce(topic, [put(3, 'three', UNAVAILABLE), put(4, UNAVAILABLE, 'z')]);
    await bench.tables.commit('t');
    const second = ['[1,"one","y"]', '[2,"two","x"]', '[3,"three","b"]', '[4,null,"z"]'];
    expect(await rowsOf(bench)).toEqual(second);
    // Again from a file that a commit made, after a restart.
    await bench.tables.stop();
    bench.start();
    bench.produce(topic, [put(1, UNAVAILABLE, 'w')]);
    await bench.tables.commit('t');
    expect(await rowsOf(bench)).toEqual(['[1,"one","w"]', ...second.slice(1)]);
    await expectNoPlaceholder(bench);
    await bench.stop();
  });
});

test('rows are clustered and sorted by the cells they get', async () => {
  const { bench, topic } = await open({
    'table.topic.partition.by': '[a]',
    'table.topic.sort.by': '[b]',
  });
  bench.produce(topic, [put(1, 'x', 'b1'), put(2, 'y', 'b2'), put(3, 'x', 'b3')]);
  await bench.tables.commit('t');
  bench.produce(topic, [
    put(1, UNAVAILABLE, 'c9'),
    put(3, UNAVAILABLE, 'c1'),
    put(2, 'z', UNAVAILABLE),
  ]);
  await bench.tables.commit('t');
  expect(await rowsOf(bench)).toEqual(['[1,"x","c9"]', '[2,"z","b2"]', '[3,"x","c1"]']);
  const { summary } = (await bench.load('t')).snapshots!.at(-1)!;
  expect(summary).toMatchObject({ 'added-data-files': '2', 'changed-partition-count': '3' });
  await bench.stop();
});

test('arrays of a placeholder are unavailable too', async () => {
  const { bench, topic } = await open();
  bench.produce(topic, [put(1, 'a', 'b', { list: ['p', 'q'] }), put(2, 'a')]);
  await bench.tables.commit('t');
  bench.produce(topic, [put(1, 'c', 'b', { list: [UNAVAILABLE] })]);
  await bench.tables.commit('t');
  const rows = await liveRows(bench.warehouse, await bench.load('t'));
  expect(rows.find(({ id }) => Number(id) === 1)).toMatchObject({ a: 'c', list: ['p', 'q'] });
  await bench.stop();
});

test('a truncate between two changes leaves nothing to keep', async () => {
  const { bench, topic } = await open();
  bench.produce(topic, [put(1, 'one'), put(2, 'two')]);
  await bench.tables.commit('t');
  bench.produce(topic, [event('t', undefined), put(1, UNAVAILABLE), put(2, 'new')]);
  bench.produce(topic, [put(2, UNAVAILABLE, 'c')]);
  await bench.tables.commit('t');
  expect(await rowsOf(bench)).toEqual(['[1,null,"b"]', '[2,"new","c"]']);
  await bench.stop();
});

const KEYS = 4;

interface Step {
  readonly kind: 'put' | 'delete' | 'truncate' | 'commit' | 'restart';
  readonly id: number;
  readonly a: boolean;
  readonly b: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant('put' as const) },
    { weight: 2, arbitrary: fc.constant('delete' as const) },
    { weight: 1, arbitrary: fc.constant('truncate' as const) },
    { weight: 3, arbitrary: fc.constant('commit' as const) },
    { weight: 1, arbitrary: fc.constant('restart' as const) },
  ),
  id: fc.nat(KEYS - 1),
  a: fc.boolean(),
  b: fc.boolean(),
});

test('any history equals its replay', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const { bench, topic } = await open({ 'table.topic.commit.interval.ms': '900000' }, KEYS);
      const model = new Map<number, readonly [unknown, unknown]>();
      // Columns have to be there.
      bench.produce(topic, [put(0, 'a', 'b')]);
      model.set(0, ['a', 'b']);
      let value = 0;
      for (const { kind, id, a, b } of steps) {
        if (kind === 'commit') await bench.tables.commit('t');
        else if (kind === 'restart') {
          await bench.tables.stop();
          bench.start();
        } else if (kind === 'truncate') {
          bench.produce(topic, [event('t', undefined)]);
          model.clear();
        } else if (kind === 'delete') {
          bench.produce(topic, [event('d', { id })], id);
          model.delete(id);
        } else {
          value += 1;
          const before = model.get(id) ?? [null, null];
          const after = [a ? `a${value}` : UNAVAILABLE, b ? `b${value}` : UNAVAILABLE] as const;
          bench.produce(topic, [put(id, after[0], after[1])], id);
          model.set(id, [a ? after[0] : before[0], b ? after[1] : before[1]]);
        }
      }
      await bench.tables.commit('t');
      const wanted = [...model].map(([id, [a, b]]) => json([id, a, b])).toSorted();
      expect(await rowsOf(bench)).toEqual(wanted);
      await bench.stop();
    }),
    { numRuns: 25, seed: 7 },
  );
});
