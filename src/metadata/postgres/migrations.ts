// Applies each migration once, in order, while several brokers may start at once and others work on. One broker at a
// time, by an advisory lock that is tried and never waited for in the server: CREATE INDEX CONCURRENTLY waits for every
// open statement, a waiting one too. Changes of tables wait for their locks only shortly and try again, since behind
// a waiting ALTER TABLE everybody else waits.
import type pg from 'pg';
import { FloeError } from '../../base/error.ts';
import { backoffMs } from '../../base/retry.ts';
import type { Database } from './database.ts';
import { sqlState } from './errors.ts';

export interface Migration {
  /** Stable name, never reused; recorded when applied. */
  readonly name: string;
  /**
   * One or more statements. What it makes must be usable by brokers of the version before (rolling upgrade). A column for a
   * table that they read by `SELECT *` is, if they prepare stale statements anew (`isStale` in errors.ts).
   */
  readonly sql: string;
  /** Set when `sql` is one CREATE INDEX CONCURRENTLY of this index: it runs outside a transaction. */
  readonly index?: string;
}

/** Of the advisory lock: "floe" in ASCII. */
const LOCK = 0x666c_6f65;
const TRY_EVERY_MS = 50;
const MAX_WAIT_MS = 600_000;
/** ALTER TABLE waits so long at a time. */
const LOCK_TIMEOUT_MS = 1_000;
const ATTEMPTS = 60;

/** @throws FloeError `unavailable` when another broker's migration doesn't end, or a table stays locked. */
export async function migrate(db: Database, migrations: readonly Migration[]): Promise<void> {
  await db.session(async (client) => {
    await client.query('SET statement_timeout = 0');
    // At once when there is nothing to do, as at nearly every start.
    if ((await pending(client, migrations)).length === 0) return;
    await locked(db, client);
    await client.query(`CREATE TABLE IF NOT EXISTS migrations (
      name text PRIMARY KEY, applied timestamptz NOT NULL DEFAULT clock_timestamp())`);
    for (const migration of await pending(client, migrations)) {
      await patiently(db, () => apply(client, migration));
    }
  });
}

async function pending(
  client: pg.ClientBase,
  migrations: readonly Migration[],
): Promise<readonly Migration[]> {
  const there = await client.query("SELECT to_regclass('migrations') IS NOT NULL AS there");
  if (there.rows[0].there !== true) return migrations;
  const { rows } = await client.query('SELECT name FROM migrations');
  const applied = new Set(rows.map((row) => row.name as string));
  return migrations.filter(({ name }) => !applied.has(name));
}

async function locked({ options: { clock } }: Database, client: pg.ClientBase): Promise<void> {
  const deadline = clock.monotonic() + MAX_WAIT_MS;
  for (;;) {
    const { rows } = await client.query('SELECT pg_try_advisory_lock($1) AS mine', [LOCK]);
    if (rows[0].mine === true) return;
    if (clock.monotonic() > deadline)
      throw new FloeError('unavailable', "another broker's migration of the metadata doesn't end");
    await clock.sleep(TRY_EVERY_MS);
  }
}

async function patiently(
  { options: { clock, prng } }: Database,
  work: () => Promise<void>,
): Promise<void> {
  for (let n = 1; ; n += 1) {
    try {
      await work();
      return;
    } catch (caught) {
      const busy = sqlState(caught) === '55P03' || sqlState(caught) === '40P01';
      if (!busy || n >= ATTEMPTS) throw caught;
      await clock.sleep(backoffMs({ prng, firstDelayMs: 100, maxDelayMs: 5_000 }, n));
    }
  }
}

async function apply(client: pg.ClientBase, { name, sql, index }: Migration): Promise<void> {
  if (index !== undefined) {
    await client.query('SET lock_timeout = 0');
    // A build that was broken off leaves an index that is never used.
    await client.query(`DROP INDEX IF EXISTS ${index}`);
    await client.query(sql);
    await client.query('INSERT INTO migrations (name) VALUES ($1)', [name]);
    return;
  }
  await client.query('BEGIN');
  try {
    await client.query(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`);
    await client.query(sql);
    await client.query('INSERT INTO migrations (name) VALUES ($1)', [name]);
    await client.query('COMMIT');
  } catch (caught) {
    await client.query('ROLLBACK');
    throw caught;
  }
}
