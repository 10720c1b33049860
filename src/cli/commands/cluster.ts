// floe cluster status
import { Command, Option } from 'commander';
import type { ClusterNodeStatus, ClusterStatus } from '../cluster-status.ts';
import { call, HTTP_SERVER } from '../http-client.ts';
import { textTable } from '../text-table.ts';

interface StatusOptions {
  readonly server: string;
  readonly format: 'table' | 'json';
}

export function clusterCommand(): Command {
  const command = new Command('cluster').description('the nodes of a cluster and what each does');
  command
    .command('status')
    .description('nodes, their roles and leases, how far each has followed the log')
    .addOption(
      new Option('--format <format>', 'how to print').choices(['table', 'json']).default('table'),
    )
    .option('--server <host:port>', 'the HTTP address of any node', HTTP_SERVER)
    .action(showStatus);
  return command;
}

async function showStatus({ server, format }: StatusOptions): Promise<void> {
  const status = (await (await call({ server, path: '/v1/cluster' })).json()) as ClusterStatus;
  process.stdout.write(
    format === 'json' ? `${JSON.stringify(status, null, 2)}\n` : clusterTable(status, Date.now()),
  );
}

/** The status for people. `nowMs` is the reader's clock. */
export function clusterTable(status: ClusterStatus, nowMs: number): string {
  const { clusterId, level, commit, nodes, leases } = status;
  const orphans = leases.filter(({ nodeId }) => nodeId === null).map(({ name }) => name);
  const alive = nodes.filter(({ state }) => state === 'alive').length;
  const columns = [
    'node',
    'state',
    'rack',
    'roles',
    'address',
    'version',
    'up',
    'leases',
    'commit',
    'lag',
  ];
  const rows = nodes.map((node) => [
    node.nodeId,
    stateOf(node),
    node.rack,
    node.roles.join(','),
    addressOf(node),
    node.version,
    age(nowMs - node.startedMs),
    Object.entries(node.leases)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(', '),
    node.commit,
    node.lag,
  ]);
  const unheld = orphans.length === 0 ? '' : `\nheld by nobody: ${listed(orphans)}\n`;
  return `cluster ${clusterId}: ${alive} of ${nodes.length} nodes alive, level ${level}, commit ${commit}\n\n${textTable(columns, rows)}${unheld}`;
}

/** What the metadata store knows of it, and whether it answered just now: one that died shows there first. */
function stateOf({ state, silentMs, http, commit }: ClusterNodeStatus): string {
  if (state === 'silent') return `silent ${age(silentMs)}`;
  return commit === null && http !== null ? `${state}, no answer` : state;
}

function addressOf({ listeners }: ClusterNodeStatus): string {
  const [first] = Object.values(listeners);
  return first === undefined ? '' : `${first.host}:${first.port}`;
}

const MOST_LISTED = 10;

function listed(names: readonly string[]): string {
  const more = names.length - MOST_LISTED;
  return names.slice(0, MOST_LISTED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
] as const;

/** `3d`, `5h`, `12m`, `7s`. */
function age(ms: number): string {
  for (const [unit, name] of UNITS) if (ms >= unit) return `${Math.floor(ms / unit)}${name}`;
  return `${Math.max(0, Math.floor(ms / 1_000))}s`;
}
