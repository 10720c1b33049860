// One SQLite connection: opened durable, statements prepared once, transactions that nest into one.
// Everything is synchronous, so it lives in a thread of its own in production (metadata/remote.ts).
import {
  DatabaseSync,
  type SQLInputValue,
  type SQLOutputValue,
  type StatementResultingChanges,
  type StatementSync,
} from 'node:sqlite';
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import { clientText, storedText } from '../text.ts';

export interface Migration {
  /** Stable name, never reused; recorded when applied. */
  readonly name: string;
  readonly sql: string;
}

/** A row by the names of its columns. */
export type Row = Record<string, SQLOutputValue>;

/** A prepared statement. Every text goes in and comes out whole, U+0000 included (metadata/text.ts). */
export class Statement {
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  run(...values: readonly SQLInputValue[]): StatementResultingChanges {
    return this.#statement.run(...storable(values));
  }

  get(...values: readonly SQLInputValue[]): Row | undefined {
    const row = this.#statement.get(...storable(values));
    return row === undefined ? undefined : readable(row);
  }

  all(...values: readonly SQLInputValue[]): Row[] {
    const rows = this.#statement.all(...storable(values));
    for (const row of rows) readable(row);
    return rows;
  }

  *iterate(...values: readonly SQLInputValue[]): Generator<Row, void> {
    for (const row of this.#statement.iterate(...storable(values))) yield readable(row);
  }
}

function storable(values: readonly SQLInputValue[]): readonly SQLInputValue[] {
  for (const value of values) {
    if (typeof value === 'string' && storedText(value) !== value)
      return values.map((each) => (typeof each === 'string' ? storedText(each) : each));
  }
  return values;
}

/** In place. */
function readable(row: Row): Row {
  for (const name in row) {
    const value = row[name];
    if (typeof value === 'string') row[name] = clientText(value);
  }
  return row;
}

export class Database {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, Statement>();
  #depth = 0;
  #afterCommit: (() => void)[] = [];

  /** `:memory:` or a file's path. Applies `migrations` in order, each once. */
  constructor(path: string, migrations: readonly Migration[]) {
    this.#db = new DatabaseSync(path);
    // WAL + FULL: a commit is on disk when it returns (NORMAL loses acked commits on power loss).
    // Checkpoints are explicit (`checkpoint`), so that no commit pays for one by surprise.
    this.#db.exec(`
      PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;
      PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;
      CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;`);
    for (const { name, sql } of migrations) this.#migrate(name, sql);
  }

  #migrate(name: string, sql: string): void {
    if (this.prepare('SELECT 1 FROM migrations WHERE name = ?').get(name) !== undefined) return;
    this.transaction(() => {
      this.#db.exec(sql);
      this.prepare('INSERT INTO migrations (name) VALUES (?)').run(name);
    });
  }

  /** A prepared statement, cached by its text. Integers come back as numbers; ours stay below 2^53. */
  prepare(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = new Statement(this.#db.prepare(sql));
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /**
   * As {@link transaction}, without waiting for the disk: on it with the next one that waits. For what a power failure
   * may undo as if it had never been called, since order is kept and a killed process loses nothing.
   */
  lazyTransaction<T>(work: () => T): T {
    if (this.#depth > 0) return this.#nested(work);
    this.#db.exec('PRAGMA synchronous = NORMAL');
    try {
      return this.transaction(work);
    } finally {
      this.#db.exec('PRAGMA synchronous = FULL');
    }
  }

  /** Runs `work` in one transaction (IMMEDIATE); inside another it simply joins. Throws what `work` throws, rolled back. */
  transaction<T>(work: () => T): T {
    if (this.#depth > 0) return this.#nested(work);
    this.#db.exec('BEGIN IMMEDIATE');
    this.#afterCommit = [];
    let result: T;
    try {
      result = this.#nested(work);
      this.#db.exec('COMMIT');
    } catch (caught) {
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw caught;
    }
    const actions = this.#afterCommit;
    this.#afterCommit = [];
    for (const action of actions) action();
    return result;
  }

  /** Runs `action` once the present transaction has committed, never if it rolls back: for state in memory. */
  afterCommit(action: () => void): void {
    assert(this.#depth > 0, 'afterCommit is called within a transaction');
    this.#afterCommit.push(action);
  }

  #nested<T>(work: () => T): T {
    this.#depth += 1;
    try {
      const result = work();
      assert(!(result instanceof Promise), 'a transaction is synchronous');
      return result;
    } finally {
      this.#depth -= 1;
    }
  }

  /** Moves the WAL into the main file as far as readers allow. Returns the frames left in the WAL. */
  checkpoint(): number {
    const row = this.#db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get() as {
      log: number;
      checkpointed: number;
    };
    return row.log - row.checkpointed;
  }

  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }
}

/** Translates SQLite's own failures; FloeErrors pass through. */
export function sqliteError(caught: unknown, doing: string): FloeError {
  const text = caught instanceof Error ? caught.message : String(caught);
  if (/database or disk is full/.test(text))
    return new FloeError('exhausted', `${doing}: the disk is full`, { cause: caught });
  return FloeError.from(caught, doing);
}
