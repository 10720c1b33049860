// Versions of what nodes keep copies of, on SQLite: kept, so that a restart never goes back. See metadata/versions.ts.
import {
  noVersions,
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
];

/** What domains tell of their changes to, within the transaction that makes them. */
export interface VersionCounter {
  raise(domain: VersionDomain): void;
}

/** For domains that stand alone in a test. */
export const uncounted: VersionCounter = { raise: () => {} };

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

  raise(domain: VersionDomain): void {
    this.#db
      .prepare('INSERT INTO versions VALUES (?, 1) ON CONFLICT DO UPDATE SET version = version + 1')
      .run(domain);
  }
}
