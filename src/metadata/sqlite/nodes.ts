// Nodes on SQLite, by this process's clock. See metadata/nodes.ts for the contract. A node alone needs none; several
// fronts over one store (simulation) do.
import type { Clock } from '../../base/clock.ts';
import {
  type NodeDescription,
  type NodeRecord,
  type NodeRegistration,
  type NodesMetadata,
  nodeIdTaken,
  nodeLifeOver,
} from '../nodes.ts';
import type { Database, Migration } from './database.ts';
import type { VersionCounter } from './versions.ts';

export const nodesMigrations: readonly Migration[] = [
  {
    name: 'nodes-1',
    sql: `
      CREATE TABLE nodes (
        node_id INTEGER PRIMARY KEY, session TEXT NOT NULL, description TEXT NOT NULL, draining INTEGER NOT NULL,
        heard_ms REAL NOT NULL, started_ms REAL NOT NULL) STRICT;`,
  },
];

interface Row {
  node_id: number;
  session: string;
  description: string;
  draining: number;
  heard_ms: number;
  started_ms: number;
}

export class SqliteNodes implements NodesMetadata {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #versions: VersionCounter;

  constructor(db: Database, clock: Clock, versions: VersionCounter) {
    this.#db = db;
    this.#clock = clock;
    this.#versions = versions;
  }

  async register(registration: NodeRegistration, aliveMs: number): Promise<number> {
    const { nodeId: asked, session, ...description } = registration;
    return this.#db.transaction(() => {
      const now = this.#clock.now();
      const alive = new Map(
        this.#rows()
          .filter((row) => now - row.heard_ms < aliveMs)
          .map((row) => [row.node_id, row.session]),
      );
      const nodeId = asked ?? firstFree(alive, session);
      if ((alive.get(nodeId) ?? session) !== session) throw nodeIdTaken(nodeId);
      this.#db
        .prepare(
          `INSERT INTO nodes VALUES (?1, ?2, ?3, 0, ?4, ?4) ON CONFLICT DO UPDATE SET
             session = ?2, description = ?3, draining = 0, heard_ms = ?4,
             started_ms = CASE session WHEN ?2 THEN started_ms ELSE ?4 END`,
        )
        .run(nodeId, session, JSON.stringify(description), now);
      this.#versions.raise('nodes');
      return nodeId;
    });
  }

  async heartbeat(nodeId: number, session: string, draining: boolean): Promise<void> {
    this.#db.lazyTransaction(() => {
      const row = this.#rows().find((one) => one.node_id === nodeId);
      if (row?.session !== session) throw nodeLifeOver(nodeId);
      this.#db
        .prepare('UPDATE nodes SET heard_ms = ?, draining = ? WHERE node_id = ?')
        .run(this.#clock.now(), draining ? 1 : 0, nodeId);
      if ((row.draining === 1) !== draining) this.#versions.raise('nodes');
    });
  }

  async leave(nodeId: number, session: string): Promise<void> {
    this.#db.transaction(() => {
      const { changes } = this.#db
        .prepare('DELETE FROM nodes WHERE node_id = ? AND session = ?')
        .run(nodeId, session);
      if (changes > 0) this.#versions.raise('nodes');
    });
  }

  async list(): Promise<readonly NodeRecord[]> {
    const now = this.#clock.now();
    return this.#rows().map((row) => ({
      ...(JSON.parse(row.description) as NodeDescription),
      nodeId: row.node_id,
      session: row.session,
      draining: row.draining === 1,
      silentMs: now - row.heard_ms,
      startedMs: row.started_ms,
    }));
  }

  async forget(silentMs: number): Promise<void> {
    this.#db.transaction(() => {
      const { changes } = this.#db
        .prepare('DELETE FROM nodes WHERE heard_ms < ?')
        .run(this.#clock.now() - silentMs);
      if (changes > 0) this.#versions.raise('nodes');
    });
  }

  #rows(): Row[] {
    return this.#db.prepare('SELECT * FROM nodes ORDER BY node_id').all() as unknown as Row[];
  }
}

/** The session's own id if it lives already, else the lowest that no living node has. */
function firstFree(alive: ReadonlyMap<number, string>, session: string): number {
  for (const [id, other] of alive) if (other === session) return id;
  let id = 1;
  while (alive.has(id)) id += 1;
  return id;
}
