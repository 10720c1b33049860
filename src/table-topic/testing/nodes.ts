// Several nodes that share tables, in one process: leases and the view of who lives are the test's to move, everything
// else (metadata, catalog, store, log) is shared by all. A node can die, with all that it still tries, or live on as a
// zombie that others take for dead.

import type { Cluster, ClusterNode, Leases, WantedLease } from '../../cluster/index.ts';
import { chooseNode } from '../../cluster/index.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import { nodeRoles } from '../../metadata/nodes.ts';
import type { TableTopicsDeps } from '../index.ts';
import type { TableTopics } from '../table-topics.ts';
import type { Bench } from './bench.ts';
import { ProcessBorder } from './faulty.ts';

interface Wish {
  readonly lease: WantedLease;
  readonly nodeId: number;
  token: LeaseToken | undefined;
}

/** Nodes, what they see of one another, and who holds which lease. */
export class FakeCluster {
  readonly #nodes = new Map<number, ClusterNode>();
  readonly #listeners = new Map<number, Set<() => void>>();
  readonly #wishes = new Set<Wish>();
  /** Epochs of leases, by name. */
  readonly #epochs = new Map<string, number>();
  /** Nodes that the others take for dead and that don't know it. */
  readonly #zombies = new Set<number>();
  /** Where a lease must go, whatever the hash says. */
  readonly #pinned = new Map<string, number>();
  /** Ends of nodes: nobody waits for the answer of one that is gone. */
  readonly #ends = new Map<number, PromiseWithResolvers<void>>();
  #work: Promise<void> = Promise.resolve();

  add(nodeId: number, changes: Partial<ClusterNode> = {}): void {
    this.#nodes.set(nodeId, {
      nodeId,
      session: `s${nodeId}`,
      draining: false,
      rack: null,
      roles: nodeRoles,
      listeners: {},
      hints: null,
      http: null,
      version: '0.0.0',
      levels: { min: 1, max: 1 },
      ...changes,
    });
    this.#ends.set(nodeId, Promise.withResolvers());
    this.#told();
  }

  /** The node is seen no more; its leases are free without a word to it. */
  bury(nodeId: number, zombie = false): void {
    if (zombie) this.#zombies.add(nodeId);
    else this.#listeners.delete(nodeId);
    this.#nodes.delete(nodeId);
    this.#ends.get(nodeId)?.resolve();
    for (const wish of this.#wishes) {
      if (wish.nodeId !== nodeId) continue;
      if (!zombie) wish.token = undefined;
      this.#wishes.delete(wish);
    }
    this.#told();
  }

  /** From now on that node is the one for the lease. */
  pin(name: string, nodeId: number): Promise<void> {
    this.#pinned.set(name, nodeId);
    return this.settled();
  }

  /** All leases are with whom they belong to. */
  settled(): Promise<void> {
    this.#work = this.#work.then(() => this.#settle());
    return this.#work;
  }

  holder(name: string): number | undefined {
    const [wish] = [...this.#wishes].filter(({ lease, token }) => lease.name === name && token);
    return wish?.nodeId;
  }

  clusterOf(nodeId: number): Cluster {
    const own = this.#nodes.get(nodeId)!;
    const seen = () => [...this.#nodes.values()].toSorted((a, b) => a.nodeId - b.nodeId);
    // A zombie sees what it saw.
    let last = seen();
    const nodes = () => {
      if (!this.#zombies.has(nodeId)) last = seen();
      return last;
    };
    return {
      self: own,
      nodes,
      chosen: (key, role) =>
        chooseNode(
          key,
          nodes().filter(({ roles }) => roles.includes(role)),
        ),
      level: () => 1,
      onChange: (listener) => {
        const listeners = this.#listeners.get(nodeId) ?? new Set();
        this.#listeners.set(nodeId, listeners.add(listener));
        return () => listeners.delete(listener);
      },
    };
  }

  leasesOf(nodeId: number): Leases {
    return {
      held: (name) =>
        [...this.#wishes].find((wish) => wish.nodeId === nodeId && wish.lease.name === name)?.token,
      holder: (name) => this.holder(name),
      want: (lease) => {
        const wish: Wish = { lease, nodeId, token: undefined };
        this.#wishes.add(wish);
        void this.settled();
        return async () => {
          this.#wishes.delete(wish);
          if (wish.token === undefined) return;
          wish.token = undefined;
          await lease.lost();
          void this.settled();
        };
      },
    };
  }

  #told(): void {
    for (const [nodeId, listeners] of this.#listeners) {
      if (!this.#zombies.has(nodeId)) for (const listener of listeners) listener();
    }
    void this.settled();
  }

  async #settle(): Promise<void> {
    const names = new Set([...this.#wishes].map(({ lease }) => lease.name));
    for (const name of names) {
      const wishes = [...this.#wishes].filter(({ lease }) => lease.name === name);
      const nodes = wishes
        .map(({ nodeId, lease }) => ({ ...this.#nodes.get(nodeId)!, lease }))
        .filter(({ roles, lease }) => roles?.includes(lease.role));
      const pinned = nodes.find(({ nodeId }) => nodeId === this.#pinned.get(name));
      const right = pinned ?? chooseNode(name, nodes);
      for (const wish of wishes) {
        if (wish.token === undefined || wish.nodeId === right?.nodeId) continue;
        wish.token = undefined;
        await Promise.race([wish.lease.lost(), this.#ends.get(wish.nodeId)?.promise]);
      }
      const wish = wishes.find(({ nodeId }) => nodeId === right?.nodeId);
      if (wish === undefined || wish.token !== undefined || !this.#wishes.has(wish)) continue;
      const epoch = (this.#epochs.get(name) ?? 0) + 1;
      this.#epochs.set(name, epoch);
      wish.token = { name, epoch };
      await Promise.race([wish.lease.gained(wish.token), this.#ends.get(wish.nodeId)?.promise]);
    }
  }
}

/** The table work of one node. */
export interface TableNode {
  readonly nodeId: number;
  readonly tables: TableTopics;
  /** Nothing of it gets out any more, and nobody hears of it. */
  kill(): void;
  /** Others take it for dead; it goes on. */
  lose(): void;
}

/** A node of the bench; `over` as in {@link Bench.start}. */
export function startNode(
  bench: Bench,
  fake: FakeCluster,
  { nodeId, ...over }: { readonly nodeId: number } & Partial<TableTopicsDeps>,
): TableNode {
  if (!fake.clusterOf(nodeId).self) fake.add(nodeId);
  const border = new ProcessBorder();
  const { metadata } = bench;
  const tables = bench.start({
    log: border.wrap(bench.log),
    warehouse: border.wrap(bench.warehouse),
    ...over,
    catalog: border.wrap(over.catalog ?? bench.catalog),
    metadata: { tables: border.wrap(over.metadata?.tables ?? metadata.tables) },
    shared: {
      cluster: fake.clusterOf(nodeId),
      leases: fake.leasesOf(nodeId),
      words: border.wrap(metadata.tableLanes),
    },
  });
  return {
    nodeId,
    tables,
    kill() {
      border.kill();
      fake.bury(nodeId);
    },
    lose: () => fake.bury(nodeId, true),
  };
}
