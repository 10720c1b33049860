// Versions of what nodes keep copies of in memory. Each rises in the very transaction that changes its domain, so a node
// that has seen a version has, once it has read the domain again, everything up to it.
// Of domains that are large it is kept for a while what each version was about, so that little is read where little changed.
// Commits of the log have numbers of their own (log.ts, `follow`).

/**
 * What is versioned. `log-starts`: retention and DeleteRecords, and whatever frees bytes of partitions; `tables`: pauses,
 * states and positions set by hand; `cleanings`: how far compaction by key has come (objects.ts, `cleanedSince`).
 */
export const versionDomains = [
  'topics',
  'broker-configs',
  'resource-configs',
  'security',
  'quotas',
  'log-starts',
  'tables',
  'nodes',
  'cleanings',
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
  cleanings: 0,
};

/** Domains that tell what a version was about: ids of topics, of partitions whose log start or size changed. */
export type TracedDomain = 'topics' | 'log-starts';

/** So many of the newest versions of each traced domain are told of. */
export const TRACED_VERSIONS = 200;

export interface Changes {
  /** The domain's, as of the answer. */
  readonly version: number;
  /**
   * What has changed since the version that was asked about, each once; undefined: nobody knows any more, or a program of
   * the version before did not tell. Whoever now reads everything has what this version has.
   */
  readonly ids: readonly string[] | undefined;
}

export interface VersionsMetadata {
  /** As of now. They never go back. */
  current(): Promise<Versions>;
  /** What happened in a domain after the version `after` of it. */
  changes(domain: TracedDomain, after: number): Promise<Changes>;
}

/** The answer, made of the traces that are there of versions after `after`. */
export function changesOf(
  version: number,
  after: number,
  traces: readonly (readonly string[])[],
): Changes {
  // Each version leaves one: where one is missing, or the store was put back, nothing is known.
  if (traces.length !== version - after) return { version, ids: undefined };
  return { version, ids: [...new Set(traces.flat())] };
}
