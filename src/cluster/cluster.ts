// The cluster as a node sees it: the living nodes and which of them should do what. Synchronous and perhaps a heartbeat
// old: it decides where work goes, never whether it is right (leases and the metadata store do).
// One node alone (embedded) is a cluster too: solo.ts.
import type { LeaseToken } from '../metadata/leases.ts';
import type { NodeDescription, NodeRole } from '../metadata/nodes.ts';

export interface ClusterNode extends NodeDescription {
  readonly nodeId: number;
  readonly session: string;
  readonly draining: boolean;
}

export interface Cluster {
  readonly self: ClusterNode;
  /** Living nodes by id, this one among them. */
  nodes(): readonly ClusterNode[];
  /** The one that should do the work named `key`, by rendezvous hashing over living nodes of the role; undefined: nobody has it. */
  chosen(key: string, role: NodeRole, rack?: string | null): ClusterNode | undefined;
  /**
   * The version of what nodes say to each other and write for each other that every living node understands: new
   * forms are written only from their level on (levels.ts). Never goes back while this process lives.
   */
  level(): number;
  /** Called after nodes came, went, or began to drain. Returns how to stop that. */
  onChange(listener: () => void): () => void;
}

/**
 * Beginning of the names of leases by which nodes compact the log, each named after its node: one that nobody holds means
 * a node that is gone, and no work that is left undone.
 */
export const OWN_COMPACTION = 'maintenance/compaction/';

/** Leases that this node holds or wants. */
export interface Leases {
  /** The right, while surely nobody else has it; to be asked before every answer, and asserted in every write. */
  held(name: string): LeaseToken | undefined;
  /** Wants the lease whenever this node is the chosen one, and gives it up when it no longer is. */
  want(lease: WantedLease): () => Promise<void>;
  /** The node that held it when last looked at: where clients are sent. */
  holder(name: string): number | undefined;
}

export interface WantedLease {
  readonly name: string;
  readonly role: NodeRole;
  /** Named after this node, which alone wants it, whoever would be chosen. */
  readonly own?: boolean;
  /** Work may begin. What it throws gives the lease up again for a while (`lost` is called then, too). */
  gained(token: LeaseToken): Promise<void> | void;
  /**
   * Must stop at once; awaited before a lease is handed over of one's own will. Follows each `gained`, never beside
   * one: the two are called in turns, each after the other has settled.
   */
  lost(): Promise<void> | void;
}
