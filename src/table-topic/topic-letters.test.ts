// Dead letters in a topic: original records, Connect's headers, once per offset whatever is read again.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Topic } from '../metadata/topics.ts';
import { RecordCursor } from '../protocol/record-cursor.ts';
import { Bench } from './testing/bench.ts';

let bench: Bench;

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const dlq = {
  'table.topic.convert.value.type': 'json',
  'table.topic.errors.tolerance': 'dlq_topic',
};

interface Found {
  readonly key: string | null;
  readonly value: string | null;
  readonly timestamp: number;
  readonly headers: readonly (readonly [string, string | null])[];
}

/** The records of a topic, in order. */
function records(topic: Topic): Found[] {
  const cursor = new RecordCursor();
  const found: Found[] = [];
  const text = (start: number, length: number) =>
    length < 0 ? null : Buffer.from(cursor.bytes).toString('utf8', start, start + length);
  for (const partitionId of topic.partitions) {
    for (const batch of bench.log.batches(partitionId)) {
      cursor.open(batch);
      while (cursor.next()) {
        const key = text(cursor.keyStart, cursor.keyLength);
        const value = text(cursor.valueStart, cursor.valueLength);
        const headers: [string, string | null][] = [];
        while (cursor.nextHeader()) {
          const name = text(cursor.headerKeyStart, cursor.headerKeyLength)!;
          headers.push([name, text(cursor.headerValueStart, cursor.headerValueLength)]);
        }
        found.push({ key, value, timestamp: cursor.timestamp, headers });
      }
    }
  }
  return found;
}

const letterTopic = (name: string) => bench.directory.byName(name)!;
const offsets = (name: string) =>
  records(letterTopic(name)).map(
    ({ headers }) => headers.find(([header]) => header === '__connect.errors.offset')![1],
  );

test('key, value, headers and time are the record’s; Connect’s headers say where and why', async () => {
  const topic = await bench.topic('o', dlq);
  bench.produce(topic, [
    { value: '{"a":1}', timestamp: 5 },
    {
      key: 'k',
      value: 'not json',
      headers: [
        ['h', 'v'],
        ['n', null],
      ],
      timestamp: 1_700_000_000_000,
    },
    { value: null, timestamp: 7 },
    { value: '{"a":2}', timestamp: 8 },
  ]);
  await bench.tables.commit('o');
  const found = records(letterTopic('o-dlq'));
  expect(found.map(({ key, value }) => [key, value])).toEqual([
    ['k', 'not json'],
    [null, null],
  ]);
  expect(found[0]!.timestamp).toBe(1_700_000_000_000);
  expect(found[0]!.headers.slice(0, 2)).toEqual([
    ['h', 'v'],
    ['n', null],
  ]);
  expect(Object.fromEntries(found[0]!.headers)).toMatchObject({
    '__connect.errors.topic': 'o',
    '__connect.errors.partition': '0',
    '__connect.errors.offset': '1',
    '__connect.errors.stage': 'VALUE_CONVERTER',
    '__connect.errors.connector.name': 'kafka.o',
    '__floe.error.reason': 'not_json',
  });
  expect(await bench.tables.status('o')).toMatchObject({
    state: 'running',
    lagRecords: 0,
    counters: { rows: 2, deadLetters: 2 },
  });
  expect((await bench.catalog.listTables(['kafka'])).map(({ name }) => name)).toEqual(['o']);
});

test('once per offset: read again from the start, none comes twice and new ones do', async () => {
  const topic = await bench.topic('o', dlq);
  bench.produce(topic, [{ value: '{"a":1}' }, { value: 'bad' }, { value: '{"a":2}' }]);
  await bench.tables.commit('o');
  const { topicId } = topic;
  await bench.tables.stop();
  const record = (await bench.metadata.tables.get(topicId))!;
  const positions = [{ partition: 0, offset: 0 }];
  await bench.metadata.tables.rewind(topicId, record.epoch, { positions, nowMs: 1 });
  await bench.catalog.dropTable({ namespace: ['kafka'], name: 'o' }, { purge: true });
  await bench.metadata.tables.update(topicId, record.epoch, { tableUuid: '' });
  bench.start();
  bench.produce(topic, [{ value: 'worse' }]);
  await bench.tables.commit('o');
  expect(offsets('o-dlq')).toEqual(['1', '3']);
  expect(await bench.tables.status('o')).toMatchObject({ state: 'running', lagRecords: 0 });
});

test('a topic of dead letters of another name, of several partitions; deleted, it comes back', async () => {
  const topic = await bench.topic('o', { ...dlq, 'table.topic.errors.dlq.topic': 'graveyard' }, 3);
  const request = { topicId: bench.seeded().uuid(), name: 'graveyard', partitionCount: 2 };
  const graveyard = await bench.directory.create({ ...request, config: {}, nowMs: 1 });
  for (const partition of [0, 1, 2]) bench.produce(topic, [{ value: 'bad' }], partition);
  await bench.tables.commit('o');
  const counts = graveyard.partitions.map((id) => bench.log.batches(id).length);
  expect(counts).toEqual([2, 1]);
  await bench.directory.delete(graveyard.topicId);
  for (const id of graveyard.partitions) bench.log.gone.add(id);
  bench.produce(topic, [{ value: 'worse' }], 1);
  await bench.tables.commit('o');
  expect(offsets('graveyard')).toEqual(['1']);
});

test('a topic of dead letters that is a table itself doesn’t go round', async () => {
  const topic = await bench.topic('o', dlq);
  await bench.topic('o-dlq', { ...dlq, 'table.topic.errors.dlq.topic': 'o' });
  bench.produce(topic, [{ value: 'bad' }]);
  await bench.tables.commit('o');
  await bench.tables.commit('o-dlq');
  await bench.tables.commit('o');
  expect(offsets('o-dlq')).toEqual(['0']);
  expect(bench.log.batches(topic.partitions[0]!).length).toBe(1);
  expect(await bench.tables.status('o-dlq')).toMatchObject({
    state: 'running',
    lagRecords: 0,
    counters: { rows: 0, deadLetters: 0, skipped: 1 },
  });
});

test('more dead letters than one append takes are several stages', async () => {
  bench.log.maxAppendBytes = 4_000;
  const topic = await bench.topic('o', dlq);
  for (let n = 0; n < 40; n += 1) {
    bench.produce(topic, [{ value: 'x'.repeat(500) }, { value: `{"n":${n}}` }]);
  }
  await bench.tables.commit('o');
  expect(offsets('o-dlq')).toEqual(Array.from({ length: 40 }, (_, n) => String(2 * n)));
  expect(await bench.tables.status('o')).toMatchObject({ counters: { rows: 40, deadLetters: 40 } });
});

test('a value that alone is too long is told of without it', async () => {
  bench.log.maxAppendBytes = 4_000;
  const topic = await bench.topic('o', dlq);
  // Doesn't compress.
  let value = 'no json: ';
  for (let n = 1; value.length < 9_000; n += 1) value += Math.sin(n).toString(36).slice(3);
  bench.produce(topic, [
    { key: 'k', value },
    { key: 'long', value: 'y'.repeat(9_000) },
  ]);
  await bench.tables.commit('o');
  const [dropped, packed] = records(letterTopic('o-dlq'));
  expect(dropped).toMatchObject({ key: 'k', value: null });
  expect(Object.fromEntries(dropped!.headers)).toMatchObject({
    '__floe.error.value.bytes': String(value.length),
  });
  expect(packed).toMatchObject({ key: 'long', value: 'y'.repeat(9_000) });
});

test('what the log has no more is known as a letter no more', async () => {
  await bench.tables.stop();
  bench = await Bench.open({ settings: { 'table.sweep.age.ms': '1000' } });
  bench.start();
  const topic = await bench.topic('o', dlq);
  bench.produce(topic, [{ value: 'bad' }, { value: '{"a":1}' }]);
  bench.produce(topic, [{ value: 'bad' }]);
  await bench.tables.commit('o');
  bench.log.expire(topic.partitions[0]!, 2);
  await expect
    .poll(() => bench.metadata.tables.openLetters(topic.topicId), { timeout: 10_000 })
    .toEqual([{ partition: 0, count: 1, end: 3 }]);
});
