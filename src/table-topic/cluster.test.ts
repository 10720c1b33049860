// Tables whose partitions are spread over nodes: who stages, who commits, and that each record is a row once, whoever dies
// or goes on as a zombie.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Catalog, LoadedTable } from '../catalog/catalog.ts';
import type { Topic } from '../metadata/topics.ts';
import { Bench, framed } from './testing/bench.ts';
import { FakeCluster, startNode, type TableNode } from './testing/nodes.ts';
import { coordinates, readRows } from './testing/parquet-rows.ts';

const TEXT = { 'table.topic.convert.value.type': 'string' };
const PARTITIONS = 8;

let bench: Bench;
let fake: FakeCluster;
let nodes: Map<number, TableNode>;
/** Topic ids' stages by node. */
let staged: Map<number, number[]>;

beforeEach(async () => {
  bench = await Bench.open({
    settings: { 'table.lanes.poll.ms': '10', 'table.lanes.wait.ms': '500' },
  });
  fake = new FakeCluster();
  nodes = new Map();
  staged = new Map();
});

afterEach(async () => {
  await Promise.all([...nodes.values()].map(({ tables }) => tables.stop()));
  bench.metadata.close();
});

/** A node whose stages are noted, by partition. */
function node(nodeId: number, catalog: Catalog = bench.catalog): TableNode {
  fake.add(nodeId);
  const partitions: number[] = [];
  staged.set(nodeId, partitions);
  const { tables } = bench.metadata;
  const noting = new Proxy(tables, {
    get: (target, name) => {
      if (name !== 'stage') return Reflect.get(target, name).bind(target);
      return async (request: Parameters<typeof tables.stage>[0]) => {
        const outcome = await tables.stage(request);
        if (outcome.kind === 'staged') {
          partitions.push(...request.ranges.map(({ partition }) => partition));
        }
        return outcome;
      };
    },
  });
  const started = startNode(bench, fake, { nodeId, catalog, metadata: { tables: noting } });
  nodes.set(nodeId, started);
  return started;
}

/** Ends a node without a word. */
function kill(nodeId: number): void {
  nodes.get(nodeId)!.kill();
  nodes.delete(nodeId);
}

/** A catalog whose commits of rows wait: before they are made, or before they are answered. */
class GatedCatalog {
  /** Undefined: nothing waits. */
  at: 'before' | 'after' | undefined;
  waiting = 0;
  #open = Promise.withResolvers<void>();

  release(): void {
    this.at = undefined;
    this.#open.resolve();
  }

  wrap(catalog: Catalog): Catalog {
    return new Proxy(catalog, {
      get: (target, name) => {
        const value = Reflect.get(target, name) as unknown;
        if (name === 'commitTable') return this.#commit.bind(this, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }

  async #commit(
    catalog: Catalog,
    ...[identifier, request]: Parameters<Catalog['commitTable']>
  ): Promise<LoadedTable> {
    const rows = request.updates.some(({ action }) => action === 'add-snapshot');
    if (rows && this.at === 'before') await this.#wait();
    const answer = await catalog.commitTable(identifier, request);
    if (rows && this.at === 'after') await this.#wait();
    return answer;
  }

  async #wait(): Promise<void> {
    this.waiting += 1;
    await this.#open.promise;
  }
}

/** The nodes that don't coordinate the topic's table. */
const others = (topic: Topic) =>
  [...nodes.values()].filter(({ nodeId }) => nodeId !== coordinator(topic));

const onCoordinator = (topic: Topic) => nodes.get(coordinator(topic)!)!.tables;

/** One record in each partition. */
function produce(topic: Topic, value = 'v'): void {
  for (const partition of topic.partitions.keys()) {
    bench.produce(topic, [{ value }], partition);
  }
}

const where = async (name: string) => coordinates(bench.warehouse, await bench.load(name));

/** Coordinates of `rounds` records in each partition. */
const rows = (rounds: number) =>
  Array.from({ length: PARTITIONS }, (_, partition) =>
    Array.from({ length: rounds }, (_unused, offset) => `${partition}/${offset}`),
  )
    .flat()
    .toSorted();

async function committed(topic: Topic): Promise<number> {
  const positions = await bench.metadata.tables.positions(topic.topicId);
  return positions.reduce((sum, { committedEnd }) => sum + committedEnd, 0);
}

const coordinator = (topic: Topic) => fake.holder(`table/${topic.topicId}`);

test('partitions are staged by the nodes they were given to, and committed by one', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(2 * PARTITIONS);
  expect(await where('t')).toEqual(rows(2));
  const cluster = fake.clusterOf(1);
  const first = coordinator(topic);
  for (const [nodeId, partitions] of staged) {
    const own = [...topic.partitions.keys()].filter(
      (at) => cluster.chosen(`lane/${topic.topicId}/${at}`, 'tables')?.nodeId === nodeId,
    );
    expect(own.length).toBeGreaterThan(0);
    // The first rows call the table into being: for them its coordinator takes all partitions.
    if (nodeId !== first) expect(new Set(partitions)).toEqual(new Set(own));
  }
});

test('new columns, a schema and dead letters of lanes elsewhere are made by the coordinator', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const topic = await bench.topic('t', { 'table.topic.convert.value.type': 'json' }, PARTITIONS);
  produce(topic, '{"a":1}');
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  // Each partition has a column of its own, and one that is no row.
  for (const partition of topic.partitions.keys()) {
    bench.produce(topic, [{ value: `{"a":2,"c${partition}":true}` }], partition);
  }
  await expect.poll(() => committed(topic)).toBe(2 * PARTITIONS);
  for (const partition of topic.partitions.keys()) {
    bench.produce(topic, [{ value: 'no json' }, { value: '{"a":3}' }], partition);
  }
  await expect.poll(() => committed(topic)).toBe(4 * PARTITIONS);
  const read = await readRows(bench.warehouse, await bench.load('t'));
  for (const partition of topic.partitions.keys()) {
    const own = read.filter(
      (row) => row[`c${partition}`] !== null && row[`c${partition}`] !== undefined,
    );
    expect(own).toMatchObject([{ a: 2n, [`c${partition}`]: true, _kafka_partition: partition }]);
  }
  const letters = await readRows(bench.warehouse, await bench.load('t_dlq'));
  expect(letters.map((row) => row['partition']).toSorted()).toEqual([...topic.partitions.keys()]);
});

test('registered schemas are bound by each node, and their columns made by the coordinator', async () => {
  for (const nodeId of [1, 2]) node(nodeId);
  const avro = (name: string, fields: string) =>
    `{"type":"record","name":"${name}","fields":[${fields}]}`;
  const first = await bench.schemas.register('t-value', avro('r', '{"name":"a","type":"int"}'));
  const topic = await bench.topic('t', {}, PARTITIONS);
  for (const partition of topic.partitions.keys()) {
    bench.produce(topic, [{ value: framed(first, Buffer.from([2])) }], partition);
  }
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  const second = await bench.schemas.register(
    't-value',
    avro('r', '{"name":"a","type":"int"},{"name":"b","type":"int","default":0}'),
  );
  for (const partition of topic.partitions.keys()) {
    bench.produce(topic, [{ value: framed(second, Buffer.from([4, 6])) }], partition);
  }
  await expect.poll(() => committed(topic)).toBe(2 * PARTITIONS);
  const read = await readRows(bench.warehouse, await bench.load('t'));
  expect(read.filter(({ a, b }) => a === 1 && (b ?? null) === null)).toHaveLength(PARTITIONS);
  expect(read.filter(({ a, b }) => a === 2 && b === 3)).toHaveLength(PARTITIONS);
});

test('a commit by command takes in what lanes elsewhere have still to stage', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const never = { ...TEXT, 'table.topic.commit.interval.ms': '900000' };
  const topic = await bench.topic('t', never, PARTITIONS);
  await fake.settled();
  produce(topic);
  await onCoordinator(topic).commit('t');
  produce(topic);
  await onCoordinator(topic).commit('t');
  expect(await where('t')).toEqual(rows(2));
});

test('a node that dies leaves its partitions to the others, from where it had staged', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  const [first, second] = others(topic);
  // One has staged and nobody has committed it yet, when it goes.
  produce(topic);
  await expect.poll(() => staged.get(first!.nodeId)!.length).toBeGreaterThan(0);
  kill(first!.nodeId);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(3 * PARTITIONS);
  kill(second!.nodeId);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(4 * PARTITIONS);
  expect(await where('t')).toEqual(rows(4));
});

test('the coordinator dies: another one commits what was staged, and goes on', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  for (let round = 2; round <= 3; round += 1) {
    produce(topic);
    kill(coordinator(topic)!);
    await fake.settled();
    await expect.poll(() => committed(topic)).toBe(round * PARTITIONS);
  }
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(4 * PARTITIONS);
  expect(await where('t')).toEqual(rows(4));
});

test('a node that comes takes its share, and one that goes of its own will hands it over', async () => {
  node(1);
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  node(2);
  node(3);
  await fake.settled();
  for (let round = 2; round <= 4; round += 1) {
    produce(topic);
    await expect.poll(() => committed(topic)).toBe(round * PARTITIONS);
  }
  expect(staged.get(2)!.length + staged.get(3)!.length).toBeGreaterThan(0);
  const leaver = coordinator(topic)!;
  await nodes.get(leaver)!.tables.stop();
  nodes.delete(leaver);
  fake.bury(leaver);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(5 * PARTITIONS);
  expect(await where('t')).toEqual(rows(5));
});

test('T6: a zombie coordinator commits nothing any more, and what it stages is refused', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  const zombie = coordinator(topic)!;
  nodes.get(zombie)!.lose();
  await fake.settled();
  expect(coordinator(topic)).not.toBe(zombie);
  for (let round = 2; round <= 4; round += 1) {
    produce(topic);
    await expect.poll(() => committed(topic)).toBe(round * PARTITIONS);
  }
  await expect.poll(async () => (await nodes.get(zombie)!.tables.status('t')).state).toBe('fenced');
  expect(await where('t')).toEqual(rows(4));
});

test('T1: a zombie’s lane stages beside the one that follows it, and no row comes twice', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  const [zombie] = others(topic);
  zombie!.lose();
  await fake.settled();
  for (let round = 2; round <= 6; round += 1) {
    produce(topic);
    await expect.poll(() => committed(topic)).toBe(round * PARTITIONS);
  }
  expect(await where('t')).toEqual(rows(6));
});

test('a record that can’t be a row suspends the table, wherever its lane is', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const config = {
    'table.topic.convert.value.type': 'json',
    'table.topic.errors.tolerance': 'none',
  };
  const topic = await bench.topic('t', config, PARTITIONS);
  produce(topic, '{"a":1}');
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  const cluster = fake.clusterOf(1);
  const elsewhere = [...topic.partitions.keys()].find(
    (at) => cluster.chosen(`lane/${topic.topicId}/${at}`, 'tables')?.nodeId !== coordinator(topic),
  )!;
  bench.produce(topic, [{ value: 'no json' }], elsewhere);
  await expect
    .poll(async () => (await onCoordinator(topic).status('t')).reason)
    .toMatch(`record at partition ${elsewhere} offset 1 can't be a row`);
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.errors.tolerance': 'skip' });
  await expect.poll(() => committed(topic)).toBe(PARTITIONS + 1);
});

test('paused, nobody stages; resumed, everybody does', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  await onCoordinator(topic).pause('t');
  await expect
    .poll(async () => (await bench.metadata.tableLanes.heads([topic.topicId]))[0]!.state)
    .toBe('paused');
  produce(topic);
  await onCoordinator(topic).resume('t');
  await expect.poll(() => committed(topic)).toBe(2 * PARTITIONS);
  expect(await where('t')).toEqual(rows(2));
});

test('a rewind takes the lanes elsewhere along', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  for (let round = 1; round <= 3; round += 1) {
    produce(topic);
    await expect.poll(() => committed(topic)).toBe(round * PARTITIONS);
  }
  const offsets = new Map(topic.partitions.keys().map((at) => [at, 1] as const));
  await onCoordinator(topic).rewind('t', { kind: 'offsets', offsets });
  await expect.poll(() => committed(topic)).toBe(3 * PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(4 * PARTITIONS);
  expect(await where('t')).toEqual(rows(4));
});

test.each(['before', 'after'] as const)(
  'T4, T6: the coordinator is lost %s the catalog has made its commit, and comes back late',
  async (at) => {
    const gate = new GatedCatalog();
    for (const nodeId of [1, 2, 3]) node(nodeId, gate.wrap(bench.catalog));
    const topic = await bench.topic('t', TEXT, PARTITIONS);
    produce(topic);
    await expect.poll(() => committed(topic)).toBe(PARTITIONS);
    const zombie = coordinator(topic)!;
    gate.at = at;
    produce(topic);
    await expect.poll(() => gate.waiting).toBe(1);
    nodes.get(zombie)!.lose();
    await fake.settled();
    // What waits is the zombie's; the next coordinator's commits go through.
    gate.at = undefined;
    produce(topic);
    await expect.poll(() => committed(topic)).toBe(3 * PARTITIONS);
    gate.release();
    await expect
      .poll(async () => (await nodes.get(zombie)!.tables.status('t')).state)
      .toBe('fenced');
    produce(topic);
    await expect.poll(() => committed(topic)).toBe(4 * PARTITIONS);
    expect(await where('t')).toEqual(rows(4));
  },
);

test('a coordinator that is to hand over ends its commit first, and its successor finds it', async () => {
  const gate = new GatedCatalog();
  for (const nodeId of [1, 2, 3]) node(nodeId, gate.wrap(bench.catalog));
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  const [next] = others(topic);
  gate.at = 'after';
  produce(topic);
  await expect.poll(() => gate.waiting).toBe(1);
  const moved = fake.pin(`table/${topic.topicId}`, next!.nodeId);
  gate.release();
  await moved;
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(3 * PARTITIONS);
  expect(coordinator(topic)).toBe(next!.nodeId);
  expect(await where('t')).toEqual(rows(3));
});

test('dead letters of a topic are appended once, by whichever node stages them', async () => {
  for (const nodeId of [1, 2, 3]) node(nodeId);
  const config = {
    'table.topic.convert.value.type': 'json',
    'table.topic.errors.tolerance': 'dlq_topic',
  };
  const topic = await bench.topic('t', config, PARTITIONS);
  produce(topic, '{"a":1}');
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  produce(topic, 'no json');
  const [victim] = others(topic);
  kill(victim!.nodeId);
  produce(topic, '{"a":2}');
  await expect.poll(() => committed(topic)).toBe(3 * PARTITIONS);
  const letters = bench.directory.byName('t-dlq')!;
  const [id] = letters.partitions as [number];
  expect(bench.log.watermarks(id).highWatermark).toBe(PARTITIONS);
  expect(await where('t')).toHaveLength(2 * PARTITIONS);
});

test('M2: files that were written after another node had swept their names are swept, too', async () => {
  const { tables } = bench.metadata;
  let swept: readonly string[] = [];
  const racing = new Proxy(tables, {
    get: (target, name) => {
      if (name !== 'stage') return Reflect.get(target, name).bind(target);
      return async (request: Parameters<typeof tables.stage>[0]) => {
        if (swept.length === 0) {
          swept = request.filePrefixes;
          await tables.claimIntents(swept.map((prefix) => ({ prefix, parent: null })));
          await tables.dropIntents(swept);
        }
        return tables.stage(request);
      };
    },
  });
  fake.add(1);
  nodes.set(1, startNode(bench, fake, { nodeId: 1, metadata: { tables: racing } }));
  const topic = await bench.topic('t', TEXT, PARTITIONS);
  produce(topic);
  await expect.poll(() => committed(topic)).toBe(PARTITIONS);
  const left = await tables.intents(Number.MAX_SAFE_INTEGER, 100);
  expect(left.map(({ prefix, parent }) => [prefix, parent])).toEqual(
    swept.map((prefix) => [prefix, '']),
  );
  expect(await where('t')).toEqual(rows(1));
});
