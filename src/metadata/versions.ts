// Versions of what nodes keep copies of in memory. Each rises in the very transaction that changes its domain, so a node
// that has seen a version has, once it has read the domain again, everything up to it.
// Commits of the log have numbers of their own (log.ts, `follow`).

/** What is versioned. `log-starts`: retention and DeleteRecords; `tables`: pauses, states and positions set by hand. */
export const versionDomains = [
  'topics',
  'broker-configs',
  'resource-configs',
  'security',
  'quotas',
  'log-starts',
  'tables',
  'nodes',
] as const;

export type VersionDomain = (typeof versionDomains)[number];

export type Versions = Readonly<Record<VersionDomain, number>>;

/** Of a store in which nothing has changed yet. */
export const noVersions: Versions = {
  topics: 0,
  'broker-configs': 0,
  'resource-configs': 0,
  security: 0,
  quotas: 0,
  'log-starts': 0,
  tables: 0,
  nodes: 0,
};

export interface VersionsMetadata {
  /** As of now. They never go back. */
  current(): Promise<Versions>;
}
