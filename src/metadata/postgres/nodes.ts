// Nodes on PostgreSQL, by the server's clock. See metadata/nodes.ts for the contract. Registrations go one by one, so
// that no two nodes are given one id; heartbeats touch their own row alone.
import { FloeError } from '../../base/error.ts';
import {
  type NodeDescription,
  type NodeRecord,
  type NodeRegistration,
  type NodesMetadata,
  nodeIdTaken,
  nodeLifeOver,
} from '../nodes.ts';
import type { Database, Transaction } from './database.ts';
import type { Migration } from './migrations.ts';
import { raiseVersions } from './versions.ts';

export const nodesMigrations: readonly Migration[] = [
  {
    name: 'nodes-1',
    sql: `
      CREATE TABLE nodes (
        node_id int4 PRIMARY KEY, session text NOT NULL, description text NOT NULL, draining bool NOT NULL,
        heard timestamptz NOT NULL, started timestamptz NOT NULL) WITH (fillfactor = 50);`,
  },
];

/** Of the advisory lock of registrations: "node" in ASCII. */
const REGISTRATION = 0x6e6f_6465;

/** The session's own id if it lives already, else the lowest that no living node has. */
const FREE_ID = `
  SELECT coalesce(
    (SELECT node_id FROM nodes WHERE session = $1),
    (SELECT min(id) FROM generate_series(1, (SELECT count(*) + 1 FROM nodes)) AS id
     WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE n.node_id = id
       AND n.heard > clock_timestamp() - $2 * interval '1 millisecond')))::int4 AS node_id`;

const TAKE_ID = `
  INSERT INTO nodes AS n VALUES ($1, $2, $3, false, clock_timestamp(), clock_timestamp())
  ON CONFLICT (node_id) DO UPDATE SET session = excluded.session, description = excluded.description,
    draining = false, heard = clock_timestamp(),
    started = CASE n.session WHEN excluded.session THEN n.started ELSE clock_timestamp() END
    WHERE n.session = excluded.session OR n.heard <= clock_timestamp() - $4 * interval '1 millisecond'`;

interface Row {
  node_id: number;
  session: string;
  description: string;
  draining: boolean;
  silent: number;
  started: number;
}

export class PostgresNodes implements NodesMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async register(registration: NodeRegistration, aliveMs: number): Promise<number> {
    const { nodeId: asked, session, ...description } = registration;
    return this.#db.transaction('lease', async (tx) => {
      await tx.row('SELECT pg_advisory_xact_lock($1)', [REGISTRATION]);
      const nodeId = asked ?? (await freeId(tx, session, aliveMs));
      const taken = await tx.run(TAKE_ID, [nodeId, session, JSON.stringify(description), aliveMs]);
      if (taken === 0) throw nodeIdTaken(nodeId);
      await raiseVersions(tx, 'nodes');
      return nodeId;
    });
  }

  /** One round trip; a second one when the node begins or ends to drain, which others must see. */
  async heartbeat(nodeId: number, session: string, draining: boolean): Promise<void> {
    const heard = await this.#db.on('lease').run(
      `UPDATE nodes SET heard = clock_timestamp()
       WHERE node_id = $1 AND session = $2 AND draining = $3`,
      [nodeId, session, draining],
    );
    if (heard > 0) return;
    await this.#db.transaction('lease', async (tx) => {
      const changed = await tx.run(
        `UPDATE nodes SET heard = clock_timestamp(), draining = $3
         WHERE node_id = $1 AND session = $2`,
        [nodeId, session, draining],
      );
      if (changed === 0) throw nodeLifeOver(nodeId);
      await raiseVersions(tx, 'nodes');
    });
  }

  async leave(nodeId: number, session: string): Promise<void> {
    await this.#db.transaction('lease', async (tx) => {
      const gone = await tx.run('DELETE FROM nodes WHERE node_id = $1 AND session = $2', [
        nodeId,
        session,
      ]);
      if (gone > 0) await raiseVersions(tx, 'nodes');
    });
  }

  async list(): Promise<readonly NodeRecord[]> {
    const rows = await this.#db.on('lease').rows<Row>(
      `SELECT node_id, session, description, draining,
         (extract(epoch FROM clock_timestamp() - heard) * 1000)::float8 AS silent,
         (extract(epoch FROM started) * 1000)::int8 AS started
       FROM nodes ORDER BY node_id`,
    );
    return rows.map((row) => ({
      ...(JSON.parse(row.description) as NodeDescription),
      nodeId: row.node_id,
      session: row.session,
      draining: row.draining,
      silentMs: row.silent,
      startedMs: row.started,
    }));
  }

  async forget(silentMs: number): Promise<void> {
    await this.#db.transaction('lease', async (tx) => {
      const gone = await tx.run(
        `DELETE FROM nodes WHERE heard < clock_timestamp() - $1 * interval '1 millisecond'`,
        [silentMs],
      );
      if (gone > 0) await raiseVersions(tx, 'nodes');
    });
  }
}

async function freeId(tx: Transaction, session: string, aliveMs: number): Promise<number> {
  const row = await tx.row<{ node_id: number | null }>(FREE_ID, [session, aliveMs]);
  const nodeId = row?.node_id ?? undefined;
  if (nodeId === undefined) throw new FloeError('internal', 'no node id is free');
  return nodeId;
}
