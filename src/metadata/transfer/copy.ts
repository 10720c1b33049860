// Moves all rows of a SQLite store into an empty PostgreSQL store, in one transaction, and compares the two afterwards.
// A copy that broke off left nothing; one that succeeded isn't made twice. Not for: the objects that rows name
// (cli/migrate), rows while somebody writes (the data directory's lock is the caller's).
import { createHash } from 'node:crypto';
import { FloeError } from '../../base/error.ts';
import type { Database, SqlValue, Transaction } from '../postgres/database.ts';
import { ensureFlushRanges } from '../postgres/flush-ranges.ts';
import type { Database as SqliteDatabase } from '../sqlite/database.ts';
import { type SourceRow, type TransferTable, transferTables } from './tables.ts';

export interface TransferSource {
  readonly database: SqliteDatabase;
  readonly clusterId: string;
  /** Of the newest commit. */
  readonly lastCommit: number;
  /** What becomes of a text on its way: locations of files that move. */
  readonly moved: (text: string) => string;
}

/** Rows sent in one statement. */
const ROWS_AT_ONCE = 2_000;
/** Tables whose texts may name locations. */
const WITH_LOCATIONS = new Set([
  'catalog_tables',
  'catalog_namespaces',
  'table_stages',
  'table_intents',
  'table_asks',
  'table_replays',
]);

/** @throws FloeError `conflict` when the target holds anything already. @returns rows by table. */
export async function copyRows(
  source: TransferSource,
  target: Database,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  await target.transaction('background', async (tx) => {
    await tx.run('SET LOCAL idle_in_transaction_session_timeout = 0');
    await refuseFull(tx);
    for (const table of transferTables) counts.set(table.name, await copyTable(source, tx, table));
    await tx.run('UPDATE log_counter SET last_commit = $1', [source.lastCommit]);
    await tx.run('UPDATE cluster SET cluster_id = $1, secret = $2', [
      source.clusterId,
      secretOf(source.database),
    ]);
  });
  await ensureFlushRanges(target);
  return counts;
}

/** What the migrations of an empty store put there doesn't count. */
async function refuseFull(tx: Transaction): Promise<void> {
  for (const { name, seeded } of transferTables) {
    if (seeded) continue;
    const row = await tx.row<{ there: boolean }>(`SELECT EXISTS (SELECT FROM ${name}) AS there`);
    if (row!.there) {
      throw new FloeError(
        'conflict',
        `the target database is in use, it has rows in ${name}: name an empty one`,
      );
    }
  }
}

function secretOf(database: SqliteDatabase): Uint8Array | null {
  const row = database.prepare('SELECT secret FROM cluster_secret').get();
  return (row?.['secret'] ?? null) as Uint8Array | null;
}

async function copyTable(
  source: TransferSource,
  tx: Transaction,
  table: TransferTable,
): Promise<number> {
  if (table.seeded) await tx.run(`DELETE FROM ${table.name}`);
  let count = 0;
  let rows: (readonly SqlValue[])[] = [];
  const send = async () => {
    if (rows.length > 0) await tx.run(insertOf(table), columnsOf(table, rows));
    count += rows.length;
    rows = [];
  };
  for (const row of valuesOf(source, table)) if (rows.push(row) === ROWS_AT_ONCE) await send();
  await send();
  if (table.identity !== undefined) await tx.run(renumbered(table), [lastIdOf(source, table)]);
  return count;
}

/** The rows as PostgreSQL will have them. */
function* valuesOf(
  { database, moved }: TransferSource,
  { name, select, columns }: TransferTable,
): Generator<readonly SqlValue[]> {
  const locations = WITH_LOCATIONS.has(name);
  for (const row of database.prepare(select).iterate()) {
    const values = columns.map(({ of }) => of(row as SourceRow));
    yield locations
      ? values.map((value) => (typeof value === 'string' ? moved(value) : value))
      : values;
  }
}

function insertOf({ name, columns }: TransferTable): string {
  const names = columns.map((column) => column.name).join(', ');
  const read = columns.map((column) =>
    column.type === 'int8[]' ? `${column.name}::int8[]` : column.name,
  );
  const lists = columns.map(({ type }, n) => `$${n + 1}::${listOf(type)}`);
  return `INSERT INTO ${name} (${names}) OVERRIDING SYSTEM VALUE
    SELECT ${read.join(', ')} FROM unnest(${lists.join(', ')}) AS r (${names})`;
}

/** An array of arrays must be of one length each: lists go as text. */
function listOf(type: TransferTable['columns'][number]['type']): string {
  return type === 'client' || type === 'int8[]' ? 'text[]' : `${type}[]`;
}

function columnsOf({ columns }: TransferTable, rows: readonly (readonly SqlValue[])[]): SqlValue[] {
  return columns.map(({ type }, n) =>
    rows.map((row) => {
      const value = row[n]!;
      return type === 'int8[]' ? `{${(value as readonly number[]).join()}}` : value;
    }),
  ) as SqlValue[];
}

/** Ids go on behind the last that was ever given: those of what was deleted aren't used again. */
function renumbered({ name, identity }: TransferTable): string {
  return `SELECT setval(pg_get_serial_sequence('${name}', '${identity}'), $1::int8)`;
}

function lastIdOf({ database }: TransferSource, { name, identity }: TransferTable): number {
  const kept = database.prepare('SELECT seq FROM sqlite_sequence WHERE name = ?').get(name);
  const last = database.prepare(`SELECT max(${identity}) AS last FROM ${name}`).get();
  return Math.max(Number(kept?.['seq'] ?? 0), Number(last?.['last'] ?? 0), 1);
}

/** How a table compares. */
export interface ComparedTable {
  readonly table: string;
  readonly sourceRows: number;
  readonly targetRows: number;
  readonly equal: boolean;
}

/** Rows read at once from PostgreSQL. */
const FETCHED_ROWS = 5_000;

/** Reads every row of both stores; equal means the same rows in any order, byte by byte. */
export async function compareRows(
  source: TransferSource,
  target: Database,
): Promise<readonly ComparedTable[]> {
  const compared: ComparedTable[] = [];
  await target.session(async (client) => {
    // Between two of its statements the other store is read; the session ends with the work.
    await client.query('SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0');
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    for (const table of transferTables) {
      const expected = new Digest();
      for (const row of valuesOf(source, table)) expected.add(row);
      const names = table.columns.map(({ name }) => name);
      await client.query(
        `DECLARE compared CURSOR FOR SELECT ${names.join(', ')} FROM ${table.name}`,
      );
      const found = new Digest();
      for (;;) {
        const { rows } = await client.query(`FETCH ${FETCHED_ROWS} FROM compared`);
        for (const row of rows) found.add(names.map((name) => row[name] as SqlValue));
        if (rows.length < FETCHED_ROWS) break;
      }
      await client.query('CLOSE compared');
      compared.push({
        table: table.name,
        sourceRows: expected.count,
        targetRows: found.count,
        equal: expected.equals(found),
      });
    }
    await client.query('COMMIT');
  });
  return compared;
}

/** Of rows in any order: the sum of their hashes. */
class Digest {
  count = 0;
  #sum = 0n;

  add(row: readonly SqlValue[]): void {
    const text = JSON.stringify(row.map(comparable));
    const hash = createHash('sha256').update(text).digest();
    this.#sum = BigInt.asUintN(
      128,
      this.#sum + hash.readBigUInt64LE(0) + (hash.readBigUInt64LE(8) << 64n),
    );
    this.count += 1;
  }

  equals(other: Digest): boolean {
    return this.count === other.count && this.#sum === other.#sum;
  }
}

const comparable = (value: SqlValue): unknown =>
  value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value;
