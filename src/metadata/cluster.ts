// Which cluster this metadata belongs to: written once, compared with the object store's `cluster.json` at each start.

export interface ClusterMetadata {
  /** Undefined in a fresh store. */
  clusterId(): Promise<string | undefined>;
  /** Keeps the id for good. @throws FloeError `conflict` when another one is kept. */
  keepClusterId(clusterId: string): Promise<void>;
}
