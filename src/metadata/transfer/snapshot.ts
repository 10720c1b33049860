// All rows of a PostgreSQL store as text, as of one moment, and back into an empty store: for backups. Rows go as JSON
// with their columns' names, so that a store of a later version takes them. Nodes are left out: they live with processes.
// Not for: where the text is kept (cli/backup).
import { FloeError } from '../../base/error.ts';
import type { Database, Transaction } from '../postgres/database.ts';
import { ensureFlushRanges, makeFlushRanges } from '../postgres/flush-ranges.ts';
import { postgresMigrations } from '../postgres/index.ts';

/** A table of a backup. */
export interface SnapshotTable {
  readonly name: string;
  readonly columns: readonly string[];
}

export interface SnapshotFacts {
  readonly clusterId: string;
  readonly lastCommit: number;
  /** The database's clock. */
  readonly takenMs: number;
  /** That the store had. */
  readonly migrations: readonly string[];
  /** In the order in which they refer to each other. */
  readonly tables: readonly SnapshotTable[];
  /** Last values of what numbers rows. */
  readonly sequences: Readonly<Record<string, number>>;
}

/** Rows handed over at once. */
const ROWS_AT_ONCE = 2_000;
/** Ids that were given after the backup are passed over: somebody may still hold them. */
export const SKIPPED_IDS = 1_000_000;

/**
 * What every restore does to a store, in its transaction; text for SQLite and PostgreSQL alike. It must not believe that files
 * of jobs of the lost time are nobody's: a table of another catalog may have them since, so they are left alone, and stages
 * may go by proof only (T5). Ids go on behind a gap, and whoever ran through it is told.
 */
export const RESTORED: readonly string[] = [
  'DELETE FROM table_intents WHERE parent IS NULL',
  'UPDATE table_stages SET attempted = TRUE',
  `UPDATE producer_ids SET next_id = next_id + ${SKIPPED_IDS}`,
  'UPDATE cluster SET restores = restores + 1',
];
/** PostgreSQL only: whatever brokers knew before, this is what holds. */
const AGREED = 'UPDATE log_counter SET contradiction = NULL';

/** A database that was brought back by PostgreSQL's own means, in one transaction: as after {@link writeSnapshot}. */
export async function noteRecovered(db: Database): Promise<void> {
  await db.transaction('background', async (tx) => {
    for (const sql of [...RESTORED, AGREED, SKIP_SEQUENCES]) await tx.run(sql);
  });
}

const LEFT_OUT = ['migrations', 'nodes'];

const SKIP_SEQUENCES = `
  SELECT setval(oid::regclass, coalesce(pg_sequence_last_value(oid), 0) + ${SKIPPED_IDS})
  FROM pg_class WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace`;

/** Of flushes only what readers need: rows of objects that aren't sealed. Who followed the others starts anew. */
const ROWS_OF: Readonly<Record<string, string>> = {
  flushes:
    "SELECT f.* FROM flushes f JOIN log_objects o USING (object_id) WHERE o.state = 'open' ORDER BY commit_number",
};

/**
 * Hands all rows to `take`, as of one moment (REPEATABLE READ), while brokers go on.
 * @throws FloeError `not-found`: the database belongs to no cluster.
 */
export async function readSnapshot(
  db: Database,
  take: (table: string, rows: readonly string[]) => Promise<void>,
): Promise<SnapshotFacts> {
  return db.session(async (client) => {
    const all = async (sql: string) => (await client.query(sql)).rows;
    // Where rows go may take its time; the session ends with the work.
    await client.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0');
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const tables = (await all(TABLES))
      .filter(({ name }) => !LEFT_OUT.includes(name))
      .map(({ name, columns }) => ({
        name: name as string,
        columns: JSON.parse(columns) as string[],
      }));
    if (!tables.some(({ name }) => name === 'cluster'))
      throw new FloeError('not-found', 'the database has no metadata of a cluster');
    const [facts] = await all(`SELECT (SELECT cluster_id FROM cluster) AS id,
      (SELECT last_commit FROM log_counter) AS last_commit, store_ms() AS now`);
    if (facts.id === null)
      throw new FloeError('not-found', 'the database belongs to no cluster yet');
    const migrations = (await all('SELECT name FROM migrations ORDER BY name')).map(
      ({ name }) => name,
    );
    for (const { name } of tables) {
      const rows = ROWS_OF[name] ?? `SELECT * FROM ${name}`;
      await client.query(
        `DECLARE backed_up CURSOR FOR SELECT to_json(r)::text AS row FROM (${rows}) AS r`,
      );
      for (;;) {
        const found = await all(`FETCH ${ROWS_AT_ONCE} FROM backed_up`);
        if (found.length > 0)
          await take(
            name,
            found.map(({ row }) => row as string),
          );
        if (found.length < ROWS_AT_ONCE) break;
      }
      await client.query('CLOSE backed_up');
    }
    const sequences = await all(
      'SELECT sequencename AS name, last_value FROM pg_sequences WHERE schemaname = current_schema()',
    );
    await client.query('COMMIT');
    return {
      clusterId: facts.id,
      lastCommit: facts.last_commit,
      takenMs: facts.now,
      migrations,
      tables,
      sequences: Object.fromEntries(
        sequences.map(({ name, last_value }) => [name, last_value ?? 0]),
      ),
    };
  });
}

/** In the order of their making, which is that of their references; partitions are part of their table. */
const TABLES = `
  SELECT c.relname AS name,
    (SELECT json_agg(a.attname ORDER BY a.attnum) FROM pg_attribute a
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)::text AS columns
  FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition AND c.relname !~ '^flushes_[0-9]+$' ORDER BY c.oid`;

/** Gives the rows of a table again, some at a time. */
export type RowsOf = (table: string) => AsyncIterable<readonly string[]>;

/**
 * Fills a store that is migrated and empty, in one transaction, and raises its incarnation.
 * @throws FloeError `conflict`: it isn't empty; `unsupported`: the backup is of a newer version.
 */
export async function writeSnapshot(
  db: Database,
  facts: SnapshotFacts,
  rowsOf: RowsOf,
): Promise<void> {
  const known = new Set(postgresMigrations.map(({ name }) => name));
  const newer = facts.migrations.filter((name) => !known.has(name));
  if (newer.length > 0)
    throw new FloeError(
      'unsupported',
      `the backup is of a newer version (${newer.join(', ')}): use that one`,
    );
  const commits = new Set<number>();
  for await (const rows of rowsOf('flushes'))
    for (const row of rows)
      commits.add((JSON.parse(row) as { commit_number: number }).commit_number);
  await makeFlushRanges(db, commits);
  await db.transaction('background', async (tx) => {
    // Parts are fetched in between.
    await tx.run('SET LOCAL idle_in_transaction_session_timeout = 0');
    await refuseUsed(tx);
    await tx.run(`TRUNCATE ${facts.tables.map(({ name }) => name).join(', ')} CASCADE`);
    for (const table of facts.tables)
      for await (const rows of rowsOf(table.name))
        await tx.run(insertOf(table), [`[${rows.join()}]`]);
    for (const [name, last] of Object.entries(facts.sequences))
      await tx.run('SELECT setval($1::regclass, $2::int8)', [name, last + SKIPPED_IDS]);
    for (const sql of [...RESTORED, AGREED]) await tx.run(sql);
  });
  await ensureFlushRanges(db);
}

async function refuseUsed(tx: Transaction): Promise<void> {
  const row = await tx.row<{ id: string | null }>(
    'SELECT cluster_id AS id FROM cluster FOR UPDATE',
  );
  if (row!.id !== null)
    throw new FloeError(
      'conflict',
      `the database holds cluster ${row!.id}: restore into an empty one`,
    );
}

function insertOf({ name, columns }: SnapshotTable): string {
  const names = columns.join(', ');
  return `INSERT INTO ${name} (${names}) OVERRIDING SYSTEM VALUE
    SELECT ${names} FROM json_populate_recordset(NULL::${name}, $1::json)`;
}
