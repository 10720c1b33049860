// The table equals the log's replay (rules K1 to K5), whatever happens: seeded runs of upsert tables under lost answers,
// late, refused and raced commits, foreign deletes, partitions added, crashes that lose the key index or keep it, and
// compaction. A failing seed is in the test's name and replays.
import { zstdDecompressSync } from 'node:zlib';
import { parquetReadObjects } from 'hyparquet';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { type Prng, seededIds, seededPrng } from '../../base/prng.ts';
import type { TableIdentifier } from '../../catalog/catalog.ts';
import {
  manifestSource,
  newSnapshotId,
  planScan,
  prepareCommit,
} from '../../formats/iceberg/index.ts';
import { writePositionDeletes } from '../../formats/iceberg/position-deletes.ts';
import { writeVectors } from '../../formats/iceberg/puffin.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import type { Topic } from '../../metadata/topics.ts';
import { Bench } from '../testing/bench.ts';
import { FaultyCatalog, ProcessBorder } from '../testing/faulty.ts';
import { KeyIndexHost } from './key-index.ts';
import { MemoryRunFiles } from './run-files.ts';
import { liveRows } from './testing/live-rows.ts';

const SEEDS = Number(process.env['FLOE_TABLE_SEEDS'] ?? 6);
const STEPS = 60;
const KEYS = 12;

interface Change {
  readonly key: number;
  /** Undefined: deleted. */
  readonly text: string | undefined;
}

class Simulation {
  readonly prng: Prng;
  readonly clock = new ManualClock();
  /** In the order of the log's commits. */
  readonly history: Change[] = [];
  bench!: Bench;
  catalog!: FaultyCatalog;
  topic!: Topic;
  border = new ProcessBorder();
  /** What a node has on its disk. */
  index!: KeyIndexHost;
  /** Keys whose rows somebody else deleted: whether a later change came is all that counts. */
  readonly foreign = new Set<number>();

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
    this.newIndex();
    this.topic = await this.bench.topic(
      't',
      {
        'table.topic.convert.value.type': 'string',
        'table.topic.convert.key.type': 'string',
        'table.topic.upsert.enable': 'true',
        ...config,
      },
      2,
    );
    this.boot();
  }

  newIndex(): void {
    this.index = new KeyIndexHost({
      io: this.bench.warehouse,
      ids: this.bench.seeded(),
      place: () => ({ database: ':memory:', runs: new MemoryRunFiles() }),
    });
  }

  /** A foreign writer: nothing at all, or a row deleted by position or vector. */
  async race(identifier: TableIdentifier): Promise<void> {
    const { metadata } = await this.bench.catalog.loadTable(identifier);
    const { warehouse } = this.bench;
    const plan = await planScan({ metadata, source: manifestSource(warehouse) });
    const ids = seededIds(this.prng);
    const uuid = ids.uuid();
    const target = plan.files.find(({ positionDeletes }) => positionDeletes.length === 0);
    const added = [];
    if (target !== undefined && this.prng.next() < 0.5 && identifier.name === 't') {
      const { file } = target;
      const position = this.prng.int(file.recordCount);
      const gone = { filePath: file.filePath, positions: Float64Array.of(position) };
      const path = `${metadata.location}/data/foreign-${uuid}`;
      if (metadata['format-version'] >= 3) {
        const written = await writeVectors(`${path}.puffin`, [{ ...gone, data: file }]);
        await warehouse.write(`${path}.puffin`, written.bytes);
        added.push(...written.files);
      } else {
        const { specId, partition } = file;
        const written = writePositionDeletes({
          path: `${path}.parquet`,
          specId,
          partition,
          rows: [gone],
        });
        await warehouse.write(`${path}.parquet`, written.parts);
        added.push(written.file);
      }
      for (const key of await this.keysAt(file.filePath, position)) this.foreign.add(key);
    }
    const prepared = await prepareCommit({
      metadata,
      io: warehouse,
      snapshotId: newSnapshotId(ids, metadata),
      commitUuid: ids.uuid(),
      nowMs: this.clock.now(),
      added,
      summary: {},
    });
    for (const { path, bytes } of prepared.objects) await warehouse.write(path, bytes);
    await this.bench.catalog.commitTable(identifier, prepared);
  }

  async keysAt(path: string, position: number): Promise<number[]> {
    const bytes = await this.bench.warehouse.read(path);
    const rows = await parquetReadObjects({
      file: bytes.slice().buffer as ArrayBuffer,
      compressors: { ZSTD: (input: Uint8Array) => zstdDecompressSync(input) },
    });
    return [Number(rows[position]!['_kafka_key'])];
  }

  boot(): void {
    this.border = new ProcessBorder();
    const lose = () => this.catalog.faults !== undefined && this.prng.next() < 0.03;
    const { metadata } = this.bench;
    const border = this.border;
    this.bench.start({
      catalog: border.wrap(this.catalog),
      metadata: { tables: border.wrap(metadata.tables, lose) },
      log: border.wrap(this.bench.log),
      warehouse: border.wrap(this.bench.warehouse),
      keys: border.wrap(this.index),
    });
  }

  produce(): void {
    const partition = this.prng.int(this.topic.partitions.length);
    const count = 1 + this.prng.int(4);
    const changes = Array.from({ length: count }, (_, n): Change => {
      const key = this.prng.int(KEYS);
      const text = this.prng.next() < 0.3 ? undefined : `${this.history.length + n}`;
      return { key, text };
    });
    this.history.push(...changes);
    for (const { key } of changes) this.foreign.delete(key);
    this.bench.produce(
      this.topic,
      changes.map(({ key, text }) => ({ key: String(key), value: text ?? null })),
      partition,
    );
  }

  async step(): Promise<void> {
    const dice = this.prng.next();
    if (dice < 0.45) this.produce();
    else if (dice < 0.55) {
      this.border.kill();
      // The disk is lost with the node, or it isn't.
      if (this.prng.next() < 0.5) this.newIndex();
      this.boot();
    } else if (dice < 0.65) await this.catalog.deliver();
    else if (dice < 0.68 && this.topic.partitions.length < 4) {
      const { topicId, partitions } = this.topic;
      this.topic = await this.bench.directory.addPartitions(topicId, partitions.length + 1);
    }
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

  replay(): string[] {
    const rows = new Map<number, string>();
    for (const { key, text } of this.history) {
      if (text === undefined) rows.delete(key);
      else rows.set(key, text);
    }
    return [...rows].map(([key, text]) => `${key}=${text}`).toSorted();
  }
}

describe('the table equals the log’s replay, whatever the interleaving', () => {
  test.each(Array.from({ length: SEEDS }, (_, seed) => seed + 1))('seed %i', async (seed) => {
    const simulation = new Simulation(seed);
    await simulation.open({
      'table.topic.format.version': seed % 2 === 0 ? '3' : '2',
      ...(seed % 3 === 0 ? { 'table.topic.partition.by': 'bucket(_kafka_offset, 3)' } : {}),
    });
    for (let step = 0; step < STEPS; step += 1) await simulation.step();
    await simulation.settle();
    const { bench, foreign } = simulation;
    const found = await liveRows(bench.warehouse, await bench.load('t'));
    const rows = found.map((row) => `${row['_kafka_key']}=${row['_kafka_value']}`).toSorted();
    // Rows that others deleted and nobody wrote again may be missing, and nothing else.
    const isForeign = (row: string) => foreign.has(Number(row.split('=')[0]));
    const expected = simulation.replay();
    expect(rows.filter((row) => !isForeign(row))).toEqual(
      expected.filter((row) => !isForeign(row)),
    );
    expect(rows.filter((row) => !expected.includes(row))).toEqual([]);
    await bench.stop();
  });
});
