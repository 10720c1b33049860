// The cluster's id on SQLite. See metadata/cluster.ts for the contract.
import { FloeError } from '../../base/error.ts';
import type { ClusterMetadata } from '../cluster.ts';
import type { Database, Migration } from './database.ts';

export const clusterMigrations: readonly Migration[] = [
  {
    name: 'cluster-1',
    sql: `CREATE TABLE cluster (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), cluster_id TEXT NOT NULL) STRICT;`,
  },
];

export class SqliteCluster implements ClusterMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
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
}
