// Exactly once with several nodes: seeded runs of shared tables in which nodes die, come, live on as zombies, and leases
// move at any moment, under the faults of simulation.test.ts; then every record must be in the table once, and nothing else
// in the store. A failing seed is in the test's name and replays.
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { type Prng, seededPrng } from '../base/prng.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import type { Topic } from '../metadata/topics.ts';
import { Bench } from './testing/bench.ts';
import { FaultyCatalog } from './testing/faulty.ts';
import { FakeCluster, startNode, type TableNode } from './testing/nodes.ts';
import { coordinates, retainedFiles } from './testing/parquet-rows.ts';

const SEEDS = Number(process.env['FLOE_TABLE_SEEDS'] ?? 4);
const STEPS = 60;
const PARTITIONS = 5;

class Simulation {
  readonly prng: Prng;
  readonly clock = new ManualClock();
  readonly fake = new FakeCluster();
  readonly expected: string[] = [];
  readonly ends: number[] = Array.from({ length: PARTITIONS }, () => 0);
  readonly nodes = new Map<number, TableNode>();
  readonly zombies: TableNode[] = [];
  bench!: Bench;
  catalog!: FaultyCatalog;
  topic!: Topic;
  #lastId = 0;

  constructor(seed: number) {
    this.prng = seededPrng(seed);
  }

  async open(config: Readonly<Record<string, string>>): Promise<void> {
    this.bench = await Bench.open({
      clock: this.clock,
      metadata: openSqliteMetadata(':memory:'),
      seed: this.prng.int(2 ** 31),
      settings: {
        'table.job.bytes': '65536',
        'table.job.start.bytes': '200',
        'table.sweep.age.ms': '3000',
        'table.lanes.poll.ms': '50',
        'table.lanes.wait.ms': '300',
      },
    });
    this.catalog = new FaultyCatalog(this.bench.catalog, this.prng, async () => {});
    this.catalog.faults = {
      loadFails: 0.05,
      conflict: 0.1,
      lostRequest: 0.1,
      lostReply: 0.15,
      late: 0.1,
      raced: 0,
    };
    for (let n = 0; n < 3; n += 1) this.come();
    this.topic = await this.bench.topic(
      't',
      { 'table.topic.convert.value.type': 'json', ...config },
      PARTITIONS,
    );
  }

  come(): void {
    this.#lastId += 1;
    const nodeId = this.#lastId;
    this.fake.add(nodeId);
    this.nodes.set(nodeId, startNode(this.bench, this.fake, { nodeId, catalog: this.catalog }));
  }

  /** Ends one of the nodes; as a zombie it goes on. */
  go(zombie: boolean): void {
    const ids = [...this.nodes.keys()];
    const nodeId = ids[this.prng.int(ids.length)]!;
    const node = this.nodes.get(nodeId)!;
    this.nodes.delete(nodeId);
    if (zombie) {
      node.lose();
      this.zombies.push(node);
    } else node.kill();
    this.come();
  }

  move(): void {
    const ids = [...this.nodes.keys()];
    const nodeId = ids[this.prng.int(ids.length)]!;
    void this.fake.pin(`table/${this.topic.topicId}`, nodeId);
  }

  /** New columns come up now and then, and what is no row. */
  produce(): void {
    const partition = this.prng.int(PARTITIONS);
    const count = 1 + this.prng.int(5);
    const values = Array.from({ length: count }, () => {
      const dice = this.prng.next();
      if (dice < 0.05) return undefined;
      const column = dice < 0.15 ? `,"c${this.prng.int(6)}":1` : '';
      return `{"v":"${this.prng.int(100)}"${column}}`;
    });
    this.bench.produce(
      this.topic,
      values.map((value) => ({ value: value ?? 'no json' })),
      partition,
    );
    for (const value of values) {
      const offset = this.ends[partition]!++;
      if (value !== undefined) this.expected.push(`${partition}/${offset}`);
    }
  }

  async step(): Promise<void> {
    const dice = this.prng.next();
    if (dice < 0.5) this.produce();
    else if (dice < 0.57) this.go(false);
    else if (dice < 0.62) this.go(true);
    else if (dice < 0.68) this.move();
    else if (dice < 0.78) await this.catalog.deliver();
    if (this.zombies.length > 0 && this.prng.next() < 0.1) this.zombies.shift()!.kill();
    await this.clock.advance(20 + this.prng.int(150));
  }

  /** Faults end, the zombies stay: the table must catch up within a bound. */
  async settle(): Promise<void> {
    this.catalog.faults = undefined;
    await this.catalog.deliver();
    const total = this.ends.reduce((sum, end) => sum + end, 0);
    for (let round = 0; round < 300; round += 1) {
      await this.clock.advance(200);
      const positions = await this.bench.metadata.tables.positions(this.topic.topicId);
      if (positions.reduce((sum, one) => sum + one.committedEnd, 0) === total) return;
    }
    const [node] = this.nodes.values();
    throw new Error(`not caught up: ${JSON.stringify(await node!.tables.status('t'))}`);
  }

  async stop(): Promise<void> {
    for (const zombie of this.zombies) zombie.kill();
    const stopping = Promise.all([...this.nodes.values()].map(({ tables }) => tables.stop()));
    let stopped = false;
    void stopping.then(() => {
      stopped = true;
    });
    while (!stopped) await this.clock.advance(100);
    this.bench.metadata.close();
  }
}

describe('each record is in the table once, whichever nodes die', () => {
  test.each(Array.from({ length: SEEDS }, (_, seed) => seed + 1))('seed %i', async (seed) => {
    const simulation = new Simulation(seed);
    await simulation.open(
      seed % 3 === 0 ? { 'table.topic.partition.by': 'bucket(_kafka_offset, 4)' } : {},
    );
    for (let step = 0; step < STEPS; step += 1) await simulation.step();
    await simulation.settle();
    const { bench } = simulation;
    const table = await bench.load('t');
    expect(await coordinates(bench.warehouse, table)).toEqual(simulation.expected.toSorted());

    // T5, M2: after the sweep nothing is left but what the tables and their retained snapshots name.
    for (const zombie of simulation.zombies.splice(0)) zombie.kill();
    await simulation.clock.advance(20_000);
    const last = await bench.load('t');
    expect(await coordinates(bench.warehouse, last)).toEqual(simulation.expected.toSorted());
    const live = await retainedFiles(bench.warehouse, last);
    const letters = await bench.load('t_dlq').catch(() => undefined);
    if (letters !== undefined) {
      for (const file of await retainedFiles(bench.warehouse, letters)) live.add(file);
    }
    const stored: string[] = [];
    for await (const { key } of bench.store.list('')) {
      if (key.endsWith('.parquet')) stored.push(`${bench.store.uri}/${key}`);
    }
    expect(stored.filter((uri) => !live.has(uri))).toEqual([]);
    expect([...live].filter((uri) => !stored.includes(uri))).toEqual([]);
    await simulation.stop();
  });
});
