// Leases for tests: all of them for one node alone, or a board on which a test moves them between nodes that share one
// store, by fair means or behind a holder's back.
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import type { Leases, WantedLease } from '../../cluster/cluster.ts';
import { soloLeases } from '../../cluster/index.ts';
import { clusterNode } from '../../cluster/testing/nodes.ts';
import type { LeasesMetadata, LeaseToken } from '../../metadata/leases.ts';
import { COORDINATOR_SHARDS, shardOf } from '../../metadata/shards.ts';

/** Of a node alone. */
export function allLeases(): Leases {
  const clock = new ManualClock();
  return soloLeases({ self: clusterNode(0), clock, logger: silentLogger });
}

/** `groups/17` and the like, of a group or transactional id. */
export const leaseOf = (kind: 'groups' | 'transactions', key: string): string =>
  `${kind}/${shardOf(key)}`;

export const allOf = (kind: 'groups' | 'transactions'): readonly string[] =>
  Array.from({ length: COORDINATOR_SHARDS }, (_, shard) => `${kind}/${shard}`);

/** What one node holds; nothing until the test says so. */
export class TestLeases implements Leases {
  readonly nodeId: number;
  /** True: its deadline is past, though nobody has told it that the lease is over. */
  isLate = false;
  readonly #store: LeasesMetadata;
  readonly #holders: Map<string, number>;
  readonly #wanted = new Map<string, WantedLease>();
  readonly #tokens = new Map<string, LeaseToken>();

  constructor(nodeId: number, store: LeasesMetadata, holders: Map<string, number>) {
    this.nodeId = nodeId;
    this.#store = store;
    this.#holders = holders;
  }

  held(name: string): LeaseToken | undefined {
    return this.isLate ? undefined : this.#tokens.get(name);
  }

  holder(name: string): number | undefined {
    return this.#holders.get(name);
  }

  want(lease: WantedLease): () => Promise<void> {
    this.#wanted.set(lease.name, lease);
    return async () => {
      this.#wanted.delete(lease.name);
      if (this.#tokens.delete(lease.name)) await lease.lost();
    };
  }

  /** Takes leases that their holders can't keep: they don't hear of it. Resolves once the work has begun. */
  async take(...names: readonly string[]): Promise<void> {
    const holder = { nodeId: this.nodeId, session: `session-${this.nodeId}` };
    const tokens = await this.#store.acquire({ names, holder, durationMs: 0 });
    await Promise.all(
      tokens.map((token) => {
        this.#tokens.set(token.name, token);
        this.#holders.set(token.name, this.nodeId);
        return this.#wanted.get(token.name)?.gained(token);
      }),
    );
  }

  /** Hears that leases are over. */
  async lose(...names: readonly string[]): Promise<void> {
    await Promise.all(
      names.map((name) => {
        this.#tokens.delete(name);
        return this.#wanted.get(name)?.lost();
      }),
    );
  }
}

/** Leases of several nodes over one store. */
export function leaseBoard(store: LeasesMetadata, nodes: number): readonly TestLeases[] {
  const holders = new Map<string, number>();
  return Array.from({ length: nodes }, (_, nodeId) => new TestLeases(nodeId, store, holders));
}
