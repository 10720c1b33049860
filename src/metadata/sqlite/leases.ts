// Leases on SQLite, by this process's clock. See metadata/leases.ts for the contract. A node alone takes none; several
// fronts over one store (simulation) do.
import type { Clock } from '../../base/clock.ts';
import type {
  AcquireLeases,
  LeaseHolder,
  LeaseState,
  LeasesMetadata,
  LeaseToken,
} from '../leases.ts';
import type { Database, Migration } from './database.ts';
import type { LeaseEpochs } from './lease-epochs.ts';

export const leasesMigrations: readonly Migration[] = [
  {
    name: 'leases-1',
    sql: `
      CREATE TABLE leases (
        name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, node_id INTEGER, session TEXT, until_ms REAL NOT NULL)
        STRICT, WITHOUT ROWID;`,
  },
];

interface Row {
  name: string;
  epoch: number;
  node_id: number | null;
  session: string | null;
  until_ms: number;
}

export class SqliteLeases implements LeasesMetadata, LeaseEpochs {
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  async acquire({ names, holder, durationMs }: AcquireLeases): Promise<readonly LeaseToken[]> {
    const put = this.#db.prepare(
      `INSERT INTO leases VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET epoch = excluded.epoch,
         node_id = excluded.node_id, session = excluded.session, until_ms = excluded.until_ms`,
    );
    return this.#db.lazyTransaction(() => {
      const now = this.#clock.now();
      const held: LeaseToken[] = [];
      for (const name of [...new Set(names)].sort()) {
        const row = this.#find(name);
        const living = row !== undefined && row.node_id !== null && row.until_ms > now;
        if (living && !isOf(row, holder)) continue;
        const epoch = living ? row.epoch : (row?.epoch ?? 0) + 1;
        put.run(name, epoch, holder.nodeId, holder.session, now + durationMs);
        held.push({ name, epoch });
      }
      return held;
    });
  }

  async release(names: readonly string[], { nodeId, session }: LeaseHolder): Promise<void> {
    const free = this.#db.prepare(
      `UPDATE leases SET node_id = NULL, session = NULL, until_ms = ?
       WHERE name = ? AND node_id = ? AND session = ?`,
    );
    this.#db.lazyTransaction(() => {
      for (const name of names) free.run(this.#clock.now(), name, nodeId, session);
    });
  }

  async list(prefix: string): Promise<readonly LeaseState[]> {
    const rows = this.#db
      .prepare('SELECT * FROM leases WHERE substr(name, 1, length(?1)) = ?1 ORDER BY name')
      .all(prefix) as unknown as Row[];
    return rows.map(({ name, epoch, node_id: nodeId, session, until_ms: until }) => ({
      name,
      epoch,
      holder: nodeId === null || session === null ? undefined : { nodeId, session },
      remainingMs: until - this.#clock.now(),
    }));
  }

  epochOf(name: string): number | undefined {
    return this.#find(name)?.epoch;
  }

  isLive({ name, epoch }: LeaseToken): boolean {
    const row = this.#find(name);
    if (row === undefined || row.epoch !== epoch) return false;
    return row.node_id !== null && row.until_ms > this.#clock.now();
  }

  #find(name: string): Row | undefined {
    return this.#db.prepare('SELECT * FROM leases WHERE name = ?').get(name) as unknown as
      | Row
      | undefined;
  }
}

const isOf = (row: Row, { nodeId, session }: LeaseHolder) =>
  row.node_id === nodeId && row.session === session;
