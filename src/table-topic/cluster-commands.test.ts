// Operators and the log's maintenance on any node of a cluster: status, commands, how far retention may go, upkeep.
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Topic } from '../metadata/topics.ts';
import type { Send } from './forward.ts';
import { tableRoutes } from './routes.ts';
import { Bench } from './testing/bench.ts';
import { FakeCluster, startNode, type TableNode } from './testing/nodes.ts';
import { coordinates } from './testing/parquet-rows.ts';

const NEVER = {
  'table.topic.convert.value.type': 'string',
  'table.topic.commit.interval.ms': '900000',
};
const PARTITIONS = 4;

let bench: Bench;
let fake: FakeCluster;
let nodes: Map<number, TableNode>;
let faces: Map<number, FastifyInstance>;
/** Requests that went from node to node. */
let sent: { readonly url: string; readonly headers: Readonly<Record<string, string>> }[];
let unreachable: boolean;

const send: Send = async (url, request) => {
  sent.push({ url, headers: request.headers });
  if (unreachable) throw new TypeError('fetch failed', { cause: new Error('connect refused') });
  const { hostname, pathname } = new URL(url);
  const { method, headers, body } = request;
  const answer = await faces.get(Number(hostname.slice('node-'.length)))!.inject({
    method: method as 'POST',
    url: pathname,
    headers,
    ...(body === undefined ? {} : { body }),
  });
  return { status: answer.statusCode, text: async () => answer.body };
};

beforeEach(async () => {
  bench = await Bench.open({ settings: { 'table.lanes.poll.ms': '10' } });
  fake = new FakeCluster();
  nodes = new Map();
  faces = new Map();
  sent = [];
  unreachable = false;
  for (const nodeId of [1, 2, 3]) {
    fake.add(nodeId, { http: nodeId === 3 ? null : `http://node-${nodeId}` });
  }
  for (const nodeId of [1, 2, 3]) {
    const node = startNode(bench, fake, { nodeId });
    nodes.set(nodeId, node);
    const app = Fastify();
    tableRoutes(app, { tables: node.tables, send });
    faces.set(nodeId, app);
  }
});

afterEach(async () => {
  for (const app of faces.values()) await app.close();
  await Promise.all([...nodes.values()].map(({ tables }) => tables.stop()));
  bench.metadata.close();
});

async function ask(nodeId: number, path: string, method: 'GET' | 'POST' = 'POST', body?: unknown) {
  const headers = { authorization: 'Basic YTpi' };
  const request = { method, url: path, headers, ...(body === undefined ? {} : { body }) };
  const answer = await faces.get(nodeId)!.inject(request as { method: 'POST'; url: string });
  return { code: answer.statusCode, body: answer.json() };
}

/** A table of two rounds of records, coordinated by node 1. */
async function table(): Promise<Topic> {
  const topic = await bench.topic('t', NEVER, PARTITIONS);
  await fake.pin(`table/${topic.topicId}`, 1);
  produce(topic);
  await nodes.get(1)!.tables.commit('t');
  return topic;
}

function produce(topic: Topic): void {
  for (const partition of topic.partitions.keys()) {
    bench.produce(topic, [{ value: 'v' }], partition);
  }
}

test('a status is the same on every node', async () => {
  const topic = await table();
  produce(topic);
  for (const nodeId of [1, 2, 3]) {
    const { code, body } = await ask(nodeId, '/v1/tables/t', 'GET');
    expect(code).toBe(200);
    expect(body).toMatchObject({
      state: 'running',
      coordinator: 1,
      table: 't',
      lagRecords: PARTITIONS,
      counters: { rows: PARTITIONS, commits: 1 },
    });
    expect(body.tableUuid).toBe((await bench.load('t'))['table-uuid']);
    const list = await ask(nodeId, '/v1/tables', 'GET');
    expect(list.body.tables).toMatchObject([{ topic: 't', coordinator: 1 }]);
  }
  expect(sent).toEqual([]);
});

test('a command reaches the coordinator from any node, with the caller’s authorization', async () => {
  const topic = await table();
  produce(topic);
  expect(await ask(2, '/v1/tables/t/commit')).toMatchObject({
    code: 200,
    body: { lagRecords: 0, counters: { rows: 2 * PARTITIONS } },
  });
  expect(sent).toMatchObject([
    {
      url: 'http://node-1/v1/tables/t/commit',
      headers: { authorization: 'Basic YTpi', 'x-floe-forwarded': '2' },
    },
  ]);
  expect(await ask(3, '/v1/tables/t/pause')).toMatchObject({ body: { state: 'paused' } });
  expect(await ask(2, '/v1/tables/t/resume', 'POST', { policy: 'keep' })).toMatchObject({
    code: 200,
  });
  const rewind = { offsets: { 0: 1 } };
  expect(await ask(2, '/v1/tables/t/rewind', 'POST', rewind)).toMatchObject({
    code: 200,
    body: { rows: 1, offsets: { 0: 1 } },
  });
  // What the other node refuses is refused in its words.
  expect(await ask(2, '/v1/tables/t/resume', 'POST', { policy: 'no' })).toMatchObject({
    code: 400,
    body: { error: { message: expect.stringContaining('policy "no"') } },
  });
  expect(await ask(2, '/v1/tables/unknown/commit')).toMatchObject({ code: 404 });
});

test('a command isn’t sent around, nor to a node that can’t be reached', async () => {
  const topic = await table();
  const forwarded = await faces.get(2)!.inject({
    method: 'POST',
    url: '/v1/tables/t/commit',
    headers: { 'x-floe-forwarded': '1' },
  });
  expect(forwarded.statusCode).toBe(503);
  expect(forwarded.json().error.message).toMatch(/moving to node 1: try again/);
  unreachable = true;
  expect(await ask(2, '/v1/tables/t/commit')).toMatchObject({
    code: 503,
    body: { error: { message: expect.stringMatching(/http:\/\/node-1 \(connect refused\)/) } },
  });
  await fake.pin(`table/${topic.topicId}`, 3);
  expect(await ask(2, '/v1/tables/t/commit')).toMatchObject({
    code: 503,
    body: { error: { message: expect.stringMatching(/node 3 .* has no HTTP/) } },
  });
});

test('M3: retention stays behind the committed rows, on whichever node it works', async () => {
  const topic = await table();
  const [first] = topic.partitions as [number];
  const { tables } = nodes.get(2)!;
  // Not known yet: everything is held.
  expect(tables.retentionPin(first)).toBe(0);
  await expect.poll(() => tables.retentionPin(first), { timeout: 10_000 }).toBe(1);
  expect(nodes.get(1)!.tables.retentionPin(first)).toBe(1);
  expect(tables.retentionHoldBytes(first)).toBeGreaterThan(0);
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.enable': 'false' });
  expect(tables.retentionPin(first)).toBeUndefined();
  const enabled = await bench.topic('u', NEVER);
  expect(tables.retentionPin(enabled.partitions[0]!)).toBe(0);
});

test('T6: somebody who claims late, without the lease, is followed by whoever has it', async () => {
  const topic = await table();
  const { topicId, name: topicName } = topic;
  await bench.metadata.tables.claim({ topicId, topicName, namespace: ['kafka'], table: 't' });
  produce(topic);
  await nodes
    .get(1)!
    .tables.commit('t')
    .catch(() => {});
  const { tables } = nodes.get(1)!;
  await expect
    .poll(async () => (await tables.status('t')).state, { timeout: 10_000 })
    .toBe('running');
  await tables.commit('t');
  expect(await coordinates(bench.warehouse, await bench.load('t'))).toHaveLength(2 * PARTITIONS);
});

test('files are looked after by one node, which needn’t be the coordinator’s', async () => {
  const topic = await table();
  for (let round = 0; round < 3; round += 1) {
    produce(topic);
    await nodes.get(1)!.tables.commit('t');
  }
  const answers = await Promise.all(
    [1, 2].map(async (nodeId) => ask(nodeId, '/v1/tables/t/compact')),
  );
  const files = async () => {
    const { snapshots } = await bench.load('t');
    return snapshots!.at(-1)!.summary!['total-data-files'];
  };
  const done = answers.filter(({ code }) => code === 200);
  if (done.length === 0) {
    // Node 3 has the shard, and no HTTP: it says so.
    expect(answers[0]!.body.error.message).toMatch(/node 3 .* has no HTTP/);
    await nodes.get(3)!.tables.maintain('t', 'compact');
  }
  expect(Number(await files())).toBeLessThan(4 * PARTITIONS);
  expect(await coordinates(bench.warehouse, await bench.load('t'))).toHaveLength(4 * PARTITIONS);
});
