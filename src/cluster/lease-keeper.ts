// Leases of this node: asks the store in rounds for those that it is chosen for, counts their end on its own monotonic
// clock from before it asked, less a margin, and gives up what it is no longer chosen for. Invariants in SPEC.md.
// One call at a time goes to the store, so that a release never overtakes a later question.
// Not for: who is chosen (rendezvous.ts), the work itself (`WantedLease`), what is written under a lease (the store
// asserts its epoch).
import { assert } from '../base/assert.ts';
import type { Clock, Timer } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { LeaseHolder, LeasesMetadata, LeaseToken } from '../metadata/leases.ts';
import type { Cluster, Leases, WantedLease } from './cluster.ts';
import { HolderView } from './holders.ts';
import { type Ending, LeaseSlot } from './lease-slot.ts';
import { type ClusterSettings, MARGIN } from './settings.ts';

/** The node as far as its leases go by it. */
export interface LeasingNode {
  readonly cluster: Cluster;
  /** Undefined while the node is no member. */
  readonly holder: LeaseHolder | undefined;
  /** False: wants nothing. */
  readonly working: boolean;
  onSession(listener: () => void): () => void;
}

export interface LeaseKeeperOptions {
  readonly node: LeasingNode;
  readonly leases: LeasesMetadata;
  readonly settings: Pick<ClusterSettings, 'cluster.lease.ms'>;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** Beginnings of names whose holders are always known, such as `groups/`; others from when they are asked about. */
  readonly watched: readonly string[];
  /** This node's leases have changed: others may want to look. */
  readonly onChange?: () => void;
}

/** Questions within the time of a lease; while something wanted is missing, or somebody else's end is awaited, more. */
const RENEWALS = 3;
const HASTE = 10;

/** After `gained` threw, of the time of a lease. */
const REST = 0.2;

/** A release whose outcome is unknown may still happen: what it is about is let alone, in times of a lease. */
const QUARANTINE = 2;

export class LeaseKeeper implements Leases {
  readonly #options: LeaseKeeperOptions;
  readonly #slots = new Map<string, LeaseSlot>();
  /** To be released, by the session that held them. */
  readonly #toRelease = new Map<string, LeaseHolder>();
  readonly #quarantine = new Map<string, number>();
  readonly #holders: HolderView;
  /** The holder that asked for what is granted: another session holds nothing of it. */
  #holder: LeaseHolder | undefined;
  #timer: Timer | undefined;
  #expiry: Timer | undefined;
  #running: Promise<void> | undefined;
  #again = false;
  #closing = false;
  #stopped = false;
  readonly #unsubscribe: (() => void)[];

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
    this.#holders = new HolderView(options);
    const { node, metrics } = options;
    this.#unsubscribe = [
      node.onSession(() => this.#sessionChanged()),
      node.cluster.onChange(() => this.wake()),
    ];
    metrics.observeGauge(
      'floe_cluster_leases_held',
      'Leases that this node holds',
      () => this.size,
    );
    this.wake();
  }

  /** How many are held. */
  get size(): number {
    const nowMs = this.#options.clock.monotonic();
    return [...this.#slots.values()].filter((slot) => slot.held(nowMs) !== undefined).length;
  }

  held(name: string): LeaseToken | undefined {
    const holder = this.#options.node.holder;
    if (holder === undefined || holder.session !== this.#holder?.session) return undefined;
    return this.#slots.get(name)?.held(this.#options.clock.monotonic());
  }

  holder(name: string): number | undefined {
    if (this.held(name) !== undefined) return this.#options.node.cluster.self.nodeId;
    return this.#holders.of(name);
  }

  want(lease: WantedLease): () => Promise<void> {
    const { name } = lease;
    assert(!this.#slots.has(name), `lease ${name} is wanted once`);
    const slot: LeaseSlot = new LeaseSlot(lease, {
      ended: (_slot, why) => this.#ended(name, why),
      failed: (_slot, caught) => this.#workFailed(slot, caught),
    });
    this.#slots.set(name, slot);
    this.wake();
    return async () => {
      slot.end('given-up');
      await slot.quiet();
      if (this.#slots.get(name) === slot) this.#slots.delete(name);
      this.wake();
    };
  }

  /** Something may have changed: looks at once. */
  wake(): void {
    if (this.#stopped) return;
    if (this.#running !== undefined) {
      this.#again = true;
      return;
    }
    this.#timer?.cancel();
    this.#running = this.#rounds().finally(() => {
      this.#running = undefined;
    });
  }

  /** Resolves when the holders of `watched` names are known as of now; for the start of a node. */
  look(): Promise<void> {
    return this.#holders.refresh();
  }

  /** Somebody says that leases have changed hands. */
  lookAgain(): void {
    this.#holders.expire();
    this.wake();
  }

  /** Ends all work, releases all leases, wants none any more: for a node that drains. */
  async giveUp(): Promise<void> {
    this.#closing = true;
    const slots = [...this.#slots.values()];
    for (const slot of slots) slot.end('given-up');
    await Promise.all(slots.map((slot) => slot.quiet()));
    do {
      this.wake();
      await this.#running;
    } while (!this.#stopped && (this.#running !== undefined || this.#toRelease.size > 0));
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    await this.giveUp();
    this.#stopped = true;
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#timer?.cancel();
    this.#expiry?.cancel();
  }

  get #leaseMs(): number {
    return this.#options.settings['cluster.lease.ms'];
  }

  #sessionChanged(): void {
    const session = this.#options.node.holder?.session;
    if (this.#holder !== undefined && this.#holder.session !== session) {
      for (const slot of this.#slots.values()) slot.end('given-up');
    }
    this.wake();
  }

  #ended(name: string, why: Ending): void {
    // Nobody need wait for the end of a right that its holder doesn't use any more, a past session's included.
    if (why === 'given-up' && this.#holder !== undefined) this.#toRelease.set(name, this.#holder);
    this.wake();
  }

  #workFailed(slot: LeaseSlot, caught: unknown): void {
    const { logger, clock } = this.#options;
    const { code, message } = FloeError.from(caught);
    const { name } = slot.lease;
    logger.error(
      { lease: name, code, error: message },
      'the work of a lease did not begin or end well',
    );
    slot.restUntilMs = clock.monotonic() + this.#leaseMs * REST;
  }

  async #rounds(): Promise<void> {
    let ok: boolean;
    do {
      this.#again = false;
      ok = await this.#tryRound();
    } while (this.#again && !this.#stopped);
    this.#schedule(ok);
  }

  async #tryRound(): Promise<boolean> {
    try {
      await this.#round();
      await this.#holders.refreshIfDue();
      return true;
    } catch (caught) {
      const { code, message } = FloeError.from(caught);
      this.#options.logger.warn({ code, error: message }, 'could not ask for leases');
      return false;
    }
  }

  async #round(): Promise<void> {
    this.#lapse();
    const { node, leases, clock } = this.#options;
    for (const slot of this.#slots.values()) if (!this.#wanted(slot)) slot.end('given-up');
    await this.#release();
    const holder = node.holder;
    if (holder === undefined) return;
    if (this.#holder?.session !== holder.session) {
      // Work of the past session has to be over before a lease counts for the new one.
      if ([...this.#slots.values()].some(({ phase }) => phase !== 'idle')) return;
      this.#holder = holder;
    }
    const asked = [...this.#slots.values()].filter((slot) => slot.askable && this.#wanted(slot));
    if (asked.length === 0) return;
    const names = asked.map(({ lease }) => lease.name).toSorted();
    const askedMs = clock.monotonic();
    const tokens = await leases.acquire({ names, holder, durationMs: this.#leaseMs });
    this.#take(asked, tokens, askedMs + this.#leaseMs * (1 - MARGIN));
  }

  #take(asked: readonly LeaseSlot[], tokens: readonly LeaseToken[], deadlineMs: number): void {
    const granted = new Map(tokens.map((token) => [token.name, token]));
    const { clock, node } = this.#options;
    // An answer that took too long, or that was for a session that is over, says nothing about now.
    if (clock.monotonic() >= deadlineMs || node.holder?.session !== this.#holder?.session) {
      this.#lapse();
      return;
    }
    const before = this.size;
    for (const slot of asked) {
      const token = granted.get(slot.lease.name);
      const wanted = this.#slots.get(slot.lease.name) === slot && this.#wanted(slot);
      if (token === undefined) slot.end('taken');
      else if (slot.phase !== 'idle' || wanted) slot.granted(token, deadlineMs);
      // Nobody's work here: as if it had been given up.
      else this.#ended(slot.lease.name, 'given-up');
    }
    if (this.size !== before) this.#options.onChange?.();
    this.#watchDeadlines();
  }

  #wanted({ lease, restUntilMs }: LeaseSlot): boolean {
    const { node, clock } = this.#options;
    const nowMs = clock.monotonic();
    if (this.#closing || !node.working || nowMs < restUntilMs) return false;
    if (nowMs < (this.#quarantine.get(lease.name) ?? -Infinity)) return false;
    const { self } = node.cluster;
    if (lease.own === true) return self.roles.includes(lease.role);
    return node.cluster.chosen(lease.name, lease.role)?.nodeId === self.nodeId;
  }

  /** Ends what has run out. */
  #lapse(): void {
    const nowMs = this.#options.clock.monotonic();
    for (const slot of this.#slots.values())
      if (slot.deadlineMs !== undefined && nowMs >= slot.deadlineMs) slot.end('lapsed');
    for (const [name, untilMs] of this.#quarantine)
      if (nowMs >= untilMs) this.#quarantine.delete(name);
  }

  #watchDeadlines(): void {
    const deadlines = [...this.#slots.values()].flatMap(({ deadlineMs }) => deadlineMs ?? []);
    this.#expiry?.cancel();
    if (deadlines.length === 0) return;
    const { clock } = this.#options;
    this.#expiry = clock.setTimer(Math.min(...deadlines) - clock.monotonic(), () => {
      this.#lapse();
      this.#watchDeadlines();
    });
  }

  async #release(): Promise<void> {
    const { leases, clock } = this.#options;
    const bySession = Map.groupBy(this.#toRelease, ([, holder]) => holder);
    this.#toRelease.clear();
    for (const [holder, entries] of bySession) {
      const names = entries.map(([name]) => name).toSorted();
      const untilMs = clock.monotonic() + this.#leaseMs * QUARANTINE;
      for (const name of names) this.#quarantine.set(name, Infinity);
      try {
        await leases.release(names, holder);
        for (const name of names) this.#quarantine.delete(name);
        this.#options.onChange?.();
      } catch (caught) {
        for (const name of names) this.#quarantine.set(name, untilMs);
        const { code, message } = FloeError.from(caught);
        this.#options.logger.warn(
          { code, error: message },
          'could not release leases: they run out',
        );
      }
    }
  }

  #schedule(ok: boolean): void {
    if (this.#stopped) return;
    const { clock } = this.#options;
    const slots = [...this.#slots.values()].filter((slot) => this.#wanted(slot));
    const nowMs = clock.monotonic();
    const missing = slots.some((slot) => slot.held(nowMs) === undefined);
    const haste = !ok || missing || this.#holders.missing;
    this.#timer?.cancel();
    this.#timer = clock.setTimer(this.#leaseMs / (haste ? HASTE : RENEWALS), () => this.wake());
  }
}
