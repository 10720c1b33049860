// Which cluster this metadata belongs to: written once, compared with the object store's `cluster.json` at each start.
// And what all of its nodes share: a secret, a clock.

/** Whether this metadata came out of a backup. What was written after the backup then has no row, and must not be swept. */
export interface Incarnation {
  /** How often it was restored. */
  readonly restores: number;
  /** True when somebody has confirmed the last restore (`floe doctor --confirm`), or there was none. */
  readonly confirmed: boolean;
}

export interface ClusterMetadata {
  /** Undefined in a fresh store. */
  clusterId(): Promise<string | undefined>;
  /** Keeps the id for good. @throws FloeError `conflict` when another one is kept. */
  keepClusterId(clusterId: string): Promise<void>;
  /** 32 bytes that only nodes of this cluster know, by which they know each other: `fresh` unless there are some yet. */
  secret(fresh: Uint8Array): Promise<Uint8Array>;
  /** While it isn't confirmed, nothing is swept or deleted from the object store (L10). Restores raise it (transfer/). */
  incarnation(): Promise<Incarnation>;
  /** Deletion may go on. Repeating it is harmless. */
  confirmIncarnation(): Promise<void>;
  /** The store's clock, milliseconds since the epoch. */
  nowMs(): Promise<number>;
  /** What the whole store takes, its indexes included. */
  bytes(): Promise<number>;
}
