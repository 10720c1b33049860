// The cluster as clients of a listener see it: which brokers there are, who leads a partition, who coordinates.
// Every broker takes and serves every partition, so leaders are only where clients are sent: by rendezvous hashing,
// near them if they say where they are. Not for: who lives, who holds a lease (cluster/).
import type { Cluster, ClusterNode, Leases } from '../cluster/cluster.ts';
import { shardOf } from '../metadata/shards.ts';

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** A broker as the clients of one listener reach it. */
export interface BrokerAddress extends Endpoint {
  readonly nodeId: number;
  readonly rack: string | null;
}

export interface ClusterView {
  readonly clusterId: string;
  readonly nodeId: number;
  readonly rack: string | null;
  /** Where the log lies, as DescribeLogDirs shows it: a path or a URI. */
  readonly logDirectory: string;
  /** This broker's advertised address of a listener. */
  endpoint(listener: string): Endpoint;
  /** The living brokers that have the listener, by id; never empty. */
  brokers(listener: string): readonly BrokerAddress[];
  /** Kafka names one: the lowest id, as no broker is special. */
  controllerId(listener: string): number;
  /** Where clients in a rack (null: nowhere in particular) are sent with a partition; a lookup to be used for one reply. */
  leaders(listener: string, rack: string | null): (partitionId: number) => number;
  /** Who coordinates a group or transactional id now; undefined while nobody does, or nobody that has the listener. */
  coordinator(
    kind: 'groups' | 'transactions',
    key: string,
    listener: string,
  ): BrokerAddress | undefined;
}

export interface ClusterViewOptions {
  readonly clusterId: string;
  readonly logDirectory: string;
  readonly cluster: Cluster;
  readonly leases: Leases;
  readonly endpoint: (listener: string) => Endpoint;
}

export function clusterView(options: ClusterViewOptions): ClusterView {
  const { clusterId, logDirectory, cluster, leases, endpoint } = options;
  const self = (listener: string): BrokerAddress => {
    const { nodeId, rack } = cluster.self;
    return { nodeId, rack, ...endpoint(listener) };
  };
  const addressOf = (node: ClusterNode, listener: string): BrokerAddress | undefined => {
    if (node.nodeId === cluster.self.nodeId) return self(listener);
    const reached = node.listeners[listener];
    return reached === undefined
      ? undefined
      : { nodeId: node.nodeId, rack: node.rack, host: reached.host, port: reached.port };
  };
  const brokers = (listener: string): readonly BrokerAddress[] => {
    const found: BrokerAddress[] = [];
    for (const node of cluster.nodes()) {
      const address = node.roles.includes('front') ? addressOf(node, listener) : undefined;
      if (address !== undefined) found.push(address);
    }
    // A node that isn't announced yet, or lost touch with the store, still is one for whoever has reached it.
    return found.length > 0 ? found : [self(listener)];
  };
  return {
    clusterId,
    logDirectory,
    endpoint,
    brokers,
    get nodeId() {
      return cluster.self.nodeId;
    },
    get rack() {
      return cluster.self.rack;
    },
    controllerId: (listener) => brokers(listener)[0]!.nodeId,
    leaders(listener, rack) {
      const named = brokers(listener);
      const first = named[0]!.nodeId;
      if (named.length === 1) return () => first;
      const ids = new Set(named.map(({ nodeId }) => nodeId));
      return (partitionId) => {
        const chosen = cluster.chosen(`p/${partitionId}`, 'front', rack)?.nodeId;
        return chosen !== undefined && ids.has(chosen) ? chosen : first;
      };
    },
    coordinator(kind, key, listener) {
      const holder = leases.holder(`${kind}/${shardOf(key)}`);
      const node = cluster.nodes().find(({ nodeId }) => nodeId === holder);
      return node === undefined ? undefined : addressOf(node, listener);
    },
  };
}
