// What all nodes of a cluster share, on PostgreSQL. See metadata/cluster.ts for the contract.
import { FloeError } from '../../base/error.ts';
import type { ClusterMetadata, Incarnation } from '../cluster.ts';
import type { Database } from './database.ts';
import type { Migration } from './migrations.ts';

export const clusterMigrations: readonly Migration[] = [
  {
    name: 'cluster-1',
    sql: `
      CREATE TABLE cluster (
        only_row bool PRIMARY KEY DEFAULT true CHECK (only_row), cluster_id text, secret bytea);
      INSERT INTO cluster DEFAULT VALUES;`,
  },
  {
    name: 'cluster-2',
    sql: `ALTER TABLE cluster ADD COLUMN restores int8 NOT NULL DEFAULT 0,
      ADD COLUMN confirmed int8 NOT NULL DEFAULT 0;`,
  },
];

export class PostgresCluster implements ClusterMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async clusterId(): Promise<string | undefined> {
    const row = await this.#db
      .on('read')
      .row<{ cluster_id: string | null }>('SELECT cluster_id FROM cluster');
    return row?.cluster_id ?? undefined;
  }

  async keepClusterId(clusterId: string): Promise<void> {
    const row = await this.#db.transaction('write', (tx) =>
      tx.row<{ cluster_id: string }>(
        'UPDATE cluster SET cluster_id = coalesce(cluster_id, $1) RETURNING cluster_id',
        [clusterId],
      ),
    );
    const kept = row!.cluster_id;
    if (kept !== clusterId)
      throw new FloeError('conflict', `this metadata belongs to cluster ${kept}, not ${clusterId}`);
  }

  async secret(fresh: Uint8Array): Promise<Uint8Array> {
    const row = await this.#db.transaction('write', (tx) =>
      tx.row<{ secret: Uint8Array }>(
        'UPDATE cluster SET secret = coalesce(secret, $1) RETURNING secret',
        [fresh],
      ),
    );
    return new Uint8Array(row!.secret);
  }

  async incarnation(): Promise<Incarnation> {
    const row = await this.#db
      .on('background')
      .row<{ restores: number; confirmed: number }>('SELECT restores, confirmed FROM cluster');
    return { restores: row!.restores, confirmed: row!.confirmed === row!.restores };
  }

  async confirmIncarnation(): Promise<void> {
    await this.#db.on('background').run('UPDATE cluster SET confirmed = restores');
  }

  async nowMs(): Promise<number> {
    const row = await this.#db
      .on('lease')
      .row<{ now: number }>('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now');
    return row!.now;
  }

  async bytes(): Promise<number> {
    const row = await this.#db
      .on('background')
      .row<{ bytes: number }>('SELECT pg_database_size(current_database()) AS bytes');
    return row!.bytes;
  }
}
