// The cluster's id on SQLite. See metadata/cluster.ts for the contract.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { ClusterMetadata } from '../cluster.ts';
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

export class SqliteCluster implements ClusterMetadata {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async clusterId(): Promise<string | undefined> {
    return this.#db.prepare('SELECT cluster_id FROM cluster').get()?.['cluster_id'] as
      | string
      | undefined;
  }

  async keepClusterId(clusterId: string): Promise<void> {
    const kept = await this.clusterId();
    if (kept === clusterId) return;
    if (kept !== undefined)
      throw new FloeError('conflict', `this metadata belongs to cluster ${kept}, not ${clusterId}`);
    this.#db.transaction(() =>
      this.#db.prepare('INSERT INTO cluster VALUES (1, ?)').run(clusterId),
    );
  }

  async secret(fresh: Uint8Array): Promise<Uint8Array> {
    this.#db.prepare('INSERT INTO cluster_secret VALUES (1, ?) ON CONFLICT DO NOTHING').run(fresh);
    return this.#db.prepare('SELECT secret FROM cluster_secret').get()!['secret'] as Uint8Array;
  }

  async nowMs(): Promise<number> {
    return this.#clock.now();
  }
}
