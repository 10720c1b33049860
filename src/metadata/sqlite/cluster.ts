// The cluster's id on SQLite. See metadata/cluster.ts for the contract.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { ClusterMetadata, Incarnation } from '../cluster.ts';
import type { Database, Migration } from './database.ts';

export const clusterMigrations: readonly Migration[] = [
  {
    name: 'cluster-1',
    sql: `CREATE TABLE cluster (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), cluster_id TEXT NOT NULL) STRICT;`,
  },
];

export const clusterSecretMigrations: readonly Migration[] = [
  {
    name: 'cluster-2',
    sql: `CREATE TABLE cluster_secret (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), secret BLOB NOT NULL) STRICT;`,
  },
];

export const clusterMoveMigrations: readonly Migration[] = [
  // Where `floe migrate` has taken the cluster: this store is its past.
  { name: 'cluster-3', sql: 'ALTER TABLE cluster ADD COLUMN moved_to TEXT;' },
  {
    name: 'cluster-4',
    sql: `ALTER TABLE cluster ADD COLUMN restores INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE cluster ADD COLUMN confirmed INTEGER NOT NULL DEFAULT 0;`,
  },
];

export class SqliteCluster implements ClusterMetadata {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async clusterId(): Promise<string | undefined> {
    const row = this.#db.prepare('SELECT cluster_id, moved_to FROM cluster').get();
    const movedTo = (row?.['moved_to'] ?? undefined) as string | undefined;
    if (movedTo !== undefined) {
      throw new FloeError(
        'conflict',
        `this data directory was moved to ${movedTo} by floe migrate: serve that cluster, with --metadata and --storage`,
      );
    }
    return row?.['cluster_id'] as string | undefined;
  }

  async keepClusterId(clusterId: string): Promise<void> {
    const kept = await this.clusterId();
    if (kept === clusterId) return;
    if (kept !== undefined)
      throw new FloeError('conflict', `this metadata belongs to cluster ${kept}, not ${clusterId}`);
    this.#db.transaction(() =>
      this.#db.prepare('INSERT INTO cluster (only_row, cluster_id) VALUES (1, ?)').run(clusterId),
    );
  }

  async secret(fresh: Uint8Array): Promise<Uint8Array> {
    this.#db.prepare('INSERT INTO cluster_secret VALUES (1, ?) ON CONFLICT DO NOTHING').run(fresh);
    return this.#db.prepare('SELECT secret FROM cluster_secret').get()!['secret'] as Uint8Array;
  }

  async incarnation(): Promise<Incarnation> {
    const row = this.#db.prepare('SELECT restores, confirmed FROM cluster').get();
    const restores = Number(row?.['restores'] ?? 0);
    return { restores, confirmed: Number(row?.['confirmed'] ?? 0) === restores };
  }

  async confirmIncarnation(): Promise<void> {
    this.#db.prepare('UPDATE cluster SET confirmed = restores').run();
  }

  async nowMs(): Promise<number> {
    return this.#clock.now();
  }

  async bytes(): Promise<number> {
    const row = this.#db
      .prepare('SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size')
      .get();
    return row!['bytes'] as number;
  }
}
