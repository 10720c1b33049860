// One broker of several under simulation: a front over the shared metadata and store, whose calls are lost, late,
// refused, or not heard of because it died; and which may be paused for long: then nothing of it moves, while what it
// has sent goes on (a zombie, once it comes back).
import type { Clock, ManualClock, Timer } from '../../../src/base/clock.ts';
import { FloeError } from '../../../src/base/error.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { noMetrics } from '../../../src/base/metrics.ts';
import type { IdSource, Prng } from '../../../src/base/prng.ts';
import type { CommittedFlush, FlushCommit, Following } from '../../../src/metadata/log.ts';
import type { Metadata } from '../../../src/metadata/metadata.ts';
import type { ReplaceEntries } from '../../../src/metadata/objects.ts';
import { type LogSettings, withVisibleEnds } from '../../../src/storage/log/open-front.ts';
import {
  openSharedInThread,
  type SharedInThreadLog,
} from '../../../src/storage/log/open-in-thread.ts';
import type { ObjectStore } from '../../../src/storage/objects/object-store.ts';
import { Life, living, livingStore } from '../lives.ts';
import { SimulatedDisk } from '../simulated-disk.ts';

/** Chances and times of what goes wrong between a broker and the metadata store. */
export interface MetadataFaults {
  /** Refused before anything happened. */
  readonly refuse: number;
  /** Happened, and the answer was lost. */
  readonly loseReply: number;
  /** No answer, and it happens up to `lateMs` afterwards. */
  readonly late: number;
  readonly lateMs: number;
  /** Every call may take up to this long. */
  readonly delayMs: number;
}

export const noMetadataFaults: MetadataFaults = {
  refuse: 0,
  loseReply: 0,
  late: 0,
  lateMs: 0,
  delayMs: 0,
};

/** Below the age of orphans, and below the time for which outcomes of flushes are remembered. */
const COMMIT_HORIZON_MS = 1_200;

export interface BrokerOptions {
  readonly number: number;
  readonly clusterId: string;
  readonly clock: ManualClock;
  readonly prng: Prng;
  readonly ids: IdSource;
  readonly metadata: Metadata;
  readonly store: ObjectStore;
  readonly settings: LogSettings;
  readonly faults: () => MetadataFaults;
  /** Hints go to the other brokers. */
  readonly onCommitted: (from: SimulatedBroker, commitNumber: number) => void;
}

/** Holds whatever passes while it is closed. */
class Gate {
  #waiting: (() => void)[] = [];
  closed = false;

  pass(action: () => void): void {
    if (this.closed) this.#waiting.push(action);
    else action();
  }

  through(): Promise<void> | undefined {
    return this.closed ? new Promise((resolve) => this.#waiting.push(resolve)) : undefined;
  }

  open(): void {
    this.closed = false;
    for (const action of this.#waiting.splice(0)) action();
  }
}

export class SimulatedBroker {
  readonly options: BrokerOptions;
  readonly number: number;
  /** Only for the moments at which a broker dies. */
  readonly disk: SimulatedDisk;
  node!: SharedInThreadLog;
  /** As this broker sees it. */
  metadata!: Metadata;
  transactions!: Pick<Metadata['transactions'], 'apply'>;
  /** What it stores in, which may end with its life and waits while it is paused. */
  store!: ObjectStore;
  /** Swaps that happened, and those that were refused because something had changed. */
  readonly swaps = { done: 0, lost: 0 };
  lives = 0;
  /** It can't follow any more and has to start again. */
  fatal = false;
  #life = new Life();
  readonly #gate = new Gate();
  /** Stands still for it while it is paused. */
  readonly clock: Clock;

  constructor(options: BrokerOptions) {
    this.options = options;
    this.number = options.number;
    this.disk = new SimulatedDisk(options.prng);
    this.clock = gatedClock(options.clock, this.#gate);
    this.#life.over = true;
  }

  get dead(): boolean {
    return this.disk.dead || this.#life.over;
  }

  get paused(): boolean {
    return this.#gate.closed;
  }

  get life(): Life {
    return this.#life;
  }

  pause(): void {
    this.#gate.closed = true;
  }

  resume(): void {
    this.#gate.open();
  }

  /** A new life. @throws what the store or the metadata refuses. */
  async start(): Promise<void> {
    const { clusterId, prng, ids, settings, store } = this.options;
    this.disk.restart();
    const life = new Life();
    this.#life = life;
    this.lives += 1;
    this.fatal = false;
    this.metadata = this.#remote(life);
    this.store = this.#gated(livingStore(store, life, this.disk));
    this.node = await openSharedInThread({
      metadata: this.metadata,
      clusterId,
      store: this.store,
      settings,
      clock: this.clock,
      prng,
      ids,
      logger: silentLogger,
      metrics: noMetrics,
      commitHorizonMs: COMMIT_HORIZON_MS,
      following: {
        onFatal: () => {
          this.fatal = true;
        },
      },
    });
    this.#wire(life);
  }

  /** What cluster/copies.ts and the hints do. */
  #wire(life: Life): void {
    const { node, metadata, options } = this;
    const follower = node.follower!;
    // What the directory was loaded with is at least as new as nothing.
    let topics = -1;
    follower.onVersions((versions) => {
      if (versions.topics === topics || life.over) return;
      topics = versions.topics;
      node.directory.refresh().catch(() => {
        topics = -1;
      });
    });
    follower.onCommitted((commitNumber) => options.onCommitted(this, commitNumber));
    this.transactions = withVisibleEnds(metadata, node.log).transactions;
  }

  /** Ends the present life, wherever it is. */
  kill(): void {
    if (!this.#life.over) void this.node?.stopFollowing();
    this.#life.over = true;
    this.resume();
  }

  hinted(commitNumber: number): void {
    const { node } = this;
    if (!this.dead) this.#gate.pass(() => node.follower!.hinted(commitNumber));
  }

  #gated(store: ObjectStore): ObjectStore {
    const gate = this.#gate;
    return {
      uri: store.uri,
      async put(key, body, options) {
        await gate.through();
        await store.put(key, body, options);
        await gate.through();
      },
      async get(key, options) {
        await gate.through();
        const found = await store.get(key, options);
        await gate.through();
        return found;
      },
      head: (key) => store.head(key),
      list: (prefix, options) => store.list(prefix, options),
      async delete(keys) {
        await gate.through();
        await store.delete(keys);
      },
    };
  }

  /** The shared metadata at the other end of a network. */
  #remote(life: Life): Metadata {
    const { metadata } = this.options;
    const log = {
      commit: (flushes: readonly FlushCommit[]) => this.#commit(flushes),
      follow: (after: number, limit: number): Promise<Following> =>
        metadata.log.follow(after, limit),
    };
    const objects = { replace: (request: ReplaceEntries) => this.#replace(request) };
    const own: Partial<Record<keyof Metadata, object>> = { log, objects };
    const domains: Partial<Record<keyof Metadata, unknown>> = {};
    return new Proxy(metadata, {
      get: (target, name: keyof Metadata) => {
        const domain = target[name] as object;
        domains[name] ??= this.#network(living(domain, life, this.disk), life, {
          ...(own[name] === undefined ? {} : { own: living(own[name], life, this.disk) }),
        });
        return domains[name];
      },
    }) as Metadata;
  }

  #network<T extends object>(domain: T, life: Life, { own }: { readonly own?: object }): T {
    const { prng } = this.options;
    return new Proxy(domain, {
      get: (target, name) => {
        const chosen = own !== undefined && name in own ? own : target;
        const method = Reflect.get(chosen, name) as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          await this.#travel();
          if (prng.next() < this.options.faults().refuse)
            throw new FloeError('unavailable', `${String(name)}: no connection (injected)`);
          const result = await method.apply(chosen, args);
          await this.#travel();
          life.check();
          if (name !== 'commit' && prng.next() < this.options.faults().loseReply)
            throw new FloeError('timeout', `${String(name)}: no answer (injected)`);
          return result;
        };
      },
    });
  }

  async #travel(): Promise<void> {
    const { delayMs } = this.options.faults();
    const { prng, clock } = this.options;
    if (delayMs > 0 && prng.next() < 0.5) await clock.sleep(prng.next() * delayMs);
    await this.#gate.through();
  }

  /** As a commit: by the store's clock, and perhaps long after its maintainer has given it up. */
  async #replace(request: ReplaceEntries): Promise<number> {
    const { metadata, prng, clock, faults } = this.options;
    const { late, lateMs } = faults();
    const replace = async () => {
      const objectId = await metadata.objects.replace({ ...request, nowMs: clock.now() });
      this.swaps.done += 1;
      return objectId;
    };
    const lost = (caught: unknown) => {
      this.swaps.lost += 1;
      throw caught;
    };
    if (prng.next() >= late) return replace().catch(lost);
    clock.setTimer(prng.next() * lateMs, () => void replace().catch(() => {}));
    throw new FloeError('timeout', 'replace: no answer (injected)');
  }

  /** The store's own clock goes; an attempt whose answer nobody hears may happen much later. */
  async #commit(flushes: readonly FlushCommit[]): Promise<readonly CommittedFlush[]> {
    const { metadata, prng, clock, faults } = this.options;
    const { late, lateMs, loseReply } = faults();
    const commit = () => {
      const nowMs = clock.now();
      return metadata.log.commit(flushes.map((flush) => ({ ...flush, nowMs })));
    };
    const unknown = () => new FloeError('timeout', 'commit: no answer (injected)');
    if (prng.next() < late) {
      clock.setTimer(prng.next() * lateMs, () => void commit().catch(() => {}));
      throw unknown();
    }
    const committed = await commit();
    if (prng.next() < loseReply) throw unknown();
    return committed;
  }
}

/** Timers that fall due while the gate is closed go off when it opens. */
function gatedClock(clock: ManualClock, gate: Gate): Clock {
  const gated: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimer(delayMs, action): Timer {
      let cancelled = false;
      const timer = clock.setTimer(delayMs, () =>
        gate.pass(() => {
          if (!cancelled) action();
        }),
      );
      return {
        cancel() {
          cancelled = true;
          timer.cancel();
        },
      };
    },
    async sleep(delayMs, signal) {
      // The signal's reason comes through the gate like everything else.
      try {
        await clock.sleep(delayMs, signal);
      } finally {
        await gate.through();
      }
    },
  };
  return gated;
}
