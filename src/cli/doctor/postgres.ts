// The database under `floe doctor`: what checkServer says of the server, and how it does today. Changes no row.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { checkServer } from '../../metadata/postgres/check-server.ts';
import { type Database, purposes } from '../../metadata/postgres/database.ts';
import { postgresMigrations } from '../../metadata/postgres/index.ts';
import { PUT_BACK_REMEDY } from '../../metadata/postgres/lineage.ts';
import type { ServerSettings } from '../compose/node.ts';
import { type Finding, findingsOf, median } from './finding.ts';

export interface DatabaseParts {
  readonly database: Database;
  readonly settings: ServerSettings;
  readonly clock: Clock;
}

const { ok, warning, wrong } = findingsOf('database');
const PROBES = 5;
/** Commits of the log queue for one row: past this a cluster commits fewer than fifty times a second. */
const SLOW_COMMIT_MS = 20;
/** Vacuum and migrations wait for such a transaction. */
const LONG_TRANSACTION_S = 60;
const SKEW_MS = 1_000;

export async function checkDatabase(parts: DatabaseParts): Promise<readonly Finding[]> {
  const { database } = parts;
  let server: readonly Finding[];
  try {
    const found = await checkServer(database.on('background'));
    // A failover that loses acked commits is no matter of taste here.
    server = found.map(({ what, value, remedy }) =>
      wrong(what, value === '' ? 'empty' : value, remedy),
    );
  } catch (caught) {
    const remedy = 'check --metadata: host, port, user, password, and that the database is there';
    return [wrong('reachable', FloeError.from(caught).message, remedy)];
  }
  if (server.length === 0) server = [ok('server', 'durable, no asynchronous failover')];
  return [
    ...server,
    await migrations(parts),
    ...(await history(parts)),
    await commitTime(parts),
    await connections(parts),
    await longTransactions(parts),
    await clockSkew(parts),
  ];
}

async function migrations({ database }: DatabaseParts): Promise<Finding> {
  const sql = database.on('background');
  const there = await sql.row<{ there: boolean }>(
    "SELECT to_regclass('migrations') IS NOT NULL AS there",
  );
  if (!there!.there) return ok('migrations', 'none: an empty database');
  const rows = await sql.rows<{ name: string }>('SELECT name FROM migrations');
  const applied = new Set(rows.map(({ name }) => name));
  const pending = postgresMigrations.filter(({ name }) => !applied.delete(name));
  if (applied.size > 0)
    return warning(
      'migrations',
      `newer: ${[...applied].join(', ')}`,
      'use the version of floe that the brokers run',
    );
  if (pending.length === 0) return ok('migrations', 'current');
  const names = pending.map(({ name }) => name).join(', ');
  return warning('migrations', `pending: ${names}`, 'the next broker that starts applies them');
}

/** What brokers knew and didn't find any more. */
async function history({ database }: DatabaseParts): Promise<readonly Finding[]> {
  const sql = database.on('background');
  const column = await sql.row(
    "SELECT 1 FROM information_schema.columns WHERE table_name = 'log_counter' AND column_name = 'contradiction'",
  );
  if (column === undefined) return [];
  const row = await sql.row<{ contradiction: string | null }>(
    'SELECT contradiction FROM log_counter',
  );
  if (row!.contradiction === null) return [];
  const remedy = `the database was put back to an earlier time: ${PUT_BACK_REMEDY}`;
  return [wrong('history', row!.contradiction, remedy)];
}

/** No row changes, yet the write-ahead log is written: COMMIT waits for the disk and the standbys as any does. */
async function commitTime({ database, clock }: DatabaseParts): Promise<Finding> {
  const took: number[] = [];
  for (let n = 0; n < PROBES; n += 1) {
    const startedMs = clock.monotonic();
    await database.transaction('background', (tx) =>
      tx.run("SELECT pg_logical_emit_message(true, 'floe', 'doctor')"),
    );
    took.push(clock.monotonic() - startedMs);
  }
  const ms = Math.round(median(took) * 10) / 10;
  if (ms <= SLOW_COMMIT_MS) return ok('a commit', `${ms} ms`);
  return warning(
    'a commit',
    `${ms} ms`,
    'every flush waits for one: faster storage for pg_wal, a server in the same zone, a nearer synchronous standby',
  );
}

async function connections({ database, settings }: DatabaseParts): Promise<Finding> {
  const row = await database.on('background').row<{ most: number; used: number }>(
    `SELECT current_setting('max_connections')::int4 - current_setting('superuser_reserved_connections')::int4 AS most,
       (SELECT count(*)::int4 FROM pg_stat_activity WHERE backend_type = 'client backend') AS used`,
  );
  const { most, used } = row!;
  const broker = purposes.reduce(
    (sum, purpose) => sum + settings[`metadata.postgres.${purpose}.connections`],
    0,
  );
  const value = `${used} of ${most} in use, a broker takes up to ${broker}`;
  if (most - used >= broker) return ok('connections', value);
  return warning('connections', value, 'one broker more would be refused: raise max_connections');
}

async function longTransactions({ database }: DatabaseParts): Promise<Finding> {
  const row = await database
    .on('background')
    .row<{ count: number; oldest: number | null; who: string | null }>(
      `SELECT count(*)::int4 AS count, max(extract(epoch FROM clock_timestamp() - xact_start))::int4 AS oldest,
       min(application_name) AS who FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND xact_start < clock_timestamp() - make_interval(secs => ${LONG_TRANSACTION_S})`,
    );
  const { count, oldest, who } = row!;
  if (count === 0) return ok('long transactions', '0');
  return warning(
    'long transactions',
    `${count}, the oldest ${oldest} s (${who})`,
    'rows of old versions pile up behind it: end it, SELECT pg_terminate_backend(pid) FROM pg_stat_activity',
  );
}

async function clockSkew({ database, clock }: DatabaseParts): Promise<Finding> {
  const { ok: fine, warning: warn } = findingsOf('clock');
  const beforeMs = clock.now();
  const row = await database
    .on('background')
    .row<{ now: number }>('SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now');
  const skewMs = Math.round((beforeMs + clock.now()) / 2 - row!.now);
  const value = Math.abs(skewMs) <= SKEW_MS ? `${skewMs} ms` : `${(skewMs / 1_000).toFixed(1)} s`;
  if (Math.abs(skewMs) <= SKEW_MS) return fine('this machine against the database', value);
  return warn(
    'this machine against the database',
    value,
    'run an NTP client on both: retention and leases go by the database, timestamps of records by their producers',
  );
}
