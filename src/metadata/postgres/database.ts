// PostgreSQL as all domains use it: pools of connections by purpose, so that what is slow never holds up what is
// urgent; transactions at READ COMMITTED that are tried again when the server breaks them off; statements prepared once
// per connection under a name. Statements that are sent without awaiting the one before share a round trip (pipelining).
// Not for: what a commit of unknown outcome did (whoever committed asks by its id), migrations (migrations.ts).
import pg from 'pg';
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Prng } from '../../base/prng.ts';
import { backoffMs } from '../../base/retry.ts';
import { isBrokenOff, isConnectionLost, isStale, postgresError, sqlState } from './errors.ts';
import { Lineage } from './lineage.ts';
import type { PostgresSettings } from './settings.ts';
import { parserOf } from './types.ts';

/** What connections are kept apart for; each purpose has its own limit (settings.ts). */
export const purposes = ['commit', 'write', 'read', 'follow', 'lease', 'background'] as const;
export type Purpose = (typeof purposes)[number];

export interface DatabaseOptions {
  /** `postgres://user:password@host:port/database?sslmode=…`. */
  readonly url: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly settings: PostgresSettings;
  /** Shown by pg_stat_activity. */
  readonly applicationName: string;
}

/** A value of a parameter; arrays become PostgreSQL arrays, Uint8Arrays bytea. */
export type SqlValue =
  | string
  | number
  | boolean
  | null
  | Uint8Array
  | readonly (string | number | boolean | null | Uint8Array)[];

/** Whatever statements run on. */
export interface Sql {
  /** All rows. The text must be constant: it is prepared once per connection and kept. */
  rows<Row>(text: string, values?: readonly SqlValue[]): Promise<Row[]>;
  /** The first row. */
  row<Row>(text: string, values?: readonly SqlValue[]): Promise<Row | undefined>;
  /** @returns how many rows were written. */
  run(text: string, values?: readonly SqlValue[]): Promise<number>;
}

/** Statements within a transaction. Those sent without awaiting each other run in the order sent. */
export interface Transaction extends Sql {
  /** Marks it as a transaction in types. */
  readonly inTransaction: true;
}

/** Statements of the program are constant, so there are only so many. */
const MAX_STATEMENTS = 2_000;
/** A statement's answer is awaited so much longer than the server may work on it, before the connection counts as lost. */
const ANSWER_SLACK_MS = 5_000;
const FIRST_RETRY_MS = 2;
const MAX_RETRY_MS = 250;
/** In one message: a commit is never ended by statement_timeout, see {@link commit}. */
const COMMIT = 'SET LOCAL statement_timeout = 0; COMMIT';

export class Database {
  readonly options: DatabaseOptions;
  /** Whether it is still the database that this process knows. */
  readonly lineage = new Lineage();
  readonly #pools: ReadonlyMap<Purpose, pg.Pool>;
  readonly #names = new Map<string, string>();
  #closed = false;

  constructor(options: DatabaseOptions) {
    this.options = options;
    this.#pools = new Map(
      purposes.map((purpose) => [purpose, openPool(options, purpose, this.lineage)]),
    );
  }

  /**
   * Runs `work` in one transaction at READ COMMITTED, again from the start when the server broke it off: what it
   * changes in memory must wait until this has returned.
   * @throws FloeError what `work` throws, rolled back; `unavailable`: surely not committed; `timeout`: nobody knows;
   * `exhausted`: the server's disk is full.
   */
  async transaction<T>(purpose: Purpose, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#repeated(purpose, 'BEGIN ISOLATION LEVEL READ COMMITTED', async (tx) => {
      const result = await work(tx);
      return async () => result;
    });
  }

  /**
   * As {@link transaction}, for what others wait behind: `work` returns what sends its last statements, all before it
   * awaits any. COMMIT goes out right behind them, so that their locks are held for no round trip. Where nothing may be
   * committed, one of them must fail in the server.
   */
  async pipelined<T>(
    purpose: Purpose,
    work: (tx: Transaction) => Promise<() => Promise<T>>,
  ): Promise<T> {
    return this.#repeated(purpose, 'BEGIN ISOLATION LEVEL READ COMMITTED', work);
  }

  /** Reads in `work` all see one moment. Read only. */
  async snapshot<T>(purpose: Purpose, work: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#repeated(
      purpose,
      'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
      async (tx) => {
        const result = await work(tx);
        return async () => result;
      },
    );
  }

  /**
   * One statement for itself, for reads and for writes that do no harm when done twice: after a lost connection it is
   * `unavailable` though it may have happened.
   */
  on(purpose: Purpose): Sql {
    return this.#sql((statement) => this.#single(purpose, statement));
  }

  /** A connection for itself, for what can't run in a transaction (migrations). Ends with `work`. */
  async session<T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    const client = await this.#connect('background');
    try {
      return await work(client);
    } catch (caught) {
      throw postgresError(caught, 'metadata in PostgreSQL');
    } finally {
      // With its session go its locks and settings.
      client.release(true);
    }
  }

  /** Connections in use and waited for, by purpose: for metrics. */
  connections(): ReadonlyMap<Purpose, { readonly open: number; readonly waiting: number }> {
    return new Map(
      [...this.#pools].map(([purpose, pool]) => [
        purpose,
        { open: pool.totalCount, waiting: pool.waitingCount },
      ]),
    );
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await Promise.all([...this.#pools.values()].map((pool) => pool.end()));
  }

  async #repeated<T>(
    purpose: Purpose,
    begin: string,
    work: (tx: Transaction) => Promise<() => Promise<T>>,
  ): Promise<T> {
    const { clock, prng, settings } = this.options;
    const pauses = { prng, firstDelayMs: FIRST_RETRY_MS, maxDelayMs: MAX_RETRY_MS };
    for (let n = 1; ; n += 1) {
      try {
        return await this.#once(purpose, begin, work);
      } catch (caught) {
        const again = isBrokenOff(caught) && n < settings['metadata.postgres.attempts'];
        if (!again) throw postgresError(caught, `metadata in PostgreSQL (${purpose})`);
      }
      await clock.sleep(backoffMs(pauses, n));
    }
  }

  async #once<T>(
    purpose: Purpose,
    begin: string,
    work: (tx: Transaction) => Promise<() => Promise<T>>,
  ): Promise<T> {
    const client = await this.#connect(purpose);
    try {
      // Not awaited: it shares the round trip of the first statement.
      const begun = client.query(begin);
      begun.catch(() => {});
      const tx = { inTransaction: true, ...this.#sql(explained(client)) } as const;
      const last = await work(tx);
      await begun;
      const result = await this.#committed(client, last());
      client.release();
      return result;
    } catch (caught) {
      client.release(!(await rolledBack(client, caught)) || isStale(caught));
      throw caught;
    }
  }

  /** COMMIT behind statements that are under way. One that the server refused has ended the transaction before it. */
  async #committed<T>(client: pg.ClientBase, last: Promise<T>): Promise<T> {
    const committed = this.#commit(client);
    committed.catch(() => {});
    let result: T;
    try {
      result = await last;
    } catch (caught) {
      if (isConnectionLost(caught)) throw postgresError(caught, 'metadata in PostgreSQL', 'commit');
      throw caught;
    }
    await committed;
    return result;
  }

  /**
   * Without statement_timeout: a COMMIT that is cancelled while it waits for a synchronous standby succeeds with a
   * warning although a failover may lose it. Such a warning, whoever caused it, is an unknown outcome.
   */
  async #commit(client: pg.ClientBase): Promise<void> {
    let warning: string | undefined;
    const onNotice = (notice: { code?: string | undefined; message?: string | undefined }) => {
      if (notice.code?.startsWith('01') === true) warning = notice.message;
    };
    client.on('notice', onNotice);
    try {
      const results = (await client.query({
        text: COMMIT,
        query_timeout: this.options.settings['metadata.postgres.commit.timeout.ms'],
      } as pg.QueryConfig)) as unknown as pg.QueryResult[];
      assert(results.at(-1)?.command === 'COMMIT', 'a failed transaction is not committed');
    } catch (caught) {
      if (isBrokenOff(caught)) throw caught;
      throw postgresError(caught, 'metadata in PostgreSQL', 'commit');
    } finally {
      client.off('notice', onNotice);
    }
    if (warning !== undefined) throw new FloeError('timeout', `COMMIT: ${warning}`);
  }

  async #single(purpose: Purpose, statement: pg.QueryConfig): Promise<pg.QueryResult> {
    const { attempts, pauses } = this.#retries();
    for (let n = 1; ; n += 1) {
      const client = await this.#connect(purpose);
      try {
        const result = await client.query(statement);
        client.release();
        return result;
      } catch (caught) {
        client.release(isConnectionLost(caught) || isStale(caught));
        if (!isBrokenOff(caught) || n >= attempts) {
          throw postgresError(caught, `metadata in PostgreSQL (${purpose})`);
        }
      }
      await this.options.clock.sleep(backoffMs(pauses, n));
    }
  }

  #retries() {
    const { prng, settings } = this.options;
    return {
      attempts: settings['metadata.postgres.attempts'],
      pauses: { prng, firstDelayMs: FIRST_RETRY_MS, maxDelayMs: MAX_RETRY_MS },
    };
  }

  async #connect(purpose: Purpose): Promise<pg.PoolClient> {
    if (this.#closed) throw new FloeError('cancelled', 'the metadata store is closed');
    try {
      return await this.#pools.get(purpose)!.connect();
    } catch (caught) {
      throw postgresError(caught, `connecting to PostgreSQL (${purpose})`);
    }
  }

  #sql(send: (statement: pg.QueryConfig) => Promise<pg.QueryResult>): Sql {
    const query = (text: string, values: readonly SqlValue[] = []) =>
      send({ name: this.#name(text), text, values: values as unknown[] });
    return {
      rows: async <Row>(text: string, values?: readonly SqlValue[]) =>
        (await query(text, values)).rows as Row[],
      row: async <Row>(text: string, values?: readonly SqlValue[]) =>
        (await query(text, values)).rows[0] as Row | undefined,
      run: async (text, values) => (await query(text, values)).rowCount ?? 0,
    };
  }

  #name(text: string): string {
    let name = this.#names.get(text);
    if (name === undefined) {
      assert(this.#names.size < MAX_STATEMENTS, 'statements are constant texts');
      name = `floe_${this.#names.size + 1}`;
      this.#names.set(text, name);
    }
    return name;
  }
}

/**
 * Sends statements; those that fail only because one before them has (in_failed_sql_transaction) fail as that one did:
 * of several that are under way, whoever waits may hear of a later one first.
 */
function explained(client: pg.ClientBase) {
  let first: unknown;
  return (statement: pg.QueryConfig): Promise<pg.QueryResult> =>
    client.query(statement).catch((caught: unknown) => {
      first ??= caught;
      throw sqlState(caught) === '25P02' ? first : caught;
    });
}

/** @returns false when the connection is of no use any more. */
async function rolledBack(client: pg.ClientBase, caught: unknown): Promise<boolean> {
  if (isConnectionLost(caught)) return false;
  // Of unknown outcome: the connection is lost, or slow beyond use.
  if (caught instanceof FloeError && caught.code === 'timeout') return false;
  try {
    await client.query('ROLLBACK');
    return true;
  } catch {
    return false;
  }
}

function openPool(options: DatabaseOptions, purpose: Purpose, lineage: Lineage): pg.Pool {
  const { settings } = options;
  const statementMs =
    settings[
      purpose === 'background'
        ? 'metadata.postgres.background.statement.timeout.ms'
        : 'metadata.postgres.statement.timeout.ms'
    ];
  const config: PoolConfig = {
    connectionString: options.url,
    application_name: `${options.applicationName} ${purpose}`,
    max: settings[`metadata.postgres.${purpose}.connections`],
    connectionTimeoutMillis: settings['metadata.postgres.connect.timeout.ms'],
    idleTimeoutMillis: settings['metadata.postgres.idle.connection.ms'],
    statement_timeout: statementMs,
    lock_timeout: settings['metadata.postgres.lock.timeout.ms'],
    idle_in_transaction_session_timeout:
      settings['metadata.postgres.idle.in.transaction.timeout.ms'],
    query_timeout: statementMs + ANSWER_SLACK_MS,
    // Compiling plans costs more than our short statements ever give back.
    options: '-c jit=off',
    keepAlive: true,
    allowExitOnIdle: true,
    pipeline: true,
    types: { getTypeParser: parserOf },
    verify: (client, done) => {
      refuseStranger(client, lineage).then(() => done(), done);
    },
  };
  const pool = new pg.Pool(config);
  // Lost connections show where they are used; an unused one is simply replaced.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

interface PoolConfig extends pg.PoolConfig {
  readonly pipeline: boolean;
  /** Called for each new connection, before its first use. */
  readonly verify: (client: pg.ClientBase, done: (error?: Error) => void) => void;
}

async function refuseStranger(client: pg.ClientBase, lineage: Lineage): Promise<void> {
  await refuseStandby(client);
  await lineage.check(async (text, values) => (await client.query(text, [...values])).rows);
}

/** After a failover the old name may lead to a standby for a while: what is read there is of yesterday. */
async function refuseStandby(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query('SELECT pg_is_in_recovery() AS standby');
  if (rows[0].standby === true)
    throw new FloeError('unavailable', 'this PostgreSQL is a standby: the primary is awaited');
}
