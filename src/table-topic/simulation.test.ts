// Exactly once, whatever happens: seeded runs of the whole table work (real jobs, staging, commits, catalog) under
// lost answers, late and refused commits, foreign commits, failing look-ups and crashes; then every record must be
// in the table once. A failing seed is in the test's name and replays.
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { type Prng, seededIds, seededPrng } from '../base/prng.ts';
import type { TableIdentifier } from '../catalog/catalog.ts';
import { newSnapshotId, prepareAppend } from '../formats/iceberg/index.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import type { Topic } from '../metadata/topics.ts';
import { Bench } from './testing/bench.ts';
import { FaultyCatalog, ProcessBorder } from './testing/faulty.ts';
import { coordinates, retainedFiles } from './testing/parquet-rows.ts';

const SEEDS = Number(process.env['FLOE_TABLE_SEEDS'] ?? 12);
const STEPS = 60;

class Simulation {
  readonly prng: Prng;
  readonly clock = new ManualClock();
  readonly expected: string[] = [];
  readonly ends: number[] = [0, 0, 0];
  bench!: Bench;
  catalog!: FaultyCatalog;
  topic!: Topic;
  border = new ProcessBorder();
  foreign = 0;

  constructor(seed: number) {
    this.prng = seededPrng(seed);
  }

  async open(config: Readonly<Record<string, string>>): Promise<void> {
    this.bench = await Bench.open({
      clock: this.clock,
      metadata: openSqliteMetadata(':memory:'),
      seed: this.prng.int(2 ** 31),
      settings: { 'table.job.bytes': '65536', 'table.sweep.age.ms': '60000' },
    });
    this.catalog = new FaultyCatalog(this.bench.catalog, this.prng, (table) => this.race(table));
    this.catalog.faults = {
      loadFails: 0.05,
      conflict: 0.1,
      lostRequest: 0.1,
      lostReply: 0.15,
      late: 0.1,
      raced: 0.1,
    };
    this.topic = await this.bench.topic(
      't',
      { 'table.topic.convert.value.type': 'string', ...config },
      3,
    );
    this.boot();
  }

  /** A foreign writer: an empty append, or a property. */
  async race(identifier: TableIdentifier): Promise<void> {
    const { metadata } = await this.bench.catalog.loadTable(identifier);
    if (this.prng.next() < 0.3) {
      await this.bench.catalog.commitTable(identifier, {
        requirements: [],
        updates: [{ action: 'set-properties', updates: { n: String(this.foreign) } }],
      });
      return;
    }
    const ids = seededIds(this.prng);
    const prepared = await prepareAppend({
      metadata,
      io: this.bench.warehouse,
      snapshotId: newSnapshotId(ids, metadata),
      commitUuid: ids.uuid(),
      nowMs: this.clock.now(),
      added: [],
      summary: {},
    });
    for (const { path, bytes } of prepared.objects) {
      await this.bench.warehouse.write(path, bytes);
    }
    await this.bench.catalog.commitTable(identifier, prepared);
    this.foreign += 1;
  }

  boot(): void {
    this.border = new ProcessBorder();
    const lose = () => this.catalog.faults !== undefined && this.prng.next() < 0.03;
    const { metadata } = this.bench;
    const border = this.border;
    const seen = { tables: border.wrap(metadata.tables, lose) };
    this.bench.start({
      catalog: border.wrap(this.catalog),
      metadata: seen,
      log: border.wrap(this.bench.log),
      warehouse: border.wrap(this.bench.warehouse),
    });
  }

  produce(): void {
    const partition = this.prng.int(3);
    const count = 1 + this.prng.int(5);
    this.bench.produce(
      this.topic,
      Array.from({ length: count }, () => ({ value: `v${this.prng.int(100)}` })),
      partition,
    );
    for (let n = 0; n < count; n += 1)
      this.expected.push(`${partition}/${this.ends[partition]!++}`);
  }

  async step(): Promise<void> {
    const dice = this.prng.next();
    if (dice < 0.45) this.produce();
    else if (dice < 0.55) {
      this.border.kill();
      this.boot();
    } else if (dice < 0.65) await this.catalog.deliver();
    await this.clock.advance(20 + this.prng.int(150));
  }

  /** Faults end: the table must catch up within a bound. */
  async settle(): Promise<void> {
    this.catalog.faults = undefined;
    await this.catalog.deliver();
    for (let round = 0; round < 200; round += 1) {
      await this.clock.advance(200);
      const { lagRecords, state } = await this.bench.tables.status('t');
      if (lagRecords === 0 && state === 'running') return;
    }
    throw new Error(`not caught up: ${JSON.stringify(await this.bench.tables.status('t'))}`);
  }
}

describe('each record is in the table once, whatever the interleaving', () => {
  test.each(Array.from({ length: SEEDS }, (_, seed) => seed + 1))('seed %i', async (seed) => {
    const simulation = new Simulation(seed);
    const partitioned: Record<string, string> =
      seed % 3 === 0 ? { 'table.topic.partition.by': 'bucket(_kafka_offset, 4)' } : {};
    await simulation.open(partitioned);
    for (let step = 0; step < STEPS; step += 1) await simulation.step();
    await simulation.settle();
    const { bench } = simulation;
    const metadata = await bench.load('t');
    expect(await coordinates(bench.warehouse, metadata)).toEqual(simulation.expected.toSorted());

    // T5, M2: after the sweep nothing is left but what the table and its retained snapshots name.
    await simulation.clock.advance(200_000);
    const last = await bench.load('t');
    expect(await coordinates(bench.warehouse, last)).toEqual(simulation.expected.toSorted());
    const live = await retainedFiles(bench.warehouse, last);
    const stored: string[] = [];
    for await (const { key } of bench.store.list('')) {
      if (key.endsWith('.parquet')) stored.push(`${bench.store.uri}/${key}`);
    }
    expect(stored.filter((uri) => !live.has(uri))).toEqual([]);
    expect([...live].filter((uri) => !stored.includes(uri))).toEqual([]);
    await bench.stop();
  });
});
