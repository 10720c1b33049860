// Rewind, rebuild and replay of upsert tables: afterwards the table is what a replay of the log makes of it, by the configs
// of today, whatever was staged, forgotten by the key index or changed meanwhile.
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Topic } from '../../metadata/topics.ts';
import type { RecordInput } from '../../protocol/record-builder.ts';
import { Bench } from '../testing/bench.ts';
import { KeyIndexHost } from '../upsert/key-index.ts';
import { MemoryRunFiles } from '../upsert/run-files.ts';
import { liveRows } from '../upsert/testing/live-rows.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const CONFIG = {
  'table.topic.convert.value.type': 'json',
  'table.topic.convert.key.type': 'json',
  'table.topic.upsert.enable': 'true',
  'table.topic.id.columns': '[id]',
  'table.topic.commit.interval.ms': '900000',
};

const put = (id: number, text: unknown): RecordInput => ({
  key: JSON.stringify({ id }),
  value: JSON.stringify({ id, text }),
});
const remove = (id: number): RecordInput => ({ key: JSON.stringify({ id }), value: null });

async function texts(): Promise<string[]> {
  const rows = await liveRows(bench.warehouse, await bench.load('t'));
  return rows.map((row) => `${row['id']}=${row['text']}`).toSorted();
}

async function committed(topic: Topic, records: readonly RecordInput[], partition = 0) {
  bench.produce(topic, records, partition);
  await bench.tables.commit('t');
}

/** Another node: it has no index. */
async function elsewhere(): Promise<void> {
  await bench.tables.stop();
  bench.start({
    keys: new KeyIndexHost({
      io: bench.warehouse,
      ids: bench.seeded(),
      place: () => ({ database: ':memory:', runs: new MemoryRunFiles() }),
    }),
  });
}

describe.each(['2', '3'])('format version %s', (version) => {
  test('rewind: rows from there on go and come again, newer ones win', async () => {
    const topic = await bench.topic('t', { ...CONFIG, 'table.topic.format.version': version });
    await committed(topic, [put(1, 'a'), put(2, 'b'), put(3, 'c')]);
    await committed(topic, [put(1, 'aa'), remove(2), put(4, 'd')]);
    await committed(topic, [put(1, 'aaa'), put(2, 'again'), remove(4)]);
    const wanted = ['1=aaa', '2=again', '3=c'];
    expect(await texts()).toEqual(wanted);
    const to = { kind: 'offsets', offsets: new Map([[0, 4]]) } as const;
    expect(await bench.tables.rewind('t', to)).toMatchObject({ rows: 2 });
    expect(await texts()).toEqual(['3=c']);
    await bench.tables.commit('t');
    expect(await texts()).toEqual(wanted);
    await elsewhere();
    expect(await bench.tables.rewind('t', { kind: 'start' })).toMatchObject({ rows: 3 });
    expect(await texts()).toEqual([]);
    await committed(topic, [put(3, 'cc')]);
    expect(await texts()).toEqual(['1=aaa', '2=again', '3=cc']);
  });
});

test('a rebuild is by the configs of today: what is no row any more takes nobody’s place', async () => {
  const topic = await bench.topic('t', { ...CONFIG, 'table.topic.cdc.field': 'op' });
  const op = (id: number, text: string, word: string): RecordInput => ({
    key: JSON.stringify({ id }),
    value: JSON.stringify({ id, text, op: word }),
  });
  await committed(topic, [op(1, 'old', 'c'), op(1, '?', 'x')]);
  expect(await texts()).toEqual(['1=old']);
  // Without the operation column a record is a row whatever it says; then with it again.
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.cdc.field': null });
  await bench.tables.rewind('t', { kind: 'start' });
  await bench.tables.commit('t');
  expect(await texts()).toEqual(['1=?']);
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.cdc.field': 'op' });
  await bench.tables.rewind('t', { kind: 'start' });
  await bench.tables.commit('t');
  expect(await texts()).toEqual(['1=old']);
});

test('rows of records that the log has no more stay, until something comes for their keys', async () => {
  const topic = await bench.topic('t', CONFIG);
  await committed(topic, [put(1, 'a'), put(2, 'b')]);
  await committed(topic, [put(1, 'aa')]);
  bench.log.expire(topic.partitions[0]!, 2);
  await bench.tables.rewind('t', { kind: 'start' });
  expect(await texts()).toEqual(['2=b']);
  await bench.tables.commit('t');
  expect(await texts()).toEqual(['1=aa', '2=b']);
});

/** `{"id": 7}`-like values are rows only once `text` may be a number. */
const FUSSY = { ...CONFIG, 'table.topic.evolution.incompatible': 'dlq' };

async function withLetters() {
  const topic = await bench.topic('t', FUSSY, 2);
  await committed(topic, [put(1, 'a'), put(2, 'b'), put(3, 'c'), put(4, 'd')]);
  await committed(topic, [put(1, 10), put(2, 20), put(3, 30), put(4, 40), put(5, 50)]);
  expect(await texts()).toEqual(['1=a', '2=b', '3=c', '4=d']);
  return topic;
}

const cure = async (topic: Topic) => {
  const incompatible = 'table.topic.evolution.incompatible';
  await bench.directory.alterConfig(topic.topicId, { [incompatible]: 'new_column' });
};

const numbers = async () => {
  const rows = await liveRows(bench.warehouse, await bench.load('t'));
  return rows.map((row) => `${row['id']}=${row['text'] ?? row['text__long']}`).toSorted();
};

test.each(['the index at hand', 'no index'])(
  'replay, %s: a letter is a row unless something newer is known of its key',
  async (index) => {
    const topic = await withLetters();
    await committed(topic, [put(1, 'newer'), remove(2)]);
    await committed(topic, [remove(3), put(3, 'back')]);
    // A later letter of a key, and one that stays a letter.
    await committed(topic, [put(4, 41), { key: '{"id":6}', value: 'no json' }]);
    await cure(topic);
    if (index === 'no index') await elsewhere();
    expect(await bench.tables.replay('t')).toEqual({ rows: 6, letters: 1, gone: 0 });
    expect(await numbers()).toEqual(['1=newer', '3=back', '4=41', '5=50']);
    expect(await bench.tables.replay('t')).toEqual({ rows: 0, letters: 1, gone: 0 });
    await committed(topic, [put(5, 'five')]);
    expect(await numbers()).toEqual(['1=newer', '3=back', '4=41', '5=five']);
    // Nothing of the replay lies about.
    for await (const { key } of bench.store.list('')) expect(key).not.toMatch(/-keys\.bin$/);
    expect(await bench.metadata.tables.intents(Number.MAX_SAFE_INTEGER, 10)).toEqual([]);
  },
);

test('replay equals a replay of the log, whatever came between', async () => {
  const step = fc.record({
    kind: fc.constantFrom('put', 'put', 'letter', 'letter', 'delete', 'commit', 'elsewhere'),
    id: fc.nat(3),
  });
  await bench.stop();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 30 }), async (steps) => {
      bench = await Bench.open();
      bench.start();
      const topic = await bench.topic('t', FUSSY, 4);
      await committed(topic, [put(9, 'first')], 1);
      const model = new Map<number, string>([[9, 'first']]);
      for (const [n, { kind, id }] of steps.entries()) {
        if (kind === 'commit') await bench.tables.commit('t');
        else if (kind === 'elsewhere') await elsewhere();
        else if (kind === 'delete') {
          bench.produce(topic, [remove(id)], id);
          model.delete(id);
        } else {
          bench.produce(topic, [put(id, kind === 'put' ? `v${n}` : n)], id);
          model.set(id, kind === 'put' ? `v${n}` : String(n));
        }
      }
      await bench.tables.commit('t');
      await cure(topic);
      await bench.tables.replay('t');
      const wanted = [...model].map(([id, text]) => `${id}=${text}`).toSorted();
      expect(await numbers()).toEqual(wanted);
      await bench.stop();
    }),
    { numRuns: 15, seed: 3 },
  );
  bench = await Bench.open();
});
