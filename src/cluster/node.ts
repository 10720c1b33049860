// A node's membership: registered in the metadata store, heard of by heartbeats, looking at who else lives.
// A life of a node is a session. It is over by the node's own monotonic clock when no heartbeat has succeeded for as
// long as the store would wait, less a margin; or when the store says that another session has the id. The node then
// is no member (its leases are over), and joins again under a new session.
// Not for: which work it gets (rendezvous.ts, lease-keeper.ts). States and events: SPEC.md.
import type { Clock, Timer } from '../base/clock.ts';
import { FloeError, isFloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { IdSource } from '../base/prng.ts';
import type { LeaseHolder } from '../metadata/leases.ts';
import type { NodeDescription, NodeRecord, NodesMetadata } from '../metadata/nodes.ts';
import type { Cluster } from './cluster.ts';
import { joinLevel } from './levels.ts';
import { type ClusterSettings, MARGIN } from './settings.ts';
import { ClusterView } from './view.ts';

export interface JoinOptions {
  readonly nodes: NodesMetadata;
  /** What the node will be once it is ready; until `announce` it has no roles and no addresses for the others. */
  readonly description: Pick<NodeDescription, 'rack' | 'roles' | 'version' | 'levels'>;
  /** Undefined: the store assigns one. */
  readonly nodeId: number | undefined;
  readonly settings: Pick<
    ClusterSettings,
    'cluster.heartbeat.ms' | 'cluster.alive.ms' | 'cluster.forget.ms'
  >;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly logger: Logger;
  readonly metrics: Metrics;
  /** This life can't go on: another node has its assigned id, or the cluster's level is past it. The program must end. */
  readonly onReplaced: (error: FloeError) => void;
}

/** Where others reach a node, known once it listens. */
export type NodeAddresses = Pick<NodeDescription, 'listeners' | 'hints' | 'http'>;

const NOWHERE: NodeAddresses = { listeners: {}, hints: null, http: null };

/** How long a suspicion that nobody renews is kept, in times of `cluster.alive.ms`. */
const SUSPICION = 3;

/** How often nodes that are gone for good are taken off the list, in heartbeats. */
const FORGET_EVERY = 600;

export class ClusterMember {
  readonly nodeId: number;
  readonly #options: JoinOptions;
  readonly #view: ClusterView;
  readonly #sessionListeners = new Set<() => void>();
  #records: readonly NodeRecord[];
  /** '' while this node is no member. */
  #session: string;
  /** The sessions before and after the present one: that is still to end, and that is being asked for. */
  #lastSession = '';
  #nextSession = '';
  #addresses: NodeAddresses | undefined;
  #draining = false;
  #deadlineMs: number;
  #beats = 0;
  #stopped = false;
  #timer: Timer | undefined;
  #expiry: Timer | undefined;
  #beating: Promise<void> | undefined;
  #looking: Promise<void> | undefined;
  /** Sessions whose process is probably gone, and when that was last said. */
  readonly #suspects = new Map<string, number>();
  #lookAgain = false;

  private constructor(options: JoinOptions, joined: Joined) {
    this.#options = options;
    this.nodeId = joined.nodeId;
    this.#session = joined.session;
    this.#records = joined.records;
    this.#deadlineMs = this.#deadline(joined.askedMs);
    this.#view = new ClusterView(this.#self());
    this.#view.begin(joined.level);
    this.#view.update(joined.records, () => this.#aliveMs);
    this.#exposeMetrics();
    this.#schedule();
  }

  /**
   * Registers the node, without work yet.
   * @throws FloeError `conflict` when a living node has the id, or when the program doesn't speak the cluster's level.
   */
  static async join(options: JoinOptions): Promise<ClusterMember> {
    return new ClusterMember(options, await register(options));
  }

  /** The living nodes. */
  get cluster(): Cluster {
    return this.#view;
  }

  /** Who holds leases; undefined while this node is no member. */
  get holder(): LeaseHolder | undefined {
    if (this.#stopped || this.#session === '') return undefined;
    if (this.#options.clock.monotonic() >= this.#deadlineMs) return undefined;
    return { nodeId: this.nodeId, session: this.#session };
  }

  /** May this node take work? Not before it is announced, and no longer once it drains. */
  get working(): boolean {
    return this.#addresses !== undefined && !this.#draining && this.holder !== undefined;
  }

  /** Every node that the store still remembers, as last looked at. */
  records(): readonly NodeRecord[] {
    return this.#records;
  }

  /** Called when the session has ended or begun. */
  onSession(listener: () => void): () => void {
    this.#sessionListeners.add(listener);
    return () => this.#sessionListeners.delete(listener);
  }

  /** The node is ready: tells the others where it is and what it does. */
  async announce(addresses: NodeAddresses): Promise<void> {
    this.#addresses = addresses;
    await this.#beating;
    if (this.holder === undefined) await this.#rejoin();
    else await this.#options.nodes.register(this.#registration(), this.#aliveMs);
    this.#view.describe(this.#self());
    this.#tellSession();
    await this.refresh();
  }

  /** Takes no new work from now on; the others know when this resolves, or at their next look. */
  async drain(): Promise<void> {
    this.#draining = true;
    this.#view.describe(this.#self());
    this.#tellSession();
    await this.#beating;
    await this.#beatOnce();
  }

  /** Looks at the nodes now: what was registered before the call is seen when it resolves. */
  refresh(): Promise<void> {
    if (this.#looking !== undefined) {
      this.#lookAgain = true;
      return this.#looking;
    }
    this.#looking = this.#lookUntilDone();
    return this.#looking;
  }

  /**
   * Nothing listens any more where that life of a node did. When it is silent, too, it counts as gone before its time:
   * after half of it. One that still says that it lives, does.
   */
  suspect(session: string): void {
    this.#suspects.set(session, this.#options.clock.monotonic());
  }

  #patienceWith({ session }: NodeRecord): number {
    const saidMs = this.#suspects.get(session);
    if (saidMs === undefined) return this.#aliveMs;
    const suspected = this.#options.clock.monotonic() - saidMs < this.#aliveMs * SUSPICION;
    if (suspected) return this.#aliveMs / 2;
    this.#suspects.delete(session);
    return this.#aliveMs;
  }

  /** Ends the node's life. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    const session = this.#session;
    this.#stopped = true;
    this.#timer?.cancel();
    this.#expiry?.cancel();
    this.#tellSession();
    await this.#beating;
    try {
      if (session !== '') await this.#options.nodes.leave(this.nodeId, session);
    } catch (caught) {
      this.#warn(caught, 'could not say that this node leaves: it is forgotten in time');
    }
  }

  get #aliveMs(): number {
    return this.#options.settings['cluster.alive.ms'];
  }

  #deadline(askedMs: number): number {
    return askedMs + this.#aliveMs * (1 - MARGIN);
  }

  #description(): NodeDescription {
    const { rack, roles, version, levels } = this.#options.description;
    const ready = this.#addresses !== undefined;
    return { rack, version, levels, roles: ready ? roles : [], ...(this.#addresses ?? NOWHERE) };
  }

  #registration() {
    return { ...this.#description(), nodeId: this.nodeId, session: this.#session };
  }

  #self() {
    return { ...this.#registration(), draining: this.#draining };
  }

  #schedule(): void {
    const { clock, settings } = this.#options;
    this.#timer?.cancel();
    this.#expiry?.cancel();
    if (this.#stopped) return;
    this.#timer = clock.setTimer(settings['cluster.heartbeat.ms'], () => void this.#beatOnce());
    if (this.#session === '') return;
    this.#expiry = clock.setTimer(this.#deadlineMs - clock.monotonic(), () => this.#expire());
  }

  /** Never rejects. */
  #beatOnce(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
    });
    return this.#beating;
  }

  async #beat(): Promise<void> {
    try {
      if (this.holder === undefined) await this.#rejoin();
      else await this.#sayAlive();
      await this.refresh();
      await this.#forget();
    } catch (caught) {
      this.#failed(caught);
    }
    this.#schedule();
  }

  async #sayAlive(): Promise<void> {
    const { clock, nodes } = this.#options;
    const askedMs = clock.monotonic();
    const session = this.#session;
    await nodes.heartbeat(this.nodeId, session, this.#draining);
    if (session === this.#session) this.#deadlineMs = this.#deadline(askedMs);
  }

  #failed(caught: unknown): void {
    if (this.#stopped) return;
    if (isFloeError(caught, 'conflict') && this.holder !== undefined) {
      this.#end('another session has the id of this node, or it was forgotten');
      return;
    }
    const help = 'Heartbeats that did not succeed';
    this.#options.metrics.count('floe_cluster_heartbeats_failed_total', help);
    this.#warn(caught, 'a heartbeat of this node did not succeed');
    this.#expire();
  }

  #expire(): void {
    if (this.#session !== '' && !this.#stopped && this.holder === undefined)
      this.#end('no heartbeat has succeeded for too long');
  }

  /** The session is over: whoever works by it stops. */
  #end(why: string): void {
    this.#options.logger.warn(
      { nodeId: this.nodeId, why },
      'this node is no member of its cluster',
    );
    this.#lastSession = this.#session;
    this.#session = '';
    this.#tellSession();
  }

  async #rejoin(): Promise<void> {
    if (this.#stopped) return;
    const { clock, nodes, ids, logger, metrics } = this.#options;
    if (this.#session !== '') this.#end('it was asleep');
    await nodes.leave(this.nodeId, this.#lastSession);
    await this.#checkLevel();
    // The same until it succeeds: an attempt whose answer was lost must not stand in the way of the next.
    if (this.#nextSession === '') this.#nextSession = ids.uuid();
    const session = this.#nextSession;
    const askedMs = clock.monotonic();
    await this.#registerAs(session);
    this.#session = session;
    this.#nextSession = '';
    this.#deadlineMs = this.#deadline(askedMs);
    this.#view.describe(this.#self());
    metrics.count('floe_cluster_rejoins_total', 'Times that this node became a member again');
    logger.warn({ nodeId: this.nodeId }, 'this node is a member of its cluster again');
    this.#tellSession();
  }

  /** While this node was no member the others may have gone on to what its program does not speak. */
  async #checkLevel(): Promise<void> {
    const { nodes, description, onReplaced } = this.#options;
    const records = await nodes.list();
    const others = records.filter(
      ({ nodeId, silentMs }) => nodeId !== this.nodeId && silentMs < this.#aliveMs,
    );
    try {
      joinLevel(description, others);
    } catch (caught) {
      onReplaced(FloeError.from(caught));
      throw caught;
    }
  }

  async #registerAs(session: string): Promise<void> {
    const { nodes, nodeId, onReplaced } = this.#options;
    try {
      await nodes.register({ ...this.#registration(), session }, this.#aliveMs);
    } catch (caught) {
      // An id that was assigned is gone with the life it was assigned to; one that was given is wanted back.
      if (nodeId === undefined && isFloeError(caught, 'conflict')) onReplaced(caught);
      throw caught;
    }
  }

  async #lookUntilDone(): Promise<void> {
    try {
      do {
        this.#lookAgain = false;
        this.#records = await this.#options.nodes.list();
        if (!this.#stopped)
          this.#view.update(this.#records, (record) => this.#patienceWith(record));
      } while (this.#lookAgain && !this.#stopped);
    } finally {
      // In the same turn as the last question whether to look again: who comes later looks anew.
      this.#looking = undefined;
    }
  }

  async #forget(): Promise<void> {
    const known = new Set(this.#records.map(({ session }) => session));
    for (const session of this.#suspects.keys())
      if (!known.has(session)) this.#suspects.delete(session);
    this.#beats += 1;
    if (this.#beats % FORGET_EVERY === 0)
      await this.#options.nodes.forget(this.#options.settings['cluster.forget.ms']);
  }

  #tellSession(): void {
    for (const listener of [...this.#sessionListeners]) listener();
  }

  #warn(caught: unknown, what: string): void {
    const { code, message } = FloeError.from(caught);
    this.#options.logger.warn({ nodeId: this.nodeId, code, error: message }, what);
  }

  #exposeMetrics(): void {
    const { metrics } = this.#options;
    const living = () => this.#view.nodes().length;
    metrics.observeGauge('floe_cluster_nodes_alive', 'Living nodes, as this one sees it', living);
    metrics.observeGauge('floe_cluster_member', '1 while this node is a member', () =>
      this.holder === undefined ? 0 : 1,
    );
    metrics.observeGauge('floe_cluster_level', 'Level that all nodes speak', () =>
      this.#view.level(),
    );
  }
}

interface Joined {
  readonly nodeId: number;
  readonly session: string;
  readonly level: number;
  readonly askedMs: number;
  readonly records: readonly NodeRecord[];
}

async function register(options: JoinOptions): Promise<Joined> {
  const { nodes, description, clock, settings } = options;
  const aliveMs = settings['cluster.alive.ms'];
  const session = options.ids.uuid();
  const registration = { ...description, ...NOWHERE, roles: [], nodeId: options.nodeId, session };
  const { nodeId, askedMs } = await patiently(options, async () => {
    const asked = clock.monotonic();
    return { nodeId: await nodes.register(registration, aliveMs), askedMs: asked };
  });
  const records = await nodes.list();
  // Looked at after registering: of two that start at once, at least one sees the other.
  const others = records.filter((other) => other.nodeId !== nodeId && other.silentMs < aliveMs);
  try {
    return { nodeId, session, askedMs, records, level: joinLevel(description, others) };
  } catch (caught) {
    await nodes.leave(nodeId, session);
    throw caught;
  }
}

/** Of `cluster.alive.ms`: how long an earlier life of this node, which ended without a word, may stand in its way. */
const PATIENCE = 1.2;
const RETRY_MS = 250;

async function patiently<T>(
  { clock, settings, logger, nodeId }: JoinOptions,
  attempt: () => Promise<T>,
): Promise<T> {
  const giveUpMs = clock.monotonic() + settings['cluster.alive.ms'] * PATIENCE;
  for (let n = 0; ; n += 1) {
    try {
      return await attempt();
    } catch (caught) {
      if (!isFloeError(caught, 'conflict') || clock.monotonic() >= giveUpMs) throw caught;
      if (n === 0) logger.warn({ nodeId }, 'waiting for an earlier life of this node to be over');
      await clock.sleep(RETRY_MS);
    }
  }
}
