// Versions of what nodes keep copies of, on PostgreSQL. See metadata/versions.ts.
import {
  type VersionDomain,
  type Versions,
  type VersionsMetadata,
  versionDomains,
} from '../versions.ts';
import type { Database, Sql, Transaction } from './database.ts';
import type { Migration } from './migrations.ts';

export const versionsMigrations: readonly Migration[] = [
  {
    name: 'versions-1',
    sql: `
      CREATE TABLE versions (domain text COLLATE "C" PRIMARY KEY, version int8 NOT NULL) WITH (fillfactor = 50);
      INSERT INTO versions SELECT unnest('{${versionDomains.join(',')}}'::text[]), 0;`,
  },
];

/**
 * Raises the versions of what the transaction changes. Its last statement but the commit's number: from here on nobody
 * else changes these domains until it ends. Always in one order, so that two transactions never wait for each other.
 */
export async function raiseVersions(
  tx: Transaction,
  ...domains: readonly VersionDomain[]
): Promise<void> {
  for (const domain of domains.toSorted()) {
    await tx.run(
      `INSERT INTO versions VALUES ($1, 1) ON CONFLICT (domain) DO UPDATE SET version = versions.version + 1`,
      [domain],
    );
  }
}

/** All of them, within whatever `sql` is: in one snapshot with what else is read there. */
export async function readVersions(sql: Sql): Promise<Versions> {
  const rows = await sql.rows<{ domain: VersionDomain; version: number }>(
    'SELECT domain, version FROM versions',
  );
  const found = new Map(rows.map(({ domain, version }) => [domain, version]));
  return Object.fromEntries(
    versionDomains.map((domain) => [domain, found.get(domain) ?? 0]),
  ) as unknown as Versions;
}

export class PostgresVersions implements VersionsMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  current(): Promise<Versions> {
    return readVersions(this.#db.on('follow'));
  }
}
