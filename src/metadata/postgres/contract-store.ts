// PostgreSQL under the contract suites: a database per test, its clock set by the test, and a second broker's store for
// what must hold across processes. Not for production code.
import { systemClock } from '../../base/clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import type { StoreUnderTest } from '../contract/store.ts';
import { noteRecovered } from '../transfer/index.ts';
import { openPostgresMetadata, type PostgresMetadata, postgresMigrations } from './index.ts';
import type { Migration } from './migrations.ts';
import { postgresSettings } from './settings.ts';
import type { TestServer } from './testing.ts';

/** The store's clock becomes a number that tests set. */
const CLOCK: Migration = {
  name: 'test-clock',
  sql: `CREATE SEQUENCE test_clock;
    SELECT setval('test_clock', 1000);
    CREATE OR REPLACE FUNCTION store_ms() RETURNS int8 LANGUAGE sql VOLATILE AS
      'SELECT last_value FROM test_clock'`,
};

/** The metadata of one broker on `url`, with a clock of its own unless the database was made by {@link openStore}. */
export function openBroker(
  url: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<PostgresMetadata> {
  return openPostgresMetadata({
    url,
    clock: systemClock,
    prng: seededPrng(1),
    settings: resolveSettings(postgresSettings, settings),
    applicationName: 'floe test',
    unsafeServer: true,
  });
}

/** A fresh database with a clock that tests set. @returns its URL. */
export function clockedDatabase(server: TestServer): Promise<string> {
  return server.migrated([...postgresMigrations, CLOCK]);
}

export async function openStore(server: TestServer): Promise<StoreUnderTest> {
  const url = await clockedDatabase(server);
  let metadata = await openBroker(url);
  return {
    get metadata() {
      return metadata;
    },
    async at(nowMs) {
      await metadata.database.on('read').run(`SELECT setval('test_clock', $1)`, [nowMs]);
    },
    async reopen() {
      await metadata.close();
      metadata = await openBroker(url);
    },
    restored: () => noteRecovered(metadata.database),
    close: () => metadata.close(),
  };
}
