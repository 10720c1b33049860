// Builds the embedded metadata store: one SQLite database, every domain on it.
import type { Metadata } from '../metadata.ts';
import { Database } from './database.ts';
import { groupsMigrations, SqliteGroups } from './groups.ts';
import { registryMigrations, SqliteRegistry } from './registry.ts';
import { SqliteTables, tablesMigrations } from './tables.ts';
import { SqliteTopics, topicsMigrations } from './topics.ts';

export interface SqliteMetadata extends Metadata {
  readonly database: Database;
  close(): void;
}

/** `:memory:` or the database file's path. */
export function openSqliteMetadata(path: string): SqliteMetadata {
  const database = new Database(path, [
    ...topicsMigrations,
    ...groupsMigrations,
    ...registryMigrations,
    ...tablesMigrations,
  ]);
  const tables = new SqliteTables(database);
  return {
    database,
    topics: new SqliteTopics(database, [tables.hooks()]),
    groups: new SqliteGroups(database),
    registry: new SqliteRegistry(database),
    tables,
    close: () => database.close(),
  };
}
