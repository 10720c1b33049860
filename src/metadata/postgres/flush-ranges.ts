// Tables of flush rows by ranges of commit numbers: made ahead, dropped whole once nobody needs a row of them, so that
// nothing is ever deleted or vacuumed there. Attaching and detaching leave readers and writers alone (no exclusive lock of
// the table of all). Not for: what a row is (log-rows.ts).
import type pg from 'pg';
import type { Database } from './database.ts';
import { sqlState } from './errors.ts';
import { STORE_MS } from './log-rows.ts';

/** Commits a table holds: some hours at rest, some minutes under load. */
export const FLUSH_RANGE = 32_768;

/** Of the advisory lock under which tables come and go. */
const LOCK = 0x666c_7368;

/** Neither is worth holding anybody up for: it is tried again. */
const LOCK_TIMEOUT = 'SET lock_timeout = 2000';

interface Range {
  readonly name: string;
  readonly start: number;
}

/** Makes the tables that the next commits need, at least half a range ahead. Harmless when they are there. */
export async function ensureFlushRanges(db: Database): Promise<void> {
  const row = await db
    .on('background')
    .row<{ last_commit: number }>('SELECT last_commit FROM log_counter');
  const last = row!.last_commit;
  const known = new Set((await attached(db)).map(({ start }) => start));
  const needed = [last + 1, last + FLUSH_RANGE / 2].map(startOf);
  const missing = [...new Set(needed)].filter((start) => !known.has(start));
  for (const start of missing)
    await db.session((client) => locked(client, () => make(client, start)));
}

function startOf(commitNumber: number): number {
  return Math.floor(commitNumber / FLUSH_RANGE) * FLUSH_RANGE;
}

function tableOf(start: number): string {
  return `flushes_${start}`;
}

async function attached(db: Database): Promise<readonly Range[]> {
  const rows = await db.on('background').rows<{ name: string }>(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'flushes'::regclass AND NOT i.inhdetachpending`,
  );
  return rows
    .map(({ name }) => ({ name, start: Number(name.slice('flushes_'.length)) }))
    .sort((a, b) => a.start - b.start);
}

async function locked(client: pg.ClientBase, work: () => Promise<void>): Promise<void> {
  await client.query(LOCK_TIMEOUT);
  // Ends with the session.
  await client.query('SELECT pg_advisory_lock($1)', [LOCK]);
  await work();
}

async function make(client: pg.ClientBase, start: number): Promise<void> {
  const name = tableOf(start);
  // Without rows there is nothing to vacuum; a freeze that is forced still happens.
  await client.query(`CREATE TABLE IF NOT EXISTS ${name} (LIKE flushes INCLUDING STORAGE INCLUDING INDEXES)
    WITH (autovacuum_enabled = false, toast.autovacuum_enabled = false)`);
  try {
    await client.query(
      `ALTER TABLE flushes ATTACH PARTITION ${name} FOR VALUES FROM (${start}) TO (${start + FLUSH_RANGE})`,
    );
  } catch (caught) {
    // Attached meanwhile: "is already a partition".
    if (sqlState(caught) !== '42809') throw caught;
  }
}

/**
 * Drops tables of which every row is older than the horizon and names an object that isn't open any more; one with an
 * object that compaction hasn't taken yet stays. @returns how many were dropped.
 */
export async function dropFlushRanges(db: Database, horizonMs: number): Promise<number> {
  let dropped = 0;
  const ranges = await attached(db);
  const newest = ranges.at(-1)?.start;
  for (const range of ranges) {
    // The newest commit stays, so that whoever follows finds where to go on.
    if (range.start === newest || !(await isDone(db, range, horizonMs))) continue;
    await db.session((client) =>
      locked(client, async () => {
        await client.query(`ALTER TABLE flushes DETACH PARTITION ${range.name} CONCURRENTLY`);
      }),
    );
    dropped += 1;
  }
  await db.session((client) => locked(client, () => dropDetached(client)));
  return dropped;
}

async function isDone(db: Database, { start }: Range, horizonMs: number): Promise<boolean> {
  const sql = db.on('background');
  const row = await sql.row<{ full: boolean; done: boolean | null }>(
    `SELECT (SELECT last_commit FROM log_counter) >= $1 AS full,
       (SELECT max(committed_ms) FROM flushes WHERE commit_number >= $2 AND commit_number < $1) < ${STORE_MS} - $3
       AND NOT EXISTS (
         SELECT 1 FROM flushes f JOIN log_objects o USING (object_id)
         WHERE f.commit_number >= $2 AND f.commit_number < $1
           AND (o.state = 'open' OR o.changed_ms > ${STORE_MS} - $3)) AS done`,
    [start + FLUSH_RANGE, start, horizonMs],
  );
  return row!.full && row!.done === true;
}

/** Those whose dropping was interrupted too; and rows of objects that only they named. */
async function dropDetached(client: pg.ClientBase): Promise<void> {
  const pending = await client.query(
    `SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     WHERE i.inhparent = 'flushes'::regclass AND i.inhdetachpending`,
  );
  for (const { name } of pending.rows)
    await client.query(`ALTER TABLE flushes DETACH PARTITION ${name} FINALIZE`);
  const { rows } = await client.query(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_class p ON p.oid = 'flushes'::regclass
     WHERE c.relkind = 'r' AND c.relname ~ '^flushes_[0-9]+$' AND c.relnamespace = p.relnamespace
       AND NOT EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid)`,
  );
  for (const { name } of rows) await client.query(`DROP TABLE ${name}`);
  await client.query(`DELETE FROM log_objects o WHERE state = 'deleted'
    AND NOT EXISTS (SELECT 1 FROM flushes f WHERE f.object_id = o.object_id)`);
}

/** Makes the tables for rows of these commits, in a store that is being filled (restore). */
export async function makeFlushRanges(db: Database, commits: Iterable<number>): Promise<void> {
  const known = new Set((await attached(db)).map(({ start }) => start));
  const wanted = new Set([...commits].map(startOf));
  for (const start of wanted)
    if (!known.has(start)) await db.session((client) => locked(client, () => make(client, start)));
}
