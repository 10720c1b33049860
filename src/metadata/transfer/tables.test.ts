// The list of what moves is held against the schemas: a table or column that a migration adds is moved, or named here with
// the reason why it isn't.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresMigrations } from '../postgres/index.ts';
import { startPostgres, type TestServer } from '../postgres/testing.ts';
import { openDatabase } from '../sqlite/index.ts';
import { transferTables } from './tables.ts';

/** What lives with processes, or is made anew. */
const NOT_MOVED: readonly string[] = [
  'migrations',
  // Objects are sealed before a move: their indexes are entries.
  'flushes',
  'log_counter',
  // The cluster's id is kept by name, its secret is made anew.
  'cluster',
  'cluster_secret',
  // Of a time before leases.
  'group_lease',
  'nodes',
  'leases',
  'versions',
  'version_traces',
  // Triggers make it of log_cleanings.
  'log_cleaning_versions',
  // What maintainers are at work on at the moment.
  'log_claims',
  // Words between the nodes of a table.
  'table_lane_asks',
  'table_lane_heads',
  'table_lane_orders',
  'table_lane_positions',
];

let server: TestServer;
let client: pg.Client;
beforeAll(async () => {
  server = await startPostgres();
  client = new pg.Client({ connectionString: await server.migrated(postgresMigrations) });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await server.stop();
});

const moved = new Map(transferTables.map((table) => [table.name, table]));

test('every table of PostgreSQL is moved with all of its columns', async () => {
  const { rows } = await client.query<{ table: string; columns: string[] }>(
    `SELECT table_name AS table, array_agg(column_name::text ORDER BY column_name) AS columns
     FROM information_schema.columns WHERE table_schema = 'public' AND table_name !~ '^flushes_[0-9]+$'
       AND column_name <> 'only_row'
     GROUP BY table_name ORDER BY table_name`,
  );
  const found = rows.filter(({ table }) => !NOT_MOVED.includes(table));
  expect(found.map(({ table }) => table)).toEqual([...moved.keys()].toSorted());
  for (const { table, columns } of found)
    expect(
      moved
        .get(table)!
        .columns.map(({ name }) => name)
        .toSorted(),
      table,
    ).toEqual(columns);
});

test('every table of SQLite is moved', () => {
  const database = openDatabase(':memory:');
  const rows = database
    .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
    .all();
  const unmoved = rows
    .map((row) => row['name'] as string)
    .filter((name) => !NOT_MOVED.includes(name))
    .filter(
      (name) => !transferTables.some(({ select }) => new RegExp(`\\b${name}\\b`).test(select)),
    );
  database.close();
  expect(unmoved).toEqual([]);
});
