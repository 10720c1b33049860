// One node under simulation: front, sequencer, reader and table work in this thread, over a disk or store that fails,
// with lives that end at any moment. What survives a crash: what the disk synced, the objects the store holds, and
// the metadata's last committed state (SQLite in memory). All chance comes from one seed.
import { ManualClock } from '../../src/base/clock.ts';
import { FloeError } from '../../src/base/error.ts';
import { silentLogger } from '../../src/base/log.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { type IdSource, type Prng, seededIds, seededPrng } from '../../src/base/prng.ts';
import { metadataOn, openDatabase, type SqliteMetadata } from '../../src/metadata/sqlite/index.ts';
import type { TransactionsMetadata } from '../../src/metadata/transactions.ts';
import { Maintenance } from '../../src/storage/log/maintenance.ts';
import { withVisibleEnds } from '../../src/storage/log/open-front.ts';
import { type InThreadLog, openInThread } from '../../src/storage/log/open-in-thread.ts';
import { LocalRangeCleaner } from '../../src/storage/log/range-cleaner.ts';
import type { SequencerPort } from '../../src/storage/log/sequencer-port.ts';
import { clusterTag } from '../../src/storage/log/wal-format.ts';
import { type Faults, faultyStore, noFaults } from '../../src/storage/objects/decorators/faulty.ts';
import { MemoryObjectStore } from '../../src/storage/objects/memory.ts';
import type { ObjectStore } from '../../src/storage/objects/object-store.ts';
import { guard, Life, living, livingDisk, livingStore } from './lives.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import {
  CLEAN_POLICY,
  CLUSTER_ID,
  GRACE_MS,
  MAINTENANCE,
  RETENTION_BYTES,
  SETTINGS,
} from './small.ts';
import type { Surroundings } from './surroundings.ts';
import { TableSide } from './table-side.ts';

export type Mode = 'local' | 'object';

export class World implements Surroundings {
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly clock = new ManualClock();
  readonly disk: SimulatedDisk;
  readonly mode: Mode;
  /** Chance that a commit's reply is lost on its way to the front. */
  loseReply = 0;
  storeFaults: Faults = noFaults;
  node!: InThreadLog;
  metadata!: SqliteMetadata;
  /** As clients use it: it may die, and answers may be lost. */
  transactions!: Pick<TransactionsMetadata, 'apply'>;
  readonly side: TableSide;
  maintenance!: Maintenance;
  lives = 0;
  commits = 0;
  /** Partitions of topics that are compacted by key. */
  readonly compacted: number[] = [];
  /** Broken promises noticed where throwing would only look like one more fault. */
  readonly violations: string[] = [];
  readonly #database = openDatabase(':memory:');
  readonly #store: ObjectStore;
  #life = new Life();

  constructor(seed: number, mode: Mode) {
    this.prng = seededPrng(seed);
    this.ids = seededIds(seededPrng(seed + 1));
    this.disk = new SimulatedDisk(seededPrng(seed + 2));
    this.mode = mode;
    const faults = { clock: this.clock, prng: seededPrng(seed + 3) };
    const memory = new MemoryObjectStore(this.clock, 'simulation');
    this.#store = faultyStore(memory, faults, () => this.storeFaults);
    const { catalog } = metadataOn(this.#database);
    const { clock, prng } = this;
    const storeFaults = () => this.storeFaults;
    this.side = new TableSide({ clock, prng, seed, catalog, storeFaults });
  }

  /** True once the present life has met its end: what its log says from then on was never heard. */
  get dead(): boolean {
    return this.disk.dead || this.#life.over;
  }

  get server(): object {
    return this;
  }

  seat(): Surroundings {
    return this;
  }

  async start(): Promise<void> {
    this.#life = new Life();
    this.lives += 1;
    this.metadata = this.#guarded(metadataOn(this.#database), this.#life);
    const life = this.#life;
    this.node = await openInThread({
      metadata: this.metadata,
      clusterId: CLUSTER_ID,
      store: livingStore(this.#store, life, this.disk),
      settings: SETTINGS,
      clock: this.clock,
      prng: this.prng,
      ids: this.ids,
      logger: silentLogger,
      metrics: noMetrics,
      wrapSequencer: (port) => this.#lossy(port),
      ...(this.mode === 'local' ? { disk: livingDisk(this.disk, life) } : {}),
    });
    const { node, disk } = this;
    this.transactions = this.#lossyEnds(life);
    this.side.start({ node, tables: this.metadata.tables, life, disk });
    this.maintenance = this.#maintain(life);
  }

  /** Every answer may be the one that is lost. */
  #lossyEnds(life: Life): Pick<TransactionsMetadata, 'apply'> {
    const domain = living(this.metadata.transactions, life, this.disk);
    const { transactions } = withVisibleEnds(
      { ...this.metadata, transactions: domain },
      this.node.log,
    );
    return {
      apply: async (requests, nowMs) => {
        const outcomes = await transactions.apply(requests, nowMs);
        if (this.prng.next() < this.loseReply)
          throw new FloeError('timeout', 'the answer about a transaction was lost (injected)');
        return outcomes;
      },
    };
  }

  /** Retention, compaction, collection and sweep, all of it all the time. */
  #maintain(life: Life): Maintenance {
    const { node, metadata, clock, ids } = this;
    const objects = living(metadata.objects, life, this.disk);
    return new Maintenance({
      clusterId: CLUSTER_ID,
      store: livingStore(this.#store, life, this.disk),
      source: node.source,
      metadata: { cluster: metadata.cluster, log: metadata.log, objects },
      reader: node.reader,
      settings: MAINTENANCE,
      clock,
      ids,
      logger: silentLogger,
      metrics: noMetrics,
      policy: (partitionId) => ({
        retentionMs: -1,
        retentionBytes: partitionId % 2 === 0 ? RETENTION_BYTES : -1,
      }),
      pin: (partitionId) => this.side.tables.retentionPin(partitionId) ?? Infinity,
      prng: seededPrng(this.lives),
      compacted: () => this.compacted.map((partitionId) => ({ partitionId, policy: CLEAN_POLICY })),
      endOf: (partitionId) => node.log.watermarks(partitionId)?.highWatermark,
      cleaner: new LocalRangeCleaner(clusterTag(CLUSTER_ID), 1 << 30),
      roll: async () => {
        life.check();
        await node.host.sequencer.roll();
      },
      onMoved: (partitions) => node.log.logStartsMoved(partitions),
      onCompacted: (...args) => node.log.compacted(...args),
      onAbortsGone: (...args) => node.log.abortsGone(...args),
      hasRoom: () => true,
      retireFiles: async (keys) => {
        life.check();
        await node.host.sequencer.retireFiles(keys);
      },
    });
  }

  /**
   * Keys that exist, and keys that the metadata refers to or has given up only now (L10). Objects of markers alone have an
   * index and no bytes: nothing is stored under their keys.
   */
  async inventory(): Promise<{ stored: string[]; referenced: string[] }> {
    const stored = this.node.host.wal?.names() ?? [];
    for await (const { key } of this.#store.list('')) stored.push(key);
    const referenced = this.#database
      .prepare(`SELECT key FROM log_objects WHERE key NOT LIKE 'markers/%'
        AND (state IN ('open', 'sealed') OR (state = 'deleting' AND changed_ms > ?))`)
      .all(this.clock.now() - GRACE_MS)
      .map((row) => row['key'] as string);
    return { stored, referenced };
  }

  /** The power goes out; what was not synced is decided by chance; a new life begins. */
  async crash(): Promise<void> {
    this.#life.over = true;
    this.side.kill();
    void this.maintenance?.stop();
    this.disk.restart();
    await this.settle();
    await this.start();
  }

  /** Lets time pass until `work` is done, at most `limitMs` of it (L8): it may wait for a delayed store. */
  async drive<T>(work: Promise<T>, limitMs = 20_000): Promise<T> {
    let done = false;
    const settled = work.finally(() => {
      done = true;
    });
    settled.catch(() => {});
    for (let waited = 0; ; waited += 50) {
      await this.settle(2);
      if (done) return settled;
      if (waited > limitMs) throw new Error(`L8: a request is not done after ${limitMs} ms`);
      await this.clock.advance(50);
    }
  }

  async settle(turns = 6): Promise<void> {
    for (let n = 0; n < turns; n += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Commits are where L11 is decided: nothing they refer to may be lost by a crash at that moment. */
  #guarded(metadata: SqliteMetadata, life: Life): SqliteMetadata {
    const { log } = metadata;
    const { disk } = this;
    const commitNow = log.commitNow.bind(log);
    log.commitNow = (flushes) => {
      life.check();
      disk.step();
      for (const { object } of flushes) {
        if (object.kind !== 'file') continue;
        if (disk.unsyncedWrites(object.key) > 0 || !disk.isNameDurable(object.key))
          this.violations.push(`L11: ${object.key} is committed before it is synced`);
      }
      const committed = commitNow(flushes);
      this.commits += 1;
      disk.step();
      return committed;
    };
    guard(log, 'sealNow', life, disk);
    guard(log, 'checkpoint', life, disk);
    guard(log, 'pruneFlushes', life, disk);
    return metadata;
  }

  #lossy(port: SequencerPort): SequencerPort {
    return {
      retireFiles: (keys) => port.retireFiles(keys),
      roll: () => port.roll(),
      submit: async (request) => {
        const reply = await port.submit(request);
        if (this.prng.next() < this.loseReply)
          throw new FloeError('timeout', 'the reply of the commit was lost (injected)');
        return reply;
      },
    };
  }
}
