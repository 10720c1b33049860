// Which node of a cluster does what of a table: one coordinates it, by lease; the lanes of its partitions are spread by
// rendezvous hashing. Views of two nodes may differ for a moment, and a lease may have changed hands: then two of them
// do the same lane, or an old coordinator goes on for a while. Both are harmless (rules T1, T4, T6), so nothing here has to
// be right, only soon.
// Not for: what nodes say to one another about a table (metadata/table-lanes.ts).
import type { Cluster, ClusterNode, Leases } from '../cluster/index.ts';
import { shardOf } from '../metadata/shards.ts';
import type { TableLanesMetadata } from '../metadata/table-lanes.ts';
import type { Topic } from '../metadata/topics.ts';

/** What begins and ends with the right to coordinate a table. */
export interface CoordinatorWork {
  gained(): Promise<void> | void;
  /** Ends at once. */
  lost(): Promise<void> | void;
}

type Spread = Pick<Topic, 'topicId' | 'partitions'>;

export interface TablePlacement {
  /** Words between the nodes; undefined: this node is alone and does everything. */
  readonly words: TableLanesMetadata | undefined;
  /** This node's id; undefined: it is alone. */
  readonly self: number | undefined;
  /** Coordinates the table whenever this node is the one. Returns how to end that. */
  coordinate(topicId: string, work: CoordinatorWork): () => Promise<void>;
  /** True while surely nobody else coordinates it. */
  coordinates(topicId: string): boolean;
  /** Where its coordinator was when last looked at; undefined: nowhere, or on a node that is gone. */
  coordinatorOf(topicId: string): ClusterNode | undefined;
  /** Partitions, by index, whose lanes run on this node, the coordinator's own or not. */
  lanesOf(topic: Spread): readonly number[];
  /** Partitions whose lanes run on other nodes: of no interest but to the coordinator. */
  lanesElsewhere(topic: Spread): readonly number[];
  /** This node looks after the table's files (maintenance/). */
  maintains(topicId: string): boolean;
  /** Who does, as of the last look. */
  maintainerOf(topicId: string): ClusterNode | undefined;
  /** This node deletes what jobs and commits of all nodes left behind (sweep.ts). */
  sweeps(): boolean;
  /** Called after nodes came or went. Returns how to stop that. */
  onChange(listener: () => void): () => void;
  /** Gives up what it looks after. */
  stop(): Promise<void>;
}

/** Of a node that is alone: it coordinates every table from the first moment on. */
export const soloPlacement: TablePlacement = {
  words: undefined,
  self: undefined,
  coordinate(_topicId, work) {
    // It does not wait: nobody else has to end first.
    void work.gained();
    return async () => {};
  },
  coordinates: () => true,
  coordinatorOf: () => undefined,
  lanesOf: ({ partitions }) => [...partitions.keys()],
  lanesElsewhere: () => [],
  maintains: () => true,
  maintainerOf: () => undefined,
  sweeps: () => true,
  onChange: () => () => {},
  stop: async () => {},
};

export interface SharedTables {
  readonly cluster: Cluster;
  readonly leases: Leases;
  readonly words: TableLanesMetadata;
}

export const leaseOf = (topicId: string) => `table/${topicId}`;

/**
 * Tables are looked after by shards, so that upkeep costs no second lease per table. Nothing of it needs a lease to be
 * right: commits of maintenance are optimistic, and files go only by proof.
 */
const UPKEEP_SHARDS = 16;
const SWEEP = 'upkeep/sweep';
const shardLease = (shard: number) => `upkeep/${shard}`;
const upkeepLease = (topicId: string) => shardLease(shardOf(topicId) % UPKEEP_SHARDS);

/** Of a node among others. */
export function clusterPlacement({ cluster, leases, words }: SharedTables): TablePlacement {
  const self = cluster.self.nodeId;
  const laneNode = (topicId: string, partition: number) =>
    cluster.chosen(`lane/${topicId}/${partition}`, 'tables')?.nodeId;
  const holderOf = (name: string) => {
    const holder = leases.holder(name);
    return cluster.nodes().find(({ nodeId }) => nodeId === holder);
  };
  /** Tables whose lease is being given up. */
  const endings = new Map<string, Promise<void>>();
  const shards = Array.from({ length: UPKEEP_SHARDS }, (_, shard) => shardLease(shard));
  const unwant = [...shards, SWEEP].map((name) =>
    // A run under way when it is lost is harmless, and the next one isn't begun.
    leases.want({ name, role: 'maintenance', gained() {}, lost() {} }),
  );
  return {
    words,
    self,
    coordinate(topicId, { gained, lost }) {
      let end: (() => Promise<void>) | undefined;
      let over = false;
      const begin = () => {
        if (!over) end = leases.want({ name: leaseOf(topicId), role: 'tables', gained, lost });
      };
      // A lease is wanted once: a table that comes back waits for its former end.
      const former = endings.get(topicId);
      if (former === undefined) begin();
      const begun = former?.then(begin) ?? Promise.resolve();
      return () => {
        over = true;
        const ending = begun.then(() => end?.());
        endings.set(topicId, ending);
        void ending.finally(() => {
          if (endings.get(topicId) === ending) endings.delete(topicId);
        });
        return ending;
      };
    },
    coordinates: (topicId) => leases.held(leaseOf(topicId)) !== undefined,
    coordinatorOf: (topicId) => holderOf(leaseOf(topicId)),
    lanesOf: ({ topicId, partitions }) =>
      [...partitions.keys()].filter((partition) => laneNode(topicId, partition) === self),
    lanesElsewhere: ({ topicId, partitions }) =>
      [...partitions.keys()].filter((partition) => laneNode(topicId, partition) !== self),
    maintains: (topicId) => leases.held(upkeepLease(topicId)) !== undefined,
    maintainerOf: (topicId) => holderOf(upkeepLease(topicId)),
    sweeps: () => leases.held(SWEEP) !== undefined,
    onChange: (listener) => cluster.onChange(listener),
    async stop() {
      await Promise.all(unwant.map((end) => end()));
    },
  };
}
