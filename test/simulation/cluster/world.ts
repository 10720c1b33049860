// Three brokers over one metadata store and one faulty object store, each living and dying by itself, one of them paused
// now and then. The metadata store itself never dies (SQLite in memory stands for PostgreSQL): what is lost are
// connections to it. All chance comes from one seed.
import { ManualClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { type IdSource, type Prng, seededIds, seededPrng } from '../../../src/base/prng.ts';
import {
  metadataOn,
  openDatabase,
  type SqliteMetadata,
} from '../../../src/metadata/sqlite/index.ts';
import type { LogSettings } from '../../../src/storage/log/open-front.ts';
import { Upkeep } from '../../../src/storage/log/upkeep.ts';
import {
  type Faults,
  faultyStore,
  noFaults,
} from '../../../src/storage/objects/decorators/faulty.ts';
import { MemoryObjectStore } from '../../../src/storage/objects/memory.ts';
import type { ObjectStore } from '../../../src/storage/objects/object-store.ts';
import { CLUSTER_ID, GRACE_MS, SETTINGS } from '../small.ts';
import type { Surroundings } from '../surroundings.ts';
import { type MetadataFaults, noMetadataFaults, SimulatedBroker } from './broker.ts';
import { Maintainers } from './maintainers.ts';
import { Seat } from './seat.ts';

const BROKERS = 3;
/** So few that a long pause outlasts them: then a broker can't follow any more. */
const FOLLOWED_COMMITS = 12;
/** How long outcomes of flushes are remembered once their objects are sealed. */
const REMEMBERED_MS = 2_000;

const CLUSTER_SETTINGS: LogSettings = {
  ...SETTINGS,
  'log.follow.objects.ms': 150,
  'log.follow.starts.ms': 200,
  'log.follow.rows.lifetime.ms': 150,
  'log.put.give.up.ms': 1_000,
};

export class ClusterWorld {
  readonly mode = 'object';
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly clock = new ManualClock();
  readonly metadata: SqliteMetadata;
  readonly brokers: readonly SimulatedBroker[];
  readonly seats: Seat[] = [];
  readonly compacted: number[] = [];
  readonly violations: string[] = [];
  storeFaults: Faults = noFaults;
  metadataFaults: MetadataFaults = noMetadataFaults;
  /** Chance that a hint doesn't arrive. */
  loseHint = 0;
  readonly #store: ObjectStore;
  readonly #database = openDatabase(':memory:');
  readonly #upkeep: Upkeep;
  readonly #maintainers: Maintainers;

  constructor(seed: number) {
    const { clock } = this;
    this.prng = seededPrng(seed);
    this.ids = seededIds(seededPrng(seed + 1));
    this.metadata = metadataOn(this.#database, { followedCommits: FOLLOWED_COMMITS, clock });
    const memory = new MemoryObjectStore(clock, 'simulation');
    this.#store = faultyStore(
      memory,
      { clock, prng: seededPrng(seed + 3) },
      () => this.storeFaults,
    );
    this.brokers = Array.from({ length: BROKERS }, (_, number) => this.#broker(seed, number));
    this.#maintainers = new Maintainers(this);
    this.#upkeep = new Upkeep({
      metadata: this.metadata,
      clock,
      logger: silentLogger,
      producerExpirationMs: SETTINGS['producer.id.expiration.ms'],
      retryHorizonMs: REMEMBERED_MS,
    });
  }

  #broker(seed: number, number: number): SimulatedBroker {
    return new SimulatedBroker({
      number,
      clusterId: CLUSTER_ID,
      clock: this.clock,
      prng: seededPrng(seed + 10 + number),
      ids: seededIds(seededPrng(seed + 20 + number)),
      metadata: this.metadata,
      store: this.#store,
      settings: CLUSTER_SETTINGS,
      faults: () => this.metadataFaults,
      onCommitted: (from, commitNumber) => this.#hint(from, commitNumber),
    });
  }

  #hint(from: SimulatedBroker, commitNumber: number): void {
    for (const broker of this.brokers) {
      if (broker === from || this.prng.next() < this.loseHint) continue;
      this.clock.setTimer(this.prng.next() * 20, () => broker.hinted(commitNumber));
    }
  }

  /** Swaps of compaction by broker, and those that came to nothing. */
  get swaps(): { readonly done: readonly number[]; readonly lost: number } {
    const counts = this.brokers.map(({ swaps }) => swaps);
    return {
      done: counts.map(({ done }) => done),
      lost: counts.reduce((sum, { lost }) => sum + lost, 0),
    };
  }

  get lives(): number {
    return this.brokers.reduce((sum, broker) => sum + broker.lives, 0);
  }

  /** Brokers that clients reach. */
  reachable(): SimulatedBroker[] {
    return this.brokers.filter((broker) => !broker.dead && !broker.paused);
  }

  seat(): Surroundings {
    const seat = new Seat(this, this.brokers[this.prng.int(BROKERS)]!);
    this.seats.push(seat);
    return seat;
  }

  /** Whoever has a lease looks after the log. */
  maintain(): Promise<void> {
    return this.#maintainers.tick();
  }

  /**
   * Keys that exist, and keys that the metadata refers to or has given up only now (L10). Objects of markers alone have an
   * index and no bytes: nothing is stored under their keys.
   */
  async inventory(): Promise<{ stored: string[]; referenced: string[] }> {
    const stored: string[] = [];
    for await (const { key } of this.#store.list('')) stored.push(key);
    const referenced = this.#database
      .prepare(`SELECT key FROM log_objects WHERE key NOT LIKE 'markers/%'
        AND (state IN ('open', 'sealed') OR (state = 'deleting' AND changed_ms > ?))`)
      .all(this.clock.now() - GRACE_MS)
      .map((row) => row['key'] as string);
    return { stored, referenced };
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

  stop(): void {
    this.#maintainers.stop();
    for (const broker of this.brokers) broker.kill();
    this.#upkeep.stop();
  }
}
