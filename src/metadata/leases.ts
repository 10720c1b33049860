// Leases: who may do what only one node may do (coordinate groups of a shard, commit a table, maintain the log).
// Time is the store's alone. A holder counts its own deadline on a monotonic clock from before it asked, less a margin,
// and looks at it before it answers anybody (cluster/lease-keeper.ts); what it writes asserts the epoch in the writing
// transaction, so that a zombie's write fails whatever its clock says (rule T6, design "Groups").
// Not for: who should hold a lease (cluster/rendezvous.ts).

/** A right as its holder shows it: a higher epoch of the same name ends it. */
export interface LeaseToken {
  /** Such as `groups/17`, `transactions/3`, `table/<topic id>`, `maintenance/log`, `maintenance/compaction/<node>`. */
  readonly name: string;
  readonly epoch: number;
}

export interface LeaseHolder {
  readonly nodeId: number;
  /** Of the node's life: a node that starts again is another holder. */
  readonly session: string;
}

/** A lease as the store knows it. */
export interface LeaseState extends LeaseToken {
  /** Undefined when released; an expired one still names its last holder. */
  readonly holder: LeaseHolder | undefined;
  /** By the store's clock when asked; 0 or less: anybody may take it. */
  readonly remainingMs: number;
}

export interface AcquireLeases {
  readonly names: readonly string[];
  readonly holder: LeaseHolder;
  readonly durationMs: number;
}

export interface LeasesMetadata {
  /**
   * Renews those that are the caller's, takes those that are free, released or expired (their epoch rises), leaves the
   * others alone; all in one transaction, in the order of names. @returns what the caller holds of `names` now.
   */
  acquire(request: AcquireLeases): Promise<readonly LeaseToken[]>;
  /** Gives up what the caller holds of `names`, so that others needn't wait for the end. */
  release(names: readonly string[], holder: LeaseHolder): Promise<void>;
  /** All leases whose names begin so. */
  list(prefix: string): Promise<readonly LeaseState[]>;
}
