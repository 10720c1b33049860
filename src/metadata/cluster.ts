// Which cluster this metadata belongs to: written once, compared with the object store's `cluster.json` at each start.
// And what all of its nodes share: a secret, a clock.

export interface ClusterMetadata {
  /** Undefined in a fresh store. */
  clusterId(): Promise<string | undefined>;
  /** Keeps the id for good. @throws FloeError `conflict` when another one is kept. */
  keepClusterId(clusterId: string): Promise<void>;
  /** 32 bytes that only nodes of this cluster know, by which they know each other: `fresh` unless there are some yet. */
  secret(fresh: Uint8Array): Promise<Uint8Array>;
  /** The store's clock, milliseconds since the epoch. */
  nowMs(): Promise<number>;
}
