// Leases on PostgreSQL, by the server's clock alone. See metadata/leases.ts for the contract.
// The key (name, epoch) makes a takeover a change of a key, and nothing else: writers hold FOR KEY SHARE on their lease,
// so a takeover waits for them while renewals pass by.
import { FloeError } from '../../base/error.ts';
import type {
  AcquireLeases,
  LeaseHolder,
  LeaseState,
  LeasesMetadata,
  LeaseToken,
} from '../leases.ts';
import type { Database, Transaction } from './database.ts';
import type { Migration } from './migrations.ts';

export const leasesMigrations: readonly Migration[] = [
  {
    name: 'leases-1',
    sql: `
      CREATE TABLE leases (
        name text COLLATE "C" PRIMARY KEY, epoch int8 NOT NULL, node_id int4, session text,
        until timestamptz NOT NULL, UNIQUE (name, epoch)) WITH (fillfactor = 50);`,
  },
];

/**
 * One statement. Renewals touch no key; takeovers do. Both lock their rows in the order of names and look again at those
 * that somebody else changed meanwhile. Names without a row come back with epoch 0.
 */
const ACQUIRE = `
  WITH mine AS (
    SELECT name FROM leases
    WHERE name = ANY ($1::text[]) AND node_id = $2 AND session = $3 AND until > clock_timestamp()
    ORDER BY name FOR NO KEY UPDATE),
  renewed AS (
    UPDATE leases l SET until = clock_timestamp() + $4 * interval '1 millisecond'
    FROM mine WHERE l.name = mine.name RETURNING l.name, l.epoch),
  free AS (
    SELECT name FROM leases
    WHERE name = ANY ($1::text[]) AND (node_id IS NULL OR until <= clock_timestamp())
    ORDER BY name FOR UPDATE),
  taken AS (
    UPDATE leases l SET epoch = l.epoch + 1, node_id = $2, session = $3,
      until = clock_timestamp() + $4 * interval '1 millisecond'
    FROM free WHERE l.name = free.name RETURNING l.name, l.epoch)
  SELECT name, epoch FROM renewed UNION ALL SELECT name, epoch FROM taken UNION ALL
  SELECT wanted, 0 FROM unnest($1::text[]) AS wanted
  WHERE NOT EXISTS (SELECT 1 FROM leases l WHERE l.name = wanted)
  ORDER BY name`;

export class PostgresLeases implements LeasesMetadata {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async acquire({ names, holder, durationMs }: AcquireLeases): Promise<readonly LeaseToken[]> {
    if (names.length === 0) return [];
    const values = [[...new Set(names)], holder.nodeId, holder.session, durationMs];
    const sql = this.#db.on('lease');
    const held = await sql.rows<LeaseToken>(ACQUIRE, values);
    const fresh = held.filter(({ epoch }) => epoch === 0).map(({ name }) => name);
    if (fresh.length === 0) return held;
    // Made first and taken then, so that of several who want a new one each finds its row.
    await sql.run(
      `INSERT INTO leases (name, epoch, until) SELECT name, 0, clock_timestamp()
       FROM unnest($1::text[]) AS name ORDER BY name COLLATE "C" ON CONFLICT DO NOTHING`,
      [fresh],
    );
    return sql.rows<LeaseToken>(ACQUIRE, values);
  }

  async release(names: readonly string[], holder: LeaseHolder): Promise<void> {
    if (names.length === 0) return;
    await this.#db.on('lease').run(
      `WITH mine AS (
         SELECT name FROM leases WHERE name = ANY ($1::text[]) AND node_id = $2 AND session = $3
         ORDER BY name FOR NO KEY UPDATE)
       UPDATE leases l SET node_id = NULL, session = NULL, until = clock_timestamp()
       FROM mine WHERE l.name = mine.name`,
      [[...names], holder.nodeId, holder.session],
    );
  }

  async list(prefix: string): Promise<readonly LeaseState[]> {
    const rows = await this.#db.on('lease').rows<{
      name: string;
      epoch: number;
      node_id: number | null;
      session: string | null;
      remaining: number;
    }>(
      `SELECT name, epoch, node_id, session,
         (extract(epoch FROM until - clock_timestamp()) * 1000)::float8 AS remaining
       FROM leases WHERE starts_with(name, $1) ORDER BY name`,
      [prefix],
    );
    return rows.map((row) => ({
      name: row.name,
      epoch: row.epoch,
      holder:
        row.node_id === null || row.session === null
          ? undefined
          : { nodeId: row.node_id, session: row.session },
      remainingMs: row.remaining,
    }));
  }
}

/**
 * Asserts in the writing transaction that nobody has taken a lease since; a takeover waits until the transaction ends.
 * Its first statement, before any other lock. Stricter than on SQLite: who writes here has taken its leases here.
 * @throws FloeError `conflict` when an epoch is over (T6).
 */
export async function assertLeases(tx: Transaction, tokens: readonly LeaseToken[]): Promise<void> {
  if (tokens.length === 0) return;
  const rows = await tx.rows<LeaseToken>(
    'SELECT name, epoch FROM leases WHERE name = ANY ($1::text[]) ORDER BY name FOR KEY SHARE',
    [tokens.map(({ name }) => name)],
  );
  const epochs = new Map(rows.map(({ name, epoch }) => [name, epoch]));
  for (const { name, epoch } of tokens) {
    const now = epochs.get(name) ?? 0;
    if (now === epoch) continue;
    throw new FloeError(
      'conflict',
      `lease ${name} is held by another with epoch ${now}, no longer with ${epoch}`,
      { details: { lease: name } },
    );
  }
}

/** {@link assertLeases} of one. */
export function assertLease(tx: Transaction, token: LeaseToken): Promise<void> {
  return assertLeases(tx, [token]);
}
