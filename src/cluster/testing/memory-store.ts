// Nodes and leases in memory, by one clock that is the store's: what the contracts say and nothing more. For tests and
// models of the cluster, where calls are delayed, lost and late (store-link.ts).
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { LeaseHolder, LeasesMetadata } from '../../metadata/leases.ts';
import type { NodeRecord, NodesMetadata } from '../../metadata/nodes.ts';

interface KeptLease {
  epoch: number;
  holder: LeaseHolder | undefined;
  untilMs: number;
}

type KeptNode = Omit<NodeRecord, 'silentMs'> & { readonly heardMs: number };

const same = (a: LeaseHolder | undefined, b: LeaseHolder) =>
  a !== undefined && a.nodeId === b.nodeId && a.session === b.session;

/** The leases' part of a store. */
export function memoryLeases(clock: Clock): LeasesMetadata {
  const kept = new Map<string, KeptLease>();
  return {
    async acquire({ names, holder, durationMs }) {
      const nowMs = clock.monotonic();
      return names.flatMap((name) => {
        const lease = kept.get(name) ?? { epoch: 0, holder: undefined, untilMs: -Infinity };
        kept.set(name, lease);
        const free = lease.holder === undefined || lease.untilMs <= nowMs;
        if (!free && !same(lease.holder, holder)) return [];
        if (free) lease.epoch += 1;
        lease.holder = holder;
        lease.untilMs = nowMs + durationMs;
        return [{ name, epoch: lease.epoch }];
      });
    },
    async release(names, holder) {
      for (const name of names) {
        const lease = kept.get(name);
        if (lease !== undefined && same(lease.holder, holder)) lease.holder = undefined;
      }
    },
    async list(prefix) {
      const nowMs = clock.monotonic();
      return [...kept]
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, { epoch, holder, untilMs }]) => ({
          name,
          epoch,
          holder,
          remainingMs: untilMs - nowMs,
        }));
    },
  };
}

/** The nodes' part of a store. */
export function memoryNodes(clock: Clock): NodesMetadata {
  const kept = new Map<number, KeptNode>();
  const living = (node: KeptNode | undefined, aliveMs: number) =>
    node !== undefined && clock.monotonic() - node.heardMs < aliveMs;
  return {
    async register({ nodeId: wanted, ...registration }, aliveMs) {
      let nodeId = wanted ?? 1;
      if (wanted === undefined) while (living(kept.get(nodeId), aliveMs)) nodeId += 1;
      const present = kept.get(nodeId);
      const own = present?.session === registration.session;
      if (!own && living(present, aliveMs))
        throw new FloeError('conflict', `node ${nodeId} lives already`);
      const nowMs = clock.monotonic();
      const since = own ? present! : { draining: false, startedMs: nowMs };
      const { draining, startedMs } = since;
      kept.set(nodeId, { ...registration, nodeId, draining, startedMs, heardMs: nowMs });
      return nodeId;
    },
    async heartbeat(nodeId, session, draining) {
      const node = kept.get(nodeId);
      if (node?.session !== session) throw new FloeError('conflict', `node ${nodeId} is another`);
      kept.set(nodeId, { ...node, draining, heardMs: clock.monotonic() });
    },
    async leave(nodeId, session) {
      if (kept.get(nodeId)?.session === session) kept.delete(nodeId);
    },
    async list() {
      const nowMs = clock.monotonic();
      return [...kept.values()]
        .map(({ heardMs, ...node }) => ({ ...node, silentMs: nowMs - heardMs }))
        .toSorted((a, b) => a.nodeId - b.nodeId);
    },
    async forget(silentMs) {
      for (const [nodeId, node] of kept) if (!living(node, silentMs)) kept.delete(nodeId);
    },
  };
}
