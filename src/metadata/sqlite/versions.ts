// Versions of what nodes keep copies of, on SQLite: kept, so that a restart never goes back. See metadata/versions.ts.
import {
  type Changes,
  changesOf,
  noVersions,
  TRACED_VERSIONS,
  type TracedDomain,
  type VersionDomain,
  type Versions,
  type VersionsMetadata,
} from '../versions.ts';
import type { Database, Migration } from './database.ts';

export const versionsMigrations: readonly Migration[] = [
  {
    name: 'versions-1',
    sql: 'CREATE TABLE versions (domain TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID;',
  },
  {
    name: 'versions-2',
    sql: `CREATE TABLE version_traces (domain TEXT NOT NULL, version INTEGER NOT NULL, ids TEXT NOT NULL,
      PRIMARY KEY (domain, version)) STRICT, WITHOUT ROWID;`,
  },
];

/** What domains tell of their changes to, within the transaction that makes them. */
export interface VersionCounter {
  raise(domain: Exclude<VersionDomain, TracedDomain>): void;
  /** {@link raise} of a domain that tells what changed. */
  raiseTraced(domain: TracedDomain, ids: readonly (string | number)[]): void;
}

/** For domains that stand alone in a test. */
export const uncounted: VersionCounter = { raise: () => {}, raiseTraced: () => {} };

export class SqliteVersions implements VersionsMetadata, VersionCounter {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async current(): Promise<Versions> {
    return this.now();
  }

  now(): Versions {
    const rows = this.#db.prepare('SELECT domain, version FROM versions').all();
    return {
      ...noVersions,
      ...Object.fromEntries(rows.map((row) => [row['domain'], row['version']])),
    };
  }

  async changes(domain: TracedDomain, after: number): Promise<Changes> {
    const traces = this.#db
      .prepare('SELECT ids FROM version_traces WHERE domain = ? AND version > ?')
      .all(domain, after)
      .map((row) => JSON.parse(row['ids'] as string) as string[]);
    return changesOf(this.now()[domain], after, traces);
  }

  raiseTraced(domain: TracedDomain, ids: readonly (string | number)[]): void {
    this.raise(domain);
    const version = this.now()[domain];
    this.#db
      .prepare('DELETE FROM version_traces WHERE domain = ? AND version <= ?')
      .run(domain, version - TRACED_VERSIONS);
    this.#db
      .prepare('INSERT INTO version_traces VALUES (?, ?, ?)')
      .run(domain, version, JSON.stringify(ids.map(String)));
  }

  raise(domain: VersionDomain): void {
    this.#db
      .prepare('INSERT INTO versions VALUES (?, 1) ON CONFLICT DO UPDATE SET version = version + 1')
      .run(domain);
  }
}
