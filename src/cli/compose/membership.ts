// This node's place in its cluster: registered, hinting and hinted to, holding leases — or alone, where the metadata store
// is its own. The parts see a `Cluster` and `Leases` either way.
// Not for: what the parts do with them.
import { readFileSync } from 'node:fs';
import { FloeError } from '../../base/error.ts';
import {
  ClockKeeper,
  type Cluster,
  ClusterMember,
  type ClusterNode,
  Hints,
  LEVELS,
  LeaseKeeper,
  type Leases,
  type NodeAddresses,
  soloCluster,
  soloLeases,
} from '../../cluster/index.ts';
import type { NodeEndpoint, NodeRecord } from '../../metadata/nodes.ts';
import type { Follower } from '../../storage/log/follower.ts';
import type { OpenedLog } from '../../storage/log/open-log.ts';
import { formatAddress, parseAddress } from '../address.ts';
import type { Node } from './node.ts';

export interface Membership {
  readonly cluster: Cluster;
  readonly leases: Leases;
  /** Undefined: this node is alone. */
  readonly follower: Follower | undefined;
  /** What nodes of the cluster prove themselves by; undefined for a node alone. */
  readonly secret: Uint8Array | undefined;
  /** Nodes as the store knows them. */
  records(): readonly NodeRecord[];
  /** Looks at the nodes again. */
  refresh(): Promise<void>;
  /** Calls back when another node tells that something beside the log has changed. */
  onNews(listener: () => void): void;
  /** Where others reach this node: from now on it takes part. */
  announce(addresses: Pick<NodeAddresses, 'listeners' | 'http'>): Promise<void>;
  /** Gives its work to the others. */
  drain(): Promise<void>;
}

/** Leases whose holders every node knows: clients ask any of them for their coordinator. */
const WATCHED = ['groups/', 'transactions/'];

/** Of the program. */
export const VERSION = (
  JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  }
).version;

/** @throws FloeError `conflict` when another node has the id, or speaks no level of ours. */
export async function takePlace(
  node: Node,
  opened: OpenedLog,
  kafkaHost: string,
): Promise<Membership> {
  const { follower } = opened as OpenedLog & { readonly follower?: Follower };
  return follower === undefined ? alone(node) : join(node, { opened, follower, kafkaHost });
}

function alone(node: Node): Membership {
  const { settings, clock } = node;
  const startedMs = clock.now();
  const self: ClusterNode & NodeRecord = {
    ...describe(node),
    nodeId: settings['node.id'],
    session: '',
    draining: false,
    listeners: {},
    hints: null,
    http: null,
    silentMs: 0,
    startedMs,
  };
  let announced = self;
  return {
    cluster: soloCluster(self),
    leases: soloLeases({ ...node, self }),
    follower: undefined,
    secret: undefined,
    records: () => [announced],
    refresh: async () => {},
    onNews: () => {},
    async announce(addresses) {
      announced = { ...self, ...addresses };
    },
    drain: async () => {},
  };
}

function describe({ settings }: Node) {
  return {
    rack: settings['broker.rack'] || null,
    roles: settings['node.roles'],
    version: VERSION,
    levels: LEVELS,
  };
}

interface Shared {
  readonly opened: OpenedLog;
  readonly follower: Follower;
  readonly kafkaHost: string;
}

async function join(node: Node, { opened, follower, kafkaHost }: Shared): Promise<Membership> {
  const { options, settings, lifecycle, logger, prng } = node;
  const { metadata, clusterId } = opened;
  lifecycle.add('clock', await ClockKeeper.start({ ...node, store: metadata.cluster }));
  const member = lifecycle.add(
    'membership',
    await ClusterMember.join({
      ...node,
      nodes: metadata.nodes,
      description: describe(node),
      nodeId: options.nodeId,
      onReplaced: (error) => fatal(node, error),
    }),
  );
  const secret = await metadata.cluster.secret(prng.bytes(32));
  const hints = lifecycle.add(
    'hints',
    await Hints.start({
      ...node,
      cluster: member.cluster,
      clusterId,
      secret,
      listen: hintsAddress(settings['cluster.hints.listen'], kafkaHost),
      maxPeers: settings['cluster.hints.max.peers'],
    }),
  );
  const leases = lifecycle.add(
    'leases',
    new LeaseKeeper({
      ...node,
      node: member,
      leases: metadata.leases,
      watched: WATCHED,
      onChange: () => hints.changed(),
    }),
  );
  const refresh = () => member.refresh();
  const onNews = new Set<() => void>();
  hints.onHint({
    commit: (commitNumber) => follower.hinted(commitNumber),
    news() {
      leases.lookAgain();
      // The next heartbeat looks again anyway.
      refresh().catch((caught) =>
        logger.debug({ error: FloeError.from(caught).message }, 'could not look at nodes'),
      );
      for (const listener of onNews) listener();
    },
    gone: (session) => member.suspect(session),
  });
  follower.onCommitted((commitNumber) => hints.committed(commitNumber));
  opened.onMetadataRaised(() => hints.changed());
  await leases.look();
  return {
    cluster: member.cluster,
    leases,
    follower,
    secret,
    records: () => member.records(),
    refresh,
    onNews: (listener) => void onNews.add(listener),
    async announce(addresses) {
      assertReachable(node, addresses);
      const told = settings['cluster.hints.advertised'];
      const at = told === '' ? undefined : parseAddress('cluster.hints.advertised', told);
      await member.announce({ ...addresses, hints: at ?? reachable(hints.address, addresses) });
      hints.changed();
    },
    async drain() {
      await member.drain();
      hints.changed();
      await leases.giveUp();
    },
  };
}

function hintsAddress(setting: string, kafkaHost: string): NodeEndpoint {
  return setting === ''
    ? { host: kafkaHost, port: 0 }
    : parseAddress('cluster.hints.listen', setting);
}

/** Of an HTTP face that is bound to `address`, as other nodes reach it; `told`: `cluster.http.advertised`. */
export function reachableUrl(
  scheme: string,
  { address, told }: { readonly address: string; readonly told: string },
  listeners: NodeAddresses['listeners'],
): string {
  const { host, port } =
    told === ''
      ? reachable(parseAddress('--http', address), { listeners })
      : parseAddress('cluster.http.advertised', told);
  return `${scheme}://${formatAddress({ host, port })}`;
}

const isEverywhere = (host: string) => host === '0.0.0.0' || host === '::' || host === '';

/** A host that others can connect to: the bound one unless that stands for all, then the one that clients are told. */
function reachable(
  bound: NodeEndpoint,
  { listeners }: Pick<NodeAddresses, 'listeners'>,
): NodeEndpoint {
  if (!isEverywhere(bound.host)) return bound;
  return { host: Object.values(listeners)[0]?.host ?? '127.0.0.1', port: bound.port };
}

/** Clients and other nodes are on other machines, where 0.0.0.0 means themselves. */
function assertReachable(
  { settings, options }: Node,
  { listeners }: Pick<NodeAddresses, 'listeners'>,
): void {
  if (settings['advertised.listeners'].length > 0 || Object.keys(listeners).length === 0) return;
  if (settings.listeners.length > 0 || !isEverywhere(options.kafka.host)) return;
  throw new FloeError(
    'invalid',
    `--kafka ${options.kafka.host}: no address that others could connect to: give it by --advertise HOST:PORT`,
  );
}

/** The node can't go on: its supervisor starts it anew. */
function fatal({ logger }: Node, error: FloeError): void {
  logger.error({ error: error.message }, 'this node must end');
  setImmediate(() => {
    throw error;
  });
}
