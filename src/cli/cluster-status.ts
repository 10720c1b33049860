// The state of the cluster as one node tells it: nodes, leases, how far each node has followed the log.
// `GET /v1/node` is what a node says of itself, `GET /v1/cluster` puts it together: nodes and leases from the metadata
// store, the rest by asking each node, for a second at most. Not for: printing (commands/cluster.ts).
import type { Clock } from '../base/clock.ts';
import { within } from '../base/lifecycle.ts';
import { OWN_COMPACTION } from '../cluster/index.ts';
import type { NodeRecord } from '../metadata/nodes.ts';
import type { OpenedLog } from '../storage/log/open-log.ts';
import type { Membership } from './compose/membership.ts';

/** What a node says of itself. */
export interface NodeStatus {
  readonly nodeId: number;
  /** Newest commit that it has applied. */
  readonly commit: number;
}

export interface ClusterNodeStatus {
  readonly nodeId: number;
  readonly state: 'alive' | 'starting' | 'draining' | 'silent';
  readonly rack: string | null;
  readonly roles: readonly string[];
  readonly version: string;
  readonly levels: { readonly min: number; readonly max: number };
  readonly listeners: NodeRecord['listeners'];
  readonly http: string | null;
  readonly silentMs: number;
  readonly startedMs: number;
  /** Leases that it holds, by their kind (the part before `/`). */
  readonly leases: Readonly<Record<string, number>>;
  /** Null when it didn't answer in time. */
  readonly commit: number | null;
  /** Commits that it has still to apply. */
  readonly lag: number | null;
}

export interface ClusterStatus {
  readonly clusterId: string;
  /** Version of what all nodes understand. */
  readonly level: number;
  /** Who tells this. */
  readonly nodeId: number;
  /** Newest commit in the metadata store. */
  readonly commit: number;
  readonly nodes: readonly ClusterNodeStatus[];
  readonly leases: readonly {
    readonly name: string;
    readonly nodeId: number | null;
    readonly epoch: number;
    readonly remainingMs: number;
  }[];
}

export interface StatusParts {
  readonly place: Membership;
  readonly opened: Pick<OpenedLog, 'log' | 'metadata' | 'clusterId'>;
  readonly aliveMs: number;
  readonly clock: Clock;
}

/** How a node is asked; with the asker's own credentials. */
export interface Asking {
  readonly authorization: string | undefined;
}

const ASK_MS = 1_000;

export function nodeStatus({ place, opened }: Pick<StatusParts, 'place' | 'opened'>): NodeStatus {
  return { nodeId: place.cluster.self.nodeId, commit: opened.log.lastCommitNumber };
}

/** @throws FloeError `unavailable` without the metadata store. */
export async function clusterStatus(parts: StatusParts, asking: Asking): Promise<ClusterStatus> {
  const { place, opened } = parts;
  const { metadata, clusterId } = opened;
  await place.refresh();
  const [commit, leases] = await Promise.all([
    metadata.log.lastCommitNumber(),
    metadata.leases.list(''),
  ]);
  const records = place.records();
  const commits = await Promise.all(records.map((record) => commitOf(record, parts, asking)));
  return {
    clusterId,
    level: place.cluster.level(),
    nodeId: place.cluster.self.nodeId,
    commit,
    nodes: records.map((record, n) => ({
      ...shown(record, parts.aliveMs),
      leases: countLeases(record, leases),
      commit: commits[n]!,
      // A node that was asked later may be further.
      lag: commits[n] === null ? null : Math.max(0, commit - commits[n]!),
    })),
    leases: leases
      .map(({ name, epoch, holder, remainingMs }) => {
        const held = holder !== undefined && remainingMs > 0;
        return {
          name,
          epoch,
          nodeId: held ? holder.nodeId : null,
          remainingMs: held ? remainingMs : 0,
        };
      })
      // Those that name a node which has gone mean nothing.
      .filter(({ name, nodeId }) => nodeId !== null || !name.startsWith(OWN_COMPACTION)),
  };
}

function shown(record: NodeRecord, aliveMs: number) {
  const { nodeId, rack, roles, version, levels, listeners, http, silentMs, startedMs } = record;
  const known = { nodeId, rack, roles, version, levels, listeners, http, silentMs, startedMs };
  return { ...known, state: stateOf(record, aliveMs) };
}

function stateOf(
  { silentMs, draining, roles }: NodeRecord,
  aliveMs: number,
): ClusterNodeStatus['state'] {
  if (silentMs >= aliveMs) return 'silent';
  if (draining) return 'draining';
  return roles.length === 0 ? 'starting' : 'alive';
}

function countLeases(
  { nodeId, session }: NodeRecord,
  leases: Awaited<ReturnType<OpenedLog['metadata']['leases']['list']>>,
): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { name, holder, remainingMs } of leases) {
    if (holder?.nodeId !== nodeId || holder.session !== session || remainingMs <= 0) continue;
    const kind = name.split('/', 1)[0]!;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

async function commitOf(
  record: NodeRecord,
  { place, opened, aliveMs, clock }: StatusParts,
  { authorization }: Asking,
): Promise<number | null> {
  if (record.nodeId === place.cluster.self.nodeId) return opened.log.lastCommitNumber;
  if (record.http === null || record.silentMs >= aliveMs) return null;
  const headers = authorization === undefined ? {} : { authorization };
  const late = new AbortController();
  try {
    const asked = fetch(new URL('/v1/node', record.http), { headers, signal: late.signal });
    const answer = await within(clock, ASK_MS, asked, `asking node ${record.nodeId}`);
    const { commit } = (await answer.json()) as Partial<NodeStatus>;
    return answer.ok && typeof commit === 'number' ? commit : null;
  } catch {
    // It is shown as one that doesn't answer.
    late.abort();
    return null;
  }
}
