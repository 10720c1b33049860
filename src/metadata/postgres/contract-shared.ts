// PostgreSQL under contract suites that look at no memory of the store: one database and its connections for a whole
// file, emptied between tests, which is many times quicker than a database for each. Not for production code.
import type { StoreUnderTest } from '../contract/store.ts';
import { noteRecovered } from '../transfer/index.ts';
import { openBroker } from './contract-store.ts';
import { type PostgresMetadata, postgresMigrations } from './index.ts';
import type { TestServer } from './testing.ts';

/** The tables as migrations leave them are kept in a schema of that name. */
const KEPT = 'kept';

export class SharedStore {
  readonly #url: string;
  readonly #metadata: PostgresMetadata;
  readonly #wipe: string;

  private constructor(url: string, metadata: PostgresMetadata, wipe: string) {
    this.#url = url;
    this.#metadata = metadata;
    this.#wipe = wipe;
  }

  static async on(server: TestServer): Promise<SharedStore> {
    const url = await server.migrated(postgresMigrations);
    const metadata = await openBroker(url);
    return new SharedStore(url, metadata, await keepRows(metadata));
  }

  /** For tests of several brokers at once: on the same database, closed by the caller. */
  broker(): Promise<PostgresMetadata> {
    return openBroker(this.#url);
  }

  /** As empty as a fresh one. */
  async open(): Promise<StoreUnderTest> {
    const { database } = this.#metadata;
    await database.session((client) => client.query(this.#wipe));
    database.lineage.forget();
    const reopened: PostgresMetadata[] = [];
    const metadata = () => reopened.at(-1) ?? this.#metadata;
    return {
      get metadata() {
        return metadata();
      },
      at: async () => {},
      reopen: async () => {
        reopened.push(await this.broker());
      },
      restored: () => noteRecovered(metadata().database),
      close: async () => {
        for (const one of reopened) await one.close();
      },
    };
  }

  close(): Promise<void> {
    return this.#metadata.close();
  }
}

/** @returns what makes the tables as they are now. */
async function keepRows({ database }: PostgresMetadata): Promise<string> {
  return database.session(async (client) => {
    const { rows } = await client.query(
      `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace
       AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'migrations'`,
    );
    const names = rows.map((row) => row.name as string);
    await client.query(`CREATE SCHEMA ${KEPT}`);
    const wipe: string[] = ['SET session_replication_role = replica'];
    for (const name of names) {
      await client.query(`CREATE TABLE ${KEPT}.${name} AS TABLE public.${name}`);
      const kept = await client.query(`SELECT 1 FROM ${KEPT}.${name} LIMIT 1`);
      wipe.push(`DELETE FROM public.${name}`);
      if (kept.rows.length > 0)
        wipe.push(`INSERT INTO public.${name} SELECT * FROM ${KEPT}.${name}`);
    }
    return wipe.join('; ');
  });
}
