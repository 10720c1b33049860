// SQL on a node that doesn't coordinate the table it asks for: each record once, committed or not (rule K6); and upserts
// whose coordinator moves to a node that never had the table's key index (rule K3).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { seededIds, seededPrng } from '../../src/base/prng.ts';
import { resolveSettings } from '../../src/base/settings.ts';
import type { Topic } from '../../src/metadata/topics.ts';
import { openQueries, type QueryService, querySettings } from '../../src/queries/index.ts';
import { LocalObjectStore } from '../../src/storage/objects/local.ts';
import { Bench, framed } from '../../src/table-topic/testing/bench.ts';
import { FakeCluster, startNode, type TableNode } from '../../src/table-topic/testing/nodes.ts';

let folder: string;
let bench: Bench;
let fake: FakeCluster;
let nodes: Map<number, TableNode>;
/** Where queries run. */
let asked: number;
let queries: QueryService;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'floe-tail-nodes-'));
  const ids = seededIds(seededPrng(3));
  const store = await LocalObjectStore.open(join(folder, 'store'), { clock: systemClock, ids });
  const settings = { 'table.lanes.poll.ms': '10', 'table.keys.checkpoint.ms': '1000' };
  bench = await Bench.open({ store, settings });
  fake = new FakeCluster();
  nodes = new Map();
  for (const nodeId of [1, 2, 3]) fake.add(nodeId);
  for (const nodeId of [1, 2, 3]) nodes.set(nodeId, startNode(bench, fake, { nodeId }));
  asked = 2;
  queries = await openQueries({
    catalog: bench.catalog,
    warehouse: bench.warehouse,
    dataDir: folder,
    settings: resolveSettings(querySettings, { 'sql.max.concurrent': '1' }),
    clock: systemClock,
    metrics: noMetrics,
    tableOfTopic: (topic) => nodes.get(asked)!.tables.tableOf(topic),
    tail: {
      read: (identifier, metadata) => nodes.get(asked)!.tables.tail(identifier, metadata),
    },
  });
});

afterEach(async () => {
  await queries.stop();
  await Promise.all([...nodes.values()].map(({ tables }) => tables.stop()));
  bench.metadata.close();
  rmSync(folder, { recursive: true, force: true });
});

async function rows(sql: string): Promise<string[]> {
  const result = await queries.query(sql);
  const found: string[] = [];
  for await (const chunk of result.chunks())
    found.push(...chunk.getRows().map((row) => row.join('=')));
  return found.toSorted();
}

/** The same on every node. */
async function everywhere(sql: string): Promise<string[]> {
  const answers: string[][] = [];
  for (const nodeId of nodes.keys()) {
    asked = nodeId;
    answers.push(await rows(sql));
  }
  for (const answer of answers) expect(answer).toEqual(answers[0]);
  return answers[0]!;
}

async function coordinatedBy(topic: Topic, nodeId: number) {
  await fake.pin(`table/${topic.topicId}`, nodeId);
  return nodes.get(nodeId)!.tables;
}

const put = (id: number, text: string) => ({
  key: JSON.stringify({ id }),
  value: JSON.stringify({ id, text }),
});

const remove = (id: number) => ({ key: JSON.stringify({ id }), value: null });

// Commits only when asked to.
const LATE = {
  'table.topic.commit.interval.ms': '900000',
  'table.topic.convert.value.type': 'json',
};

const UPSERTS = {
  ...LATE,
  'table.topic.convert.key.type': 'json',
  'table.topic.upsert.enable': 'true',
  'table.topic.id.columns': '[id]',
};

test('append-only: committed and tail, each record once, on every node', async () => {
  const topic = await bench.topic('t', LATE, 2);
  const tables = await coordinatedBy(topic, 1);
  bench.produce(topic, [put(1, 'a'), put(2, 'b')]);
  await tables.commit('t');
  bench.produce(topic, [put(1, 'c')]);
  bench.produce(topic, [put(3, 'd')], 1);
  const wanted = ['1=a', '1=c', '2=b', '3=d'];
  expect(await everywhere('SELECT id, text FROM t')).toEqual(wanted);
  await tables.commit('t');
  expect(await everywhere('SELECT id, text FROM t')).toEqual(wanted);
  bench.produce(topic, [put(4, 'e')], 1);
  expect(await everywhere('SELECT id, text FROM t')).toEqual([...wanted, '4=e']);
});

test('registered schemas that no lane of this node has seen are bound for the tail', async () => {
  const fields = '{"name":"a","type":"int"}';
  const first = await bench.schemas.register(
    't-value',
    `{"type":"record","name":"r","fields":[${fields}]}`,
  );
  // Another schema with the same columns.
  const second = await bench.schemas.register(
    't-value',
    `{"type":"record","name":"r","doc":"v2","fields":[${fields}]}`,
  );
  const topic = await bench.topic('t', { 'table.topic.commit.interval.ms': '900000' }, 2);
  const tables = await coordinatedBy(topic, 1);
  bench.produce(topic, [{ value: framed(first, Buffer.from([2])) }]);
  await tables.commit('t');
  bench.produce(topic, [{ value: framed(second, Buffer.from([4])) }], 1);
  expect(await everywhere('SELECT a FROM t')).toEqual(['1', '2']);
});

test.each(['2', '3'])('upserts, format version %s: the newest of each key', async (version) => {
  const topic = await bench.topic('t', { ...UPSERTS, 'table.topic.format.version': version }, 2);
  const tables = await coordinatedBy(topic, 1);
  bench.produce(topic, [put(1, 'a'), put(2, 'b'), put(3, 'c')]);
  await tables.commit('t');
  bench.produce(topic, [put(1, 'aa'), put(1, 'aaa')]);
  bench.produce(topic, [remove(2), put(4, 'd')], 1);
  bench.produce(topic, [put(4, 'dd')]);
  const wanted = ['1=aaa', '3=c', '4=dd'];
  expect(await everywhere('SELECT id, text FROM t')).toEqual(wanted);
  await tables.commit('t');
  expect(await everywhere('SELECT id, text FROM t')).toEqual(wanted);
  bench.produce(topic, [put(2, 'again'), remove(3)]);
  expect(await everywhere('SELECT id, text FROM t')).toEqual(['1=aaa', '2=again', '4=dd']);
});

test.each(['2', '3'])(
  'K3: another coordinator goes on with the keys, format version %s',
  async (version) => {
    const topic = await bench.topic('t', { ...UPSERTS, 'table.topic.format.version': version }, 2);
    await coordinatedBy(topic, 1);
    const model = new Map<number, string>();
    let deleted = 0;
    for (const [round, nodeId] of [1, 2, 1, 3, 2, 3].entries()) {
      const tables = await coordinatedBy(topic, nodeId);
      // Keys of before change, go, and come back, on either partition; each round has new ones.
      for (let id = round; id < round + 6; id += 1) {
        bench.produce(topic, [put(id, `${round}/${id}`)], id % 2);
        model.set(id, `${round}/${id}`);
      }
      bench.produce(topic, [remove(deleted)], deleted % 2);
      model.delete(deleted);
      deleted = (deleted + 3) % 7;
      await tables.commit('t');
      const wanted = [...model].map(([id, text]) => `${id}=${text}`).toSorted();
      expect(await everywhere('SELECT id, text FROM t')).toEqual(wanted);
    }
    // The one that has the index dies without a word, and with it the node that asked.
    nodes.get(3)!.kill();
    nodes.delete(3);
    bench.produce(topic, [put(0, 'late'), remove(1)], 1);
    model.set(0, 'late').delete(1);
    const tables = await coordinatedBy(topic, 1);
    await expect
      .poll(async () => (await tables.status('t')).state, { timeout: 10_000 })
      .toBe('running');
    await tables.commit('t');
    const wanted = [...model].map(([id, text]) => `${id}=${text}`).toSorted();
    expect(await everywhere('SELECT id, text FROM t')).toEqual(wanted);
  },
);
