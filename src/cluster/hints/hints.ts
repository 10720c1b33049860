// Hints: what nodes tell each other so that nobody has to wait for the next poll — "commit n is there", "look at nodes and
// leases again". Losing all of them costs time, never correctness: who hears nothing polls (storage/log/follower.ts).
// Every node with an address for hints hears of every other's commits, by one connection each way.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Prng } from '../../base/prng.ts';
import type { NodeEndpoint } from '../../metadata/nodes.ts';
import type { Cluster } from '../cluster.ts';
import { encodeFrame, FrameParser, type Hint } from './frames.ts';
import { Accepting, type Identity } from './handshake.ts';
import { HintPeer } from './peer.ts';
import { type HintWire, listenForHints, type WireEvents } from './socket.ts';

export interface HintsOptions {
  readonly cluster: Cluster;
  readonly clusterId: string;
  /** Of the cluster (`metadata.cluster.secret`). */
  readonly secret: Uint8Array;
  readonly listen: NodeEndpoint;
  /** `cluster.hints.max.peers` */
  readonly maxPeers: number;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

export interface HintListener {
  /** Another node has committed up to this number. */
  commit(commitNumber: number): void;
  /** Nodes or leases have changed somewhere. */
  news(): void;
  /** Where that life of a node listened for hints, nothing listens any more. Told at every attempt to connect. */
  gone(session: string): void;
}

/** Until a peer has shown who it is. */
const HANDSHAKE_MS = 5_000;

/** `news` is a number of 32 bits. */
const NEWS_LIMIT = 2 ** 32;

type Bound = Awaited<ReturnType<typeof listenForHints>>;

export class Hints implements Component {
  readonly #options: HintsOptions;
  readonly #peers = new Map<number, HintPeer>();
  readonly #listeners = new Set<HintListener>();
  #commit = 0;
  #news = 0;
  #incoming = 0;
  #bound: Bound | undefined;
  #unsubscribe: (() => void) | undefined;

  private constructor(options: HintsOptions) {
    this.#options = options;
  }

  /** Listens, and connects to whoever lives. @throws FloeError `conflict` when the port is taken. */
  static async start(options: HintsOptions): Promise<Hints> {
    const hints = new Hints(options);
    hints.#bound = await listenForHints(options.listen, (wire) => hints.#accept(wire));
    hints.#unsubscribe = options.cluster.onChange(() => hints.#meet());
    hints.#meet();
    const open = () => [...hints.#peers.values()].filter((peer) => peer.open).length;
    const help = 'Nodes that this one can hint to';
    options.metrics.observeGauge('floe_cluster_hint_peers', help, open);
    return hints;
  }

  /** Where others reach this node, as bound. */
  get address(): NodeEndpoint {
    const { host, port } = this.#bound!;
    return { host, port };
  }

  /** This node has committed up to `commitNumber`: the others needn't wait for their next poll. */
  committed(commitNumber: number): void {
    if (commitNumber <= this.#commit) return;
    this.#commit = commitNumber;
    for (const peer of this.#peers.values()) peer.tell();
  }

  /** This node's leases, what it says of itself, or what others keep copies of, has changed. */
  changed(): void {
    this.#news = (this.#news + 1) % NEWS_LIMIT;
    for (const peer of this.#peers.values()) peer.tell();
  }

  /** Calls back with what others tell; returns how to stop that. */
  onHint(listener: HintListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async stop(): Promise<void> {
    this.#unsubscribe?.();
    for (const peer of this.#peers.values()) peer.stop();
    this.#peers.clear();
    await this.#bound?.close();
  }

  #identity(): Identity {
    const { cluster, clusterId, secret } = this.#options;
    const { nodeId, session } = cluster.self;
    return { clusterId, secret, nodeId, session: session || NO_SESSION, level: cluster.level() };
  }

  /** One way to each living node that listens, none to others. */
  #meet(): void {
    const { cluster } = this.#options;
    const others = new Map(
      cluster
        .nodes()
        .filter(({ nodeId, hints }) => nodeId !== cluster.self.nodeId && hints !== null)
        .map((node) => [node.nodeId, node]),
    );
    for (const [nodeId, peer] of this.#peers) {
      const node = others.get(nodeId);
      if (node !== undefined && peer.leadsTo(node.session, node.hints!)) continue;
      peer.stop();
      this.#peers.delete(nodeId);
    }
    for (const { nodeId, session, hints } of others.values())
      if (!this.#peers.has(nodeId)) this.#peers.set(nodeId, this.#peer(nodeId, session, hints!));
  }

  #peer(nodeId: number, session: string, endpoint: NodeEndpoint): HintPeer {
    return new HintPeer({
      ...this.#options,
      nodeId,
      session,
      endpoint,
      identity: () => this.#identity(),
      newest: () => ({ commit: this.#commit, news: this.#news }),
      onGone: () => {
        for (const listener of [...this.#listeners]) listener.gone(session);
      },
      onSent: () => this.#options.metrics.count('floe_cluster_hints_sent_total', 'Hints sent'),
      onRefused: (reason) => this.#countRefused(reason),
    });
  }

  /** Undefined: there are too many. */
  #accept(wire: HintWire): WireEvents | undefined {
    const { clock, prng, maxPeers } = this.#options;
    if (this.#incoming >= maxPeers) {
      this.#countRefused('exhausted');
      return undefined;
    }
    this.#incoming += 1;
    const handshake = new Accepting(this.#identity(), prng);
    const parser = new FrameParser();
    const state = { news: undefined as number | undefined };
    const late = clock.setTimer(HANDSHAKE_MS, () => {
      if (handshake.peer === undefined)
        this.#refuse(wire, new FloeError('timeout', 'it says nothing'));
    });
    return {
      received: (chunk) => {
        try {
          for (const frame of parser.push(chunk)) {
            if (handshake.peer !== undefined && frame.type === 'hint') this.#heard(frame, state);
            else if (handshake.peer !== undefined)
              throw new FloeError('unauthorized', `a frame of type ${frame.type} out of turn`);
            else {
              const answer = handshake.take(frame);
              if (answer !== undefined) wire.send(encodeFrame(answer));
            }
          }
        } catch (caught) {
          this.#refuse(wire, caught);
        }
      },
      closed: () => {
        late.cancel();
        this.#incoming -= 1;
      },
    };
  }

  #heard({ commit, news }: Hint, state: { news: number | undefined }): void {
    const help = 'Hints received';
    this.#options.metrics.count('floe_cluster_hints_received_total', help);
    // The first one, too: what has changed while there was no connection was not told.
    const changed = state.news !== news;
    state.news = news;
    for (const listener of [...this.#listeners]) {
      listener.commit(commit);
      if (changed) listener.news();
    }
  }

  #refuse(wire: HintWire, caught: unknown): void {
    const { code, message } = FloeError.from(caught);
    this.#countRefused(code);
    this.#options.logger.warn({ peer: wire.remote, error: message }, 'a peer was refused');
    wire.close();
  }

  #countRefused(reason: string): void {
    const help = 'Connections between nodes that were closed because the peer was wrong';
    this.#options.metrics.count('floe_cluster_hints_refused_total', help, { reason });
  }
}

/** Of a node that is no member just now: it may still tell what it has committed. */
const NO_SESSION = '00000000-0000-0000-0000-000000000000';
