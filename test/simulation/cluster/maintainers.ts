// Who looks after the log of several brokers: each compacts it under a lease of its own, one of them does the rest. Leases run
// out while a broker is paused or doesn't get through; what it had begun goes on when it wakes, beside what it begins anew.
// Not for: what the work is (storage/log/maintenance.ts), how leases are kept in life (cluster/lease-keeper.ts).
import { silentLogger } from '../../../src/base/log.ts';
import { noMetrics } from '../../../src/base/metrics.ts';
import { type IdSource, type Prng, seededPrng } from '../../../src/base/prng.ts';
import type { LeaseToken } from '../../../src/metadata/leases.ts';
import type { Metadata } from '../../../src/metadata/metadata.ts';
import { Maintenance, type MaintenancePart } from '../../../src/storage/log/maintenance.ts';
import { LocalRangeCleaner } from '../../../src/storage/log/range-cleaner.ts';
import { clusterTag } from '../../../src/storage/log/wal-format.ts';
import { CLEAN_POLICY, CLUSTER_ID, MAINTENANCE, RETENTION_BYTES } from '../small.ts';
import type { SimulatedBroker } from './broker.ts';

/** Shorter than most pauses. */
const LEASE_MS = 400;
/** Chance that a lease is not renewed when it could be. */
const LOST_RENEWAL = 0.15;

/** Orphans go while brokers are paused; a few flushes fill an object, so that there is work for several at a time. */
const CLUSTER_MAINTENANCE = {
  ...MAINTENANCE,
  'log.compact.object.bytes': 12_000,
  'log.compact.gather.ms': 300,
  'log.sweep.interval.ms': 300,
  'log.orphan.age.ms': 2_000,
};

/** What they look after, and what is the same for all. */
interface Kept {
  readonly brokers: readonly SimulatedBroker[];
  readonly metadata: Pick<Metadata, 'leases'>;
  readonly compacted: readonly number[];
  readonly lives: number;
  readonly prng: Prng;
  readonly ids: IdSource;
}

/** A lease that a broker wants, and its work while it thinks that it has it. */
class Duty {
  readonly #world: Kept;
  readonly #broker: SimulatedBroker;
  readonly #part: MaintenancePart;
  readonly #name: string;
  #lives = 0;
  #token: LeaseToken | undefined;
  #work: Maintenance | undefined;

  constructor(world: Kept, broker: SimulatedBroker, part: MaintenancePart) {
    this.#world = world;
    this.#broker = broker;
    this.#part = part;
    this.#name =
      part === 'rest' ? 'maintenance/log' : `maintenance/compaction/${String(broker.number)}`;
  }

  /** The lease is asked for or renewed; who lost it stops after the step under way. */
  async tick(): Promise<void> {
    const { dead, paused, lives, number: nodeId } = this.#broker;
    if (dead || lives !== this.#lives) {
      this.stop();
      this.#lives = lives;
    }
    if (dead || paused || this.#world.prng.next() < LOST_RENEWAL) return;
    const holder = { nodeId, session: `${nodeId}/${lives}` };
    const wanted = { names: [this.#name], holder, durationMs: LEASE_MS };
    const [token] = await this.#world.metadata.leases.acquire(wanted);
    if (token?.epoch === this.#token?.epoch) return;
    this.stop();
    if (token === undefined) return;
    this.#token = token;
    this.#work = this.#begin(token);
  }

  stop(): void {
    // What it waits for may need time to pass.
    void this.#work?.stop();
    this.#work = undefined;
    this.#token = undefined;
  }

  #begin(lease: LeaseToken): Maintenance {
    const world = this.#world;
    const { node, life, metadata, clock, store } = this.#broker;
    return new Maintenance({
      clusterId: CLUSTER_ID,
      store,
      source: node.source,
      metadata,
      reader: node.reader,
      settings: CLUSTER_MAINTENANCE,
      clock,
      ids: world.ids,
      logger: silentLogger,
      metrics: noMetrics,
      policy: (partitionId) => ({
        retentionMs: -1,
        retentionBytes: partitionId % 2 === 0 ? RETENTION_BYTES : -1,
      }),
      pin: () => Infinity,
      prng: seededPrng(world.lives),
      compacted: () =>
        world.compacted.map((partitionId) => ({ partitionId, policy: CLEAN_POLICY })),
      endOf: (partitionId) => node.log.watermarks(partitionId)?.highWatermark,
      cleaner: new LocalRangeCleaner(clusterTag(CLUSTER_ID), 1 << 30),
      roll: async () => life.check(),
      onMoved: (partitions) => node.log.logStartsMoved(partitions),
      onCompacted: (...args) => node.log.compacted(...args),
      onAbortsGone: (...args) => node.log.abortsGone(...args),
      hasRoom: () => true,
      retireFiles: async () => {},
      lease,
      part: this.#part,
    });
  }
}

export class Maintainers {
  readonly #duties: readonly Duty[];

  constructor(world: Kept) {
    this.#duties = world.brokers.flatMap((broker) => [
      new Duty(world, broker, 'compaction'),
      new Duty(world, broker, 'rest'),
    ]);
  }

  async tick(): Promise<void> {
    for (const duty of this.#duties) await duty.tick();
  }

  stop(): void {
    for (const duty of this.#duties) duty.stop();
  }
}
