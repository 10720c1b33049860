import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import { assertServer } from './check-server.ts';
import type { Database } from './database.ts';
import { migrate } from './migrations.ts';
import { openTestDatabase, startPostgres, type TestServer } from './testing.ts';

let server: TestServer;
let db: Database;
const migrations = [
  { name: 'things-1', sql: 'CREATE TABLE things (id int8 PRIMARY KEY, bytes bytea)' },
];

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(async () => {
  await db.close();
  await server.stop();
});
beforeEach(async () => {
  await db?.close();
  db = openTestDatabase(await server.migrated(migrations), {
    'metadata.postgres.lock.timeout.ms': '2000',
  });
});

test('values come as ours: numbers of 64 bits, bytes, arrays, JSON as text', async () => {
  const row = await db.on('read').row(
    `SELECT $1::int8 AS whole, $2::bytea AS bytes, $3::int8[] AS list, sum(n) AS total, '{"a":1}'::jsonb AS json,
         $4::text[] AS texts, true AS yes
       FROM unnest(ARRAY[1, 2]::int8[]) AS n`,
    [2 ** 53 - 1, Uint8Array.of(0, 255), [1, 2], ['a,"b', 'NULL']],
  );
  expect(row).toEqual({
    whole: 2 ** 53 - 1,
    bytes: Buffer.from([0, 255]),
    list: [1, 2],
    total: 3,
    json: '{"a": 1}',
    texts: ['a,"b', 'NULL'],
    yes: true,
  });
});

test('connections carry limits and a name', async () => {
  const settings = await db.on('read').row(
    `SELECT current_setting('jit') AS jit, current_setting('statement_timeout') AS statement,
       current_setting('lock_timeout') AS lock, current_setting('application_name') AS name,
       current_setting('idle_in_transaction_session_timeout') AS idle`,
  );
  expect(settings).toEqual({
    jit: 'off',
    statement: '10s',
    lock: '2s',
    name: 'floe test read',
    idle: '10s',
  });
});

test('what work throws rolls back', async () => {
  const failing = db.transaction('write', async (tx) => {
    await tx.run('INSERT INTO things (id) VALUES ($1)', [1]);
    throw new FloeError('conflict', 'no');
  });
  await expect(failing).rejects.toMatchObject({ code: 'conflict' });
  expect(await db.on('read').rows('SELECT id FROM things')).toEqual([]);
});

test('a failure that work swallows is not committed', async () => {
  const swallowed = db.transaction('write', async (tx) => {
    await tx.run('INSERT INTO things (id) VALUES ($1)', [1]);
    await tx.run('INSERT INTO things (id) VALUES ($1)', [1]).catch(() => {});
  });
  await expect(swallowed).rejects.toMatchObject({ code: 'internal' });
  expect(await db.on('read').rows('SELECT id FROM things')).toEqual([]);
});

test('statements sent together run in order, in one transaction', async () => {
  const counts = await db.transaction('write', async (tx) =>
    Promise.all([
      tx.run('INSERT INTO things (id) VALUES ($1)', [1]),
      tx.run('UPDATE things SET id = id + 1'),
      tx.rows('SELECT id FROM things'),
    ]),
  );
  expect(counts).toEqual([1, 1, [{ id: 2 }]]);
});

test('a deadlock is tried again until both are through', async () => {
  await db
    .on('write')
    .run('INSERT INTO things (id, bytes) SELECT n, $1 FROM generate_series(1, 2) n', [
      Uint8Array.of(0),
    ]);
  let attempts = 0;
  let arrived = 0;
  let meet = () => {};
  const met = new Promise<void>((resolve) => {
    meet = resolve;
  });
  const crossing = (first: number, second: number) =>
    db.transaction('write', async (tx) => {
      attempts += 1;
      await tx.run('UPDATE things SET bytes = bytes || bytes WHERE id = $1', [first]);
      arrived += 1;
      if (arrived === 2) meet();
      await met;
      await tx.run('UPDATE things SET bytes = bytes || bytes WHERE id = $1', [second]);
    });
  await Promise.all([crossing(1, 2), crossing(2, 1)]);
  expect(attempts).toBeGreaterThanOrEqual(3);
  const sizes = await db.on('read').rows('SELECT length(bytes) AS size FROM things');
  expect(sizes).toEqual([{ size: 4 }, { size: 4 }]);
});

test('a lost connection is unavailable before COMMIT, and the pool goes on', async () => {
  const killed = db.transaction('write', async (tx) => {
    await tx.run('INSERT INTO things (id) VALUES ($1)', [1]);
    const { pid } = (await tx.row<{ pid: number }>('SELECT pg_backend_pid() AS pid'))!;
    await db.on('read').row('SELECT pg_terminate_backend($1)', [pid]);
    await tx.run('INSERT INTO things (id) VALUES ($1)', [2]);
  });
  await expect(killed).rejects.toMatchObject({ code: 'unavailable' });
  expect(await db.on('write').rows('SELECT id FROM things')).toEqual([]);
});

test('a connection lost during COMMIT is a timeout: nobody knows', async () => {
  // A deferred trigger runs within COMMIT and ends its own connection there.
  await db.session(async (client) => {
    await client.query(`
      CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN NULL; END';
      CREATE CONSTRAINT TRIGGER dies AFTER INSERT ON things DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION die()`);
  });
  const lost = db.transaction('write', (tx) => tx.run('INSERT INTO things (id) VALUES (1)'));
  await expect(lost).rejects.toMatchObject({ code: 'timeout' });
});

test('a row that stays locked, and a server that is not there, are unavailable', async () => {
  await db.on('write').run('INSERT INTO things (id) VALUES (1)');
  const other = openTestDatabase(server.url(new URL(db.options.url).pathname.slice(1)), {
    'metadata.postgres.lock.timeout.ms': '20',
  });
  await db.transaction('write', async (tx) => {
    await tx.run('UPDATE things SET id = 2');
    await expect(other.on('write').run('UPDATE things SET id = 3')).rejects.toMatchObject({
      code: 'unavailable',
      details: { sqlState: '55P03' },
    });
  });
  await other.close();
  const nowhere = openTestDatabase('postgres://127.0.0.1:1/none');
  await expect(nowhere.on('read').row('SELECT 1')).rejects.toMatchObject({ code: 'unavailable' });
  await nowhere.close();
});

test('a snapshot sees one moment', async () => {
  const seen = await db.snapshot('read', async (tx) => {
    const before = await tx.rows('SELECT id FROM things');
    await db.on('write').run('INSERT INTO things (id) VALUES (1)');
    return [before, await tx.rows('SELECT id FROM things')];
  });
  expect(seen).toEqual([[], []]);
});

test('several brokers migrate at once, each migration once, an index beside others at work', async () => {
  const url = await server.empty();
  const databases = [1, 2, 3].map(() => openTestDatabase(url));
  const all = [
    ...migrations,
    { name: 'things-2', sql: 'CREATE TABLE more (a int); INSERT INTO more VALUES (1)' },
    {
      name: 'things-3',
      index: 'things_bytes',
      sql: 'CREATE INDEX CONCURRENTLY things_bytes ON things (bytes)',
    },
  ];
  await Promise.all(databases.map((one) => migrate(one, all)));
  expect(await databases[0]!.on('read').rows('SELECT a FROM more')).toEqual([{ a: 1 }]);
  expect(await databases[0]!.on('read').rows('SELECT name FROM migrations ORDER BY name')).toEqual(
    all.map(({ name }) => ({ name })),
  );
  for (const one of databases) await one.close();
});

test('a migration waits for a busy table without holding up others', async () => {
  const more = [...migrations, { name: 'things-4', sql: 'ALTER TABLE things ADD COLUMN x int' }];
  let done: Promise<void> | undefined;
  await db.transaction('write', async (tx) => {
    await tx.run('INSERT INTO things (id) VALUES (7)');
    done = migrate(db, more);
    // Longer than the migration's own patience with a lock: it has let others by meanwhile.
    await tx.row('SELECT pg_sleep(1.2)');
    await db.on('write').run('INSERT INTO things (id) VALUES (8)');
  });
  await done;
  expect(await db.on('read').rows('SELECT id, x FROM things ORDER BY id')).toEqual([
    { id: 7, x: null },
    { id: 8, x: null },
  ]);
});

test('a statement that another broker’s migration made stale is prepared anew', async () => {
  const text = 'SELECT * FROM things';
  const read = () => db.on('read').rows(text);
  const inTransaction = () => db.transaction('write', (tx) => tx.rows(text));
  // As many connections as there may be.
  await Promise.all(Array.from({ length: 3 }, () => Promise.all([read(), inTransaction()])));
  await db.session((client) => client.query('ALTER TABLE things ADD COLUMN y int'));
  expect(await Promise.all([read(), inTransaction(), read()])).toEqual([[], [], []]);
});

test('a server that would lose acked commits is refused, with every remedy', async () => {
  const name = new URL(db.options.url).pathname.slice(1);
  await db.session((client) => client.query(`ALTER DATABASE ${name} SET synchronous_commit = off`));
  const other = openTestDatabase(db.options.url);
  await expect(assertServer(other, false)).rejects.toMatchObject({
    code: 'unsupported',
    message: expect.stringMatching(/set fsync = on.*; synchronous_commit is off: set .* = on/),
  });
  // As tests open it.
  expect(await assertServer(other, true)).toEqual([]);
  await other.close();
});
