// Versions of what nodes keep copies of, on PostgreSQL. See metadata/versions.ts.
import {
  type Changes,
  changesOf,
  TRACED_VERSIONS,
  type TracedDomain,
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
  {
    name: 'versions-2',
    sql: `
      CREATE TABLE version_traces (domain text COLLATE "C" NOT NULL, version int8 NOT NULL, ids text[] NOT NULL,
        PRIMARY KEY (domain, version));`,
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

/** As {@link raiseVersions} of one domain, for those who want to know what changed. */
export async function raiseTraced(
  tx: Transaction,
  domain: TracedDomain,
  ids: readonly (string | number)[],
): Promise<void> {
  await tx.run(RAISE_TRACED, [domain, ids.map(String)]);
}

const RAISE_TRACED = `
  WITH raised AS (
    INSERT INTO versions VALUES ($1, 1) ON CONFLICT (domain) DO UPDATE SET version = versions.version + 1
    RETURNING version), forgotten AS (
    DELETE FROM version_traces
    WHERE domain = $1 AND version <= (SELECT version FROM raised) - ${TRACED_VERSIONS})
  INSERT INTO version_traces SELECT $1, version, $2::text[] FROM raised`;

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

  async changes(domain: TracedDomain, after: number): Promise<Changes> {
    const rows = await this.#db
      .on('follow')
      .rows<{ version: number; ids: string[] | null }>(CHANGES, [domain, after]);
    const traces = rows.flatMap(({ ids }) => (ids === null ? [] : [ids]));
    return changesOf(rows[0]?.version ?? 0, after, traces);
  }
}

const CHANGES = `
  SELECT v.version, t.ids FROM versions v
    LEFT JOIN version_traces t ON t.domain = v.domain AND t.version > $2
  WHERE v.domain = $1`;
