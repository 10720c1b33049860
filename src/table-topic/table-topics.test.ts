// The service as operators and topics see it: starting, stopping, pausing, gaps, recreated topics, moved tables.
import Fastify from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { buildBatch, buildControlBatch } from '../protocol/record-builder.ts';
import { tableRoutes } from './index.ts';
import { Bench } from './testing/bench.ts';
import { coordinates, readRows } from './testing/parquet-rows.ts';
import { WATERMARK_TAG } from './watermark.ts';

let bench: Bench;
const TEXT = { 'table.topic.convert.value.type': 'string' };
const NEVER = { ...TEXT, 'table.topic.commit.interval.ms': '900000' };

beforeEach(async () => {
  bench = await Bench.open();
  bench.start();
});

afterEach(() => bench.stop());

const where = async (name: string) => coordinates(bench.warehouse, await bench.load(name));
const lines = (...values: string[]) => values.map((value) => ({ value }));
const status = (name: string) => bench.tables.status(name);

test('T7: reads stop at the last stable offset; aborted records and markers are gaps, not rows', async () => {
  const topic = await bench.topic('t', NEVER);
  const [id] = topic.partitions as [number];
  bench.produce(topic, lines('a'));
  const transactional = { producerId: 7, producerEpoch: 0, transactional: true };
  bench.log.add(id, buildBatch(lines('x', 'y'), transactional));
  bench.log.setLastStable(id, 1);
  await bench.tables.commit('t');
  expect(await where('t')).toEqual(['0/0']);
  bench.log.add(
    id,
    buildControlBatch({
      type: 'abort',
      producerId: 7,
      producerEpoch: 0,
      coordinatorEpoch: 0,
      leaderEpoch: 0,
      baseOffset: 3,
      timestamp: 1,
    }),
  );
  bench.log.add(id, buildBatch(lines('z'), transactional));
  bench.log.setAborted(id, [{ producerId: 7, firstOffset: 1 }]);
  bench.log.setLastStable(id, undefined);
  await bench.tables.commit('t');
  expect(await where('t')).toEqual(['0/0', '0/4']);
  expect((await status('t')).lagRecords).toBe(0);
});

test('whoever orders a commit hears what kept the table from it, a record that can’t be staged too', async () => {
  const topic = await bench.topic('t', {
    'table.topic.convert.value.type': 'json',
    'table.topic.commit.interval.ms': '900000',
    'table.topic.errors.tolerance': 'none',
  });
  bench.produce(topic, lines('{"a":1}'));
  await bench.tables.commit('t');
  bench.produce(topic, lines('no json'));
  await expect(bench.tables.commit('t')).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('offset 1'),
  });
});

test('T7, M3: what retention took is counted, and no range jumps over it in silence', async () => {
  const topic = await bench.topic('t', NEVER);
  await bench.tables.commit('t');
  const [id] = topic.partitions as [number];
  bench.produce(topic, lines('a', 'b'));
  bench.produce(topic, lines('c'));
  bench.log.expire(id, 2);
  bench.log.skip(id, 3);
  bench.produce(topic, lines('d'));
  await bench.tables.commit('t');
  expect(await where('t')).toEqual(['0/2', '0/6']);
  expect((await status('t')).counters).toMatchObject({ lostOffsets: 2, rows: 2 });
});

test('a paused table stands still, over a restart too, and goes on where it was', async () => {
  const topic = await bench.topic('t', TEXT);
  bench.produce(topic, lines('a'));
  await bench.tables.commit('t');
  await bench.tables.pause('t');
  bench.produce(topic, lines('b'));
  await expect(bench.tables.commit('t')).rejects.toThrow(/is paused: paused by an operator/);
  await bench.tables.stop();
  bench.start();
  await expect.poll(async () => (await status('t')).state).toBe('paused');
  expect((await status('t')).counters.commits).toBe(1);
  await bench.tables.resume('t');
  await expect.poll(async () => (await status('t')).counters.commits).toBe(2);
  expect(await where('t')).toEqual(['0/0', '0/1']);
});

test('stopping commits what is staged; enabling an old topic backfills it', async () => {
  const topic = await bench.topic('t', { ...TEXT, 'table.topic.enable': 'false' }, 2);
  bench.produce(topic, lines('a', 'b'), 0);
  bench.produce(topic, lines('c'), 1);
  await expect(bench.tables.status('t')).rejects.toThrow(/table.topic.enable=true/);
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.enable': 'true' });
  await expect.poll(async () => (await status('t')).counters.rows).toBe(3);
  await bench.tables.stop();
  expect(await where('t')).toEqual(['0/0', '0/1', '1/0']);
});

test('backfill latest starts at the end; partitions added later start at their first record', async () => {
  const topic = await bench.topic('t', { ...TEXT, 'table.topic.enable': 'false' });
  bench.produce(topic, lines('old'));
  await bench.directory.alterConfig(topic.topicId, {
    'table.topic.enable': 'true',
    'table.topic.backfill': 'latest',
  });
  await bench.tables.commit('t');
  bench.produce(topic, lines('new'));
  const grown = await bench.directory.addPartitions(topic.topicId, 2);
  bench.produce(grown, lines('n0'), 1);
  await expect.poll(async () => (await status('t')).counters.rows).toBe(2);
  await bench.tables.commit('t');
  expect(await where('t')).toEqual(['0/1', '1/0']);
});

test('deleting the topic ends the work; a recreated one waits for a word, then appends', async () => {
  const topic = await bench.topic('t', TEXT);
  bench.produce(topic, lines('a'));
  await bench.tables.commit('t');
  await bench.directory.delete(topic.topicId);
  await expect(status('t')).rejects.toMatchObject({ code: 'not-found' });
  const again = await bench.topic('t', TEXT);
  bench.produce(again, lines('b', 'c'));
  await expect.poll(async () => (await status('t')).state).toBe('suspended');
  expect((await status('t')).reason).toMatch(/deleted topic of the same name .* append or replace/);
  await bench.directory.alterConfig(again.topicId, { 'table.topic.recreated': 'append' });
  await expect.poll(async () => (await status('t')).counters.commits).toBe(1);
  expect(await where('t')).toEqual(['0/0', '0/0', '0/1']);
});

test('a stranger’s table is refused unless adopted; required columns are named', async () => {
  await bench.catalog.ensureNamespace(['kafka']);
  const fields = [{ id: 1, name: '_kafka_value', required: false, type: 'string' as const }];
  const create = (name: string, extra: typeof fields) =>
    bench.catalog.createTable(['kafka'], {
      name,
      schema: { type: 'struct', 'schema-id': 0, fields: [...fields, ...extra] },
    });
  await create('t', []);
  await create('strict', [{ id: 2, name: 'must', required: true, type: 'string' }]);
  const topic = await bench.topic('t', TEXT);
  await bench.topic('strict', { ...TEXT, 'table.topic.adopt': 'true' });
  bench.produce(topic, lines('a'));
  await expect.poll(async () => (await status('t')).reason).toMatch(/isn't this topic's/);
  await expect
    .poll(async () => (await status('strict')).reason)
    .toMatch(/columns must are required/);
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.adopt': 'true' });
  await expect.poll(async () => (await status('t')).counters.commits).toBe(1);
  const metadata = await bench.load('t');
  expect(await readRows(bench.warehouse, metadata)).toMatchObject([{ _kafka_value: 'a' }]);
  expect(metadata.schemas.at(-1)!.fields.map((field) => field.name)).toContain('_kafka_offset');
});

async function rolledBack(): Promise<void> {
  const topic = await bench.topic('t', TEXT);
  for (const value of ['a', 'b']) {
    bench.produce(topic, lines(value));
    await bench.tables.commit('t');
  }
  const identifier = { namespace: ['kafka'], name: 't' };
  const first = (await bench.load('t')).snapshots![0]!['snapshot-id'];
  await bench.catalog.commitTable(identifier, {
    requirements: [],
    updates: [
      { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': first },
    ],
  });
  bench.produce(topic, lines('c'));
  await expect.poll(async () => (await status('t')).state).toBe('suspended');
  expect((await status('t')).reason).toMatch(/rolled back/);
}

test.each([
  ['rewind', ['0/0', '0/1', '0/2']],
  ['keep', ['0/0', '0/2']],
] as const)('T2: a rolled-back table suspends; policy %s', async (policy, expected) => {
  await rolledBack();
  await bench.tables.resume('t', policy);
  await expect.poll(async () => (await status('t')).lagRecords).toBe(0);
  expect(await where('t')).toEqual(expected);
});

test('T3: a dropped table suspends; restart fills a new one from the start', async () => {
  const topic = await bench.topic('t', TEXT);
  bench.produce(topic, lines('a'));
  await bench.tables.commit('t');
  await bench.catalog.dropTable({ namespace: ['kafka'], name: 't' }, { purge: false });
  bench.produce(topic, lines('b'));
  await expect.poll(async () => (await status('t')).state).toBe('suspended');
  await bench.tables.resume('t', 'restart');
  await expect.poll(async () => (await status('t')).lagRecords).toBe(0);
  expect(await where('t')).toEqual(['0/0', '0/1']);
});

test('T8: a column dropped after staging: the range is read again and lands without it', async () => {
  const topic = await bench.topic('t', {
    ...TEXT,
    'table.topic.commit.interval.ms': '900000',
  });
  bench.produce(topic, lines('a'));
  await bench.tables.commit('t');
  const metadata = await bench.load('t');
  const schema = metadata.schemas[0]!;
  const fields = schema.fields.filter((field) => field.name !== '_kafka_headers');
  bench.produce(topic, lines('b'));
  await bench.catalog.commitTable(
    { namespace: ['kafka'], name: 't' },
    {
      requirements: [],
      updates: [
        { action: 'add-schema', schema: { ...schema, 'schema-id': 1, fields } },
        { action: 'set-current-schema', 'schema-id': -1 },
      ],
    },
  );
  // The worker still writes with the schema it was given; the coordinator finds out at the commit.
  await bench.tables.commit('t');
  await bench.tables.commit('t');
  expect(await where('t')).toEqual(['0/0', '0/1']);
  expect((await bench.load('t'))['current-schema-id']).toBe(1);
});

test('retention is held at the committed position', async () => {
  const topic = await bench.topic('t', NEVER);
  const [id] = topic.partitions as [number];
  bench.produce(topic, lines('a', 'b'));
  await expect.poll(() => bench.tables.retentionPin(id)).toBe(0);
  await bench.tables.commit('t');
  expect(bench.tables.retentionPin(id)).toBe(2);
  expect(bench.tables.retentionPin(999)).toBeUndefined();
  expect(bench.log.pinned).toBe(0);
  expect((await bench.load('t')).refs?.[WATERMARK_TAG]).toBeDefined();
});

test('over HTTP: list, status, pause, resume, commit, and errors with their status', async () => {
  const app = Fastify();
  tableRoutes(app, { tables: bench.tables });
  const topic = await bench.topic('t', NEVER);
  bench.produce(topic, lines('a'));
  const call = async (method: 'GET' | 'POST', url: string, payload?: object) => {
    const response = await app.inject({
      method,
      url,
      ...(payload === undefined ? {} : { payload }),
    });
    return { code: response.statusCode, body: response.json() };
  };
  expect(await call('POST', '/v1/tables/t/commit')).toMatchObject({
    code: 200,
    body: { lagRecords: 0, counters: { rows: 1, commits: 1 } },
  });
  expect(await call('POST', '/v1/tables/t/pause')).toMatchObject({ body: { state: 'paused' } });
  expect(await call('POST', '/v1/tables/t/commit')).toMatchObject({ code: 503 });
  expect(await call('POST', '/v1/tables/t/resume', { policy: 'nonsense' })).toMatchObject({
    code: 400,
    body: { error: { message: 'policy "nonsense" is not one of rewind, keep, restart' } },
  });
  expect((await call('POST', '/v1/tables/t/resume')).code).toBe(200);
  expect(await call('GET', '/v1/tables')).toMatchObject({ body: { tables: [{ topic: 't' }] } });
  expect(await call('GET', '/v1/tables/none')).toMatchObject({ code: 404 });
  await app.close();
});
