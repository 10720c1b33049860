// The metadata store as checks ask it: statements that run on SQLite and PostgreSQL alike, reads only, without migrations,
// since brokers of another version may be running. Not for: what the rows mean (rows.ts).
import { systemClock } from '../../base/clock.ts';
import type { CatalogMetadata } from '../../metadata/catalog.ts';
import type { ClusterMetadata } from '../../metadata/cluster.ts';
import { PostgresCatalog } from '../../metadata/postgres/catalog.ts';
import { PostgresCluster } from '../../metadata/postgres/cluster.ts';
import type { Database, Sql } from '../../metadata/postgres/database.ts';
import type { PostgresSettings } from '../../metadata/postgres/settings.ts';
import { SqliteCatalog } from '../../metadata/sqlite/catalog.ts';
import { SqliteCluster } from '../../metadata/sqlite/cluster.ts';
import type { Database as SqliteDatabase } from '../../metadata/sqlite/database.ts';
import { openPostgres, openSqlite } from '../stores.ts';

type Values = readonly (string | number)[];

/** Parameters are `$1`, `$2`, …; texts are constant, since servers keep them prepared. */
export type Ask = <Row extends object>(sql: string, values?: Values) => Promise<readonly Row[]>;

export interface AskedMetadata {
  /** Each statement sees the rows of its own moment. */
  readonly ask: Ask;
  /** All that `work` asks is of one moment. One at a time; nothing else may be asked meanwhile. */
  snapshot<T>(work: (ask: Ask) => Promise<T>): Promise<T>;
  /** Rows of `log_partitions` say where logs end; on SQLite they lag behind what a running node has in memory. */
  readonly exactEnds: boolean;
  readonly cluster: ClusterMetadata;
  readonly catalog: CatalogMetadata;
  /** By the clock that keys are named by, milliseconds since the epoch. */
  nowMs(): Promise<number>;
  close(): Promise<void>;
}

export interface MetadataPlace {
  readonly dataDir: string;
  /** `postgres://…`; undefined: SQLite in the data directory. */
  readonly metadata: string | undefined;
  readonly settings: PostgresSettings;
  /** As the server shows who asks. */
  readonly applicationName: string;
}

/** @throws FloeError `not-found` when the directory holds no metadata. */
export function openAsked({ metadata, dataDir, ...opening }: MetadataPlace): AskedMetadata {
  if (metadata === undefined) return askSqlite(openSqlite(dataDir));
  return askPostgres(openPostgres(metadata, opening));
}

/** On an open database, which `close` closes. */
export function askSqlite(database: SqliteDatabase): AskedMetadata {
  const ask: Ask = async <Row extends object>(sql: string, values: Values = []) =>
    database.prepare(sql.replaceAll('$', '?')).all(...values) as unknown as Row[];
  return {
    ask,
    async snapshot(work) {
      // Deferred: it takes no lock that a commit would wait for.
      database.prepare('BEGIN').run();
      try {
        return await work(ask);
      } finally {
        database.prepare('COMMIT').run();
      }
    },
    exactEnds: false,
    cluster: new SqliteCluster(database, systemClock),
    catalog: new SqliteCatalog(database),
    nowMs: async () => systemClock.now(),
    close: async () => database.close(),
  };
}

/** As {@link askSqlite}. */
export function askPostgres(database: Database): AskedMetadata {
  const askOn =
    (sql: Sql): Ask =>
    (text, values) =>
      sql.rows(text, values);
  const ask = askOn(database.on('background'));
  return {
    ask,
    snapshot: (work) => database.snapshot('background', (tx) => work(askOn(tx))),
    exactEnds: true,
    cluster: new PostgresCluster(database),
    catalog: new PostgresCatalog(database),
    nowMs: async () => Number((await ask<{ ms: number }>('SELECT store_ms() AS ms'))[0]!.ms),
    close: () => database.close(),
  };
}
