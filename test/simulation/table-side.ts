// The table work of the simulated node: its coordinators read the very log that clients write to, stage in the
// metadata that crashes with it, and commit to a catalog that outlives it and fails as catalogs do.
import type { ManualClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/log.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { type Prng, seededIds, seededPrng } from '../../src/base/prng.ts';
import { resolveSettings } from '../../src/base/settings.ts';
import type { TableIdentifier } from '../../src/catalog/catalog.ts';
import { catalogSettings, EmbeddedCatalog, Warehouse } from '../../src/catalog/index.ts';
import { newSnapshotId, prepareAppend } from '../../src/formats/iceberg/index.ts';
import type { Metadata } from '../../src/metadata/metadata.ts';
import type { InThreadLog } from '../../src/storage/log/open-in-thread.ts';
import { type Faults, faultyStore } from '../../src/storage/objects/decorators/faulty.ts';
import { MemoryObjectStore } from '../../src/storage/objects/memory.ts';
import type { FileWriter } from '../../src/table-topic/files.ts';
import type { JobResult, JobRunner, TableJob } from '../../src/table-topic/job.ts';
import { MaintenanceWorker } from '../../src/table-topic/maintenance/worker.ts';
import { type TableSettings, tableSettings } from '../../src/table-topic/settings/index.ts';
import { TableTopics } from '../../src/table-topic/table-topics.ts';
import { MemorySchemas } from '../../src/table-topic/testing/bench.ts';
import { FaultyCatalog, ProcessBorder } from '../../src/table-topic/testing/faulty.ts';
import { KeyIndexHost } from '../../src/table-topic/upsert/key-index.ts';
import { MemoryRunFiles } from '../../src/table-topic/upsert/run-files.ts';
import { TableWorker } from '../../src/table-topic/worker.ts';
import { type Life, living } from './lives.ts';
import { RowRunner } from './row-runner.ts';
import type { SimulatedDisk } from './simulated-disk.ts';

const SETTINGS: TableSettings = {
  ...resolveSettings(tableSettings, {}),
  'table.job.bytes': 65_536,
  'table.job.start.bytes': 8_192,
  'table.retry.first.ms': 5,
  'table.retry.max.ms': 200,
  'table.commit.attempts': 3,
  'table.sweep.age.ms': 8_000,
};

/** Of a topic that is a table; a namesake of a deleted one goes on in its table. */
export const TABLE_CONFIG = {
  'table.topic.enable': 'true',
  'table.topic.convert.value.type': 'raw',
  'table.topic.commit.interval.ms': '300',
  'table.topic.recreated': 'append',
  // Rows of these tables are no Parquet (row-runner.ts).
  'table.topic.compact.enable': 'false',
};

/** Topics of real records have the real worker. */
class Runner implements JobRunner {
  readonly #rows: RowRunner;
  readonly #worker: TableWorker;

  constructor(write: FileWriter) {
    this.#rows = new RowRunner(write);
    this.#worker = new TableWorker(write);
  }

  run(job: TableJob): Promise<JobResult> {
    const isRaw = job.config['table.topic.convert.value.type'] === 'raw';
    return isRaw ? this.#rows.run(job) : this.#worker.run(job);
  }
}

export interface TableSideOptions {
  readonly clock: ManualClock;
  readonly prng: Prng;
  readonly seed: number;
  /** The catalog's own state, which no crash of the node touches. */
  readonly catalog: Metadata['catalog'];
  readonly storeFaults: () => Faults;
}

export interface TableLife {
  readonly node: InThreadLog;
  readonly tables: Metadata['tables'];
  readonly life: Life;
  readonly disk: SimulatedDisk;
}

export class TableSide {
  readonly catalog: FaultyCatalog;
  /** Without faults, for the auditor. */
  readonly warehouse: Warehouse;
  readonly store: MemoryObjectStore;
  /** Files that others wrote for their own commits: what becomes of those is their business (M2). */
  readonly foreign = new Set<string>();
  /** Chance that an answer of the metadata is lost on its way to the coordinators. */
  loseReply = 0;
  tables!: TableTopics;
  readonly #options: TableSideOptions;
  readonly #faulty: Warehouse;
  #border = new ProcessBorder();
  #lives = 0;

  constructor(options: TableSideOptions) {
    const { clock, prng, seed, storeFaults } = options;
    this.#options = options;
    this.store = new MemoryObjectStore(clock, 'warehouse');
    this.warehouse = new Warehouse(this.store);
    const faults = { clock, prng: seededPrng(seed + 5) };
    this.#faulty = new Warehouse(faultyStore(this.store, faults, storeFaults));
    const embedded = new EmbeddedCatalog({
      metadata: options.catalog,
      warehouse: this.#faulty,
      clock,
      ids: seededIds(seededPrng(seed + 6)),
      logger: silentLogger,
      settings: resolveSettings(catalogSettings, {}),
    });
    this.catalog = new FaultyCatalog(embedded, prng, (table) => this.foreignCommit(table));
  }

  /** The coordinators of a new life. */
  start({ node, tables, life, disk }: TableLife): void {
    const { clock, prng, seed } = this.#options;
    this.#lives += 1;
    this.#border = new ProcessBorder();
    const border = this.#border;
    const warehouse = border.wrap(this.#faulty);
    this.tables = new TableTopics({
      log: border.wrap(node.log),
      directory: node.directory,
      tables: border.wrap(living(tables, life, disk), () => prng.next() < this.loseReply),
      catalog: border.wrap(this.catalog),
      warehouse,
      schemas: new MemorySchemas(),
      keys: new KeyIndexHost({
        io: warehouse,
        ids: seededIds(seededPrng(seed + 2_000 + this.#lives)),
        place: () => ({ database: ':memory:', runs: new MemoryRunFiles() }),
      }),
      runner: new Runner((uri, parts) => warehouse.write(uri, parts)),
      maintenanceWorkers: [new MaintenanceWorker(warehouse)],
      lanes: 2,
      jobsUnderWay: new Set(),
      settings: SETTINGS,
      clock,
      prng: seededPrng(seed + 7 + this.#lives),
      ids: seededIds(seededPrng(seed + 1_000 + this.#lives)),
      logger: silentLogger,
      metrics: noMetrics,
    });
  }

  /** The process is gone: nothing of it gets out any more, and no answer gets in. */
  kill(): void {
    this.#border.kill();
  }

  /** Somebody else's commit: an append of nothing, or a property. */
  async foreignCommit(identifier: TableIdentifier): Promise<void> {
    const { prng, clock } = this.#options;
    const { metadata } = await this.catalog.inner.loadTable(identifier);
    if (prng.next() < 0.3) {
      const updates = [{ action: 'set-properties', updates: { n: String(prng.int(100)) } }];
      await this.catalog.inner.commitTable(identifier, { requirements: [], updates });
      return;
    }
    const ids = seededIds(prng);
    const prepared = await prepareAppend({
      metadata,
      io: this.warehouse,
      snapshotId: newSnapshotId(ids, metadata),
      commitUuid: ids.uuid(),
      nowMs: clock.now(),
      added: [],
      summary: {},
    });
    for (const { path, bytes } of prepared.objects) {
      this.foreign.add(path);
      await this.warehouse.write(path, bytes);
    }
    await this.catalog.inner.commitTable(identifier, prepared);
  }
}
