// A running cluster under `floe doctor --server`: what one of its nodes tells of all. Pure but for the request.
import { isFloeError } from '../../base/error.ts';
import type { TableStatus } from '../../table-topic/index.ts';
import type { ClusterStatus } from '../cluster-status.ts';
import { call } from '../http-client.ts';
import { type Finding, findingsOf } from './finding.ts';

const { ok, warning, wrong } = findingsOf('cluster');
/** Commits that a node may be behind: some seconds of a busy cluster. */
const MOST_LAG = 1_000;

export async function checkServer(server: string): Promise<readonly Finding[]> {
  try {
    const status = (await (await call({ server, path: '/v1/cluster' })).json()) as ClusterStatus;
    const { tables } = (await (await call({ server, path: '/v1/tables' })).json()) as {
      readonly tables: readonly TableStatus[];
    };
    return [...judgeCluster(status), judgeTables(tables)];
  } catch (caught) {
    if (!isFloeError(caught)) throw caught;
    if (caught.code === 'unavailable') {
      const remedy = 'name the HTTP address of any node by --server HOST:PORT';
      return [wrong('reachable', caught.message, remedy)];
    }
    const remedy =
      'the node answers and cannot tell: ask its stores by floe doctor --metadata … --storage …';
    return [wrong('status', caught.message, remedy)];
  }
}

/** Those that wait for somebody. */
export function judgeTables(tables: readonly Pick<TableStatus, 'topic' | 'state' | 'reason'>[]) {
  const suspended = tables.filter(({ state }) => state === 'suspended');
  if (suspended.length === 0) return ok('tables', `${tables.length}, none suspended`);
  const [first] = suspended;
  const others = suspended.length === 1 ? '' : ` and ${suspended.length - 1} more`;
  return wrong(
    'tables',
    `suspended: ${first!.topic} (${first!.reason})${others}`,
    'their records stay in the log: cure the cause, then say floe tables resume TOPIC; floe tables list names all',
  );
}

/** What the status of a cluster means. */
export function judgeCluster({ nodes, leases, level, commit }: ClusterStatus): readonly Finding[] {
  const silent = nodes.filter(({ state }) => state === 'silent').map(({ nodeId }) => nodeId);
  const orphans = leases.filter(({ nodeId }) => nodeId === null).map(({ name }) => name);
  const late = nodes.filter(({ lag }) => lag !== null && lag > MOST_LAG);
  const higher = nodes.every(({ levels }) => levels.max > level);
  return [
    silent.length === 0
      ? ok('nodes', `${nodes.length}, all alive`)
      : warning(
          'nodes',
          `silent: ${silent.join(', ')}`,
          'what they did is done by others; see why they are gone, or ignore what was taken away',
        ),
    orphans.length === 0
      ? ok('leases', `${leases.length}, all held`)
      : wrong(
          'leases',
          `held by nobody: ${orphans.slice(0, 5).join(', ')}`,
          'start a node with the role that is missing: coordinator, tables or maintenance',
        ),
    late.length === 0
      ? ok('commit', `${commit}, all nodes follow`)
      : warning(
          'commit',
          `behind: ${late.map(({ nodeId, lag }) => `node ${nodeId} by ${lag}`).join(', ')}`,
          'see its processor and its way to the database',
        ),
    ...(higher
      ? [
          warning(
            'level',
            String(level),
            'all nodes know a higher one: it is taken once no older node is registered',
          ),
        ]
      : []),
  ];
}
