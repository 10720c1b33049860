// DuckDB, opened for reading only: no file but the tables' own, no extension, no setting can be changed, bounded memory,
// threads and spill space. Queries get a slot each: a connection with a database of its own for its views.
// Not for: what a query may say (statement.ts) or where its rows come from (view.ts).
import { availableParallelism } from 'node:os';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import type { Clock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import type { Values } from '../base/settings.ts';
import type { querySettings } from './settings.ts';
import { identifier, literal } from './sql-text.ts';

export interface EngineOptions {
  readonly settings: Values<typeof querySettings>;
  readonly clock: Clock;
  /** Folders whose files queries may read. */
  readonly folders: readonly string[];
  /** Where intermediate results are spilled. */
  readonly tempFolder: string;
}

/** A connection that one query has to itself. */
export interface Slot {
  readonly connection: DuckDBConnection;
  /** Name of the slot's own database. */
  readonly database: string;
  /** What each view was made from, by its qualified name: an equal one is not made again. */
  readonly views: Map<string, string>;
  /** Schemas that exist. */
  readonly schemas: Set<string>;
}

/** Views kept in a slot before it is emptied. */
const MAX_VIEWS = 256;

export class Engine {
  readonly #instance: DuckDBInstance;
  readonly #options: EngineOptions;
  readonly #slots: Slot[];
  readonly #free: Slot[];
  readonly #waiting: ((slot: Slot) => void)[] = [];

  private constructor(instance: DuckDBInstance, options: EngineOptions, slots: Slot[]) {
    this.#instance = instance;
    this.#options = options;
    this.#slots = slots;
    this.#free = [...slots];
  }

  static async open(options: EngineOptions): Promise<Engine> {
    const { settings, folders, tempFolder } = options;
    const threads = settings['sql.threads'] || availableParallelism();
    const instance = await DuckDBInstance.create(':memory:', {
      threads: String(threads),
      memory_limit: `${Math.round(settings['sql.memory.bytes'] / 1024)}KiB`,
      max_temp_directory_size: `${Math.round(settings['sql.temp.bytes'] / 1024)}KiB`,
      temp_directory: tempFolder,
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
    });
    const slots: Slot[] = [];
    for (let n = 0; n < settings['sql.max.concurrent']; n += 1) {
      const connection = await instance.connect();
      const database = `floe${n}`;
      await connection.run(`ATTACH ':memory:' AS ${database}; USE ${database}`);
      slots.push({ connection, database, views: new Map(), schemas: new Set(['main']) });
    }
    const [{ connection }] = slots as [Slot];
    // Timestamps with zone are moments: they are shown, and literals without zone are read, in UTC.
    await connection.run(`SET GLOBAL TimeZone = 'UTC'`);
    await connection.run(`SET allowed_directories = [${folders.map(literal).join(', ')}]`);
    await connection.run('SET enable_external_access = false');
    await connection.run('SET lock_configuration = true');
    return new Engine(instance, options, slots);
  }

  /** Waits for a slot; a signal that fires meanwhile leaves the queue. @throws FloeError `unavailable` when too many wait. */
  async acquire(signal: AbortSignal): Promise<Slot> {
    signal.throwIfAborted();
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const limit = this.#options.settings['sql.max.waiting'];
    if (this.#waiting.length >= limit) {
      throw new FloeError(
        'unavailable',
        `${limit} queries are waiting already (sql.max.waiting): try again later`,
      );
    }
    return new Promise((resolve, reject) => {
      const take = (slot: Slot) => {
        signal.removeEventListener('abort', leave);
        resolve(slot);
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(take);
    });
  }

  release(slot: Slot): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free.push(slot);
    else next(slot);
  }

  close(): void {
    for (const { connection } of this.#slots) connection.disconnectSync();
    this.#instance.closeSync();
  }
}

/** Makes `schema.name` of the slot a view of `query`, unless it is one already. */
export async function defineView(
  slot: Slot,
  name: { readonly schema: string; readonly table: string },
  query: string,
): Promise<void> {
  const schema = name.schema === '' ? 'main' : name.schema;
  const qualified = [slot.database, schema, name.table].map(identifier).join('.');
  if (slot.views.get(qualified) === query) return;
  if (slot.views.size >= MAX_VIEWS) await dropViews(slot);
  if (!slot.schemas.has(schema)) {
    await slot.connection.run(
      `CREATE SCHEMA IF NOT EXISTS ${identifier(slot.database)}.${identifier(schema)}`,
    );
    slot.schemas.add(schema);
  }
  slot.views.delete(qualified);
  await slot.connection.run(`CREATE OR REPLACE VIEW ${qualified} AS ${query}`);
  slot.views.set(qualified, query);
}

async function dropViews(slot: Slot): Promise<void> {
  for (const qualified of slot.views.keys())
    await slot.connection.run(`DROP VIEW IF EXISTS ${qualified}`);
  slot.views.clear();
}
