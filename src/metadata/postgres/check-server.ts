// Whether a PostgreSQL server may keep a cluster's metadata: what would lose acked commits is refused with its remedy,
// what may lose them at a failover is told (`floe doctor`). Not for: whether it is fast enough.
import { FloeError } from '../../base/error.ts';
import type { Database, Sql } from './database.ts';

export interface Finding {
  /** The setting or fact. */
  readonly what: string;
  /** As it was found. */
  readonly value: string;
  /** What to do about it. */
  readonly remedy: string;
  /** `refused`: no broker starts on such a server. `warning`: it runs, and an operator should know. */
  readonly severity: 'refused' | 'warning';
}

interface Facts {
  version: number;
  version_text: string;
  recovery: boolean;
  fsync: string;
  full_page_writes: string;
  synchronous_commit: string;
  standby_names: string;
  encoding: string;
  max_connections: number;
  /** Connections to standbys; null when the role may not see them. */
  standbys: number | null;
}

/** 14: the oldest that is maintained and detaches partitions without blocking. */
const OLDEST = 140_000;

const FACTS = `
  SELECT current_setting('server_version_num')::int4 AS version, current_setting('server_version') AS version_text,
    pg_is_in_recovery() AS recovery, current_setting('fsync') AS fsync,
    current_setting('full_page_writes') AS full_page_writes,
    current_setting('synchronous_commit') AS synchronous_commit,
    current_setting('synchronous_standby_names') AS standby_names,
    current_setting('server_encoding') AS encoding, current_setting('max_connections')::int4 AS max_connections,
    (SELECT count(*)::int4 FROM pg_stat_replication WHERE application_name NOT LIKE '%basebackup%') AS standbys`;

/** What there is to say about the server; empty when all is well. */
export async function checkServer(sql: Sql): Promise<readonly Finding[]> {
  const facts = await sql.row<Facts>(FACTS);
  return judge(facts!);
}

/** Pure: what facts mean. */
export function judge(facts: Facts): readonly Finding[] {
  const findings: (Finding | false)[] = [
    facts.version < OLDEST &&
      refused('server_version', facts.version_text, 'upgrade PostgreSQL to 14 or newer'),
    facts.recovery &&
      refused('pg_is_in_recovery', 'true', 'this is a standby: name the primary in --metadata'),
    facts.fsync !== 'on' &&
      refused(
        'fsync',
        facts.fsync,
        'set fsync = on: without it a power failure loses acked commits',
      ),
    facts.full_page_writes !== 'on' &&
      refused(
        'full_page_writes',
        facts.full_page_writes,
        'set full_page_writes = on: without it a power failure may tear pages',
      ),
    facts.synchronous_commit === 'off' &&
      refused(
        'synchronous_commit',
        'off',
        'set synchronous_commit = on for this database or role: ALTER DATABASE … SET synchronous_commit = on',
      ),
    facts.encoding !== 'UTF8' &&
      refused('server_encoding', facts.encoding, "create the database with ENCODING 'UTF8'"),
    ...standbyFindings(facts),
  ];
  return findings.filter((finding) => finding !== false);
}

function standbyFindings(facts: Facts): (Finding | false)[] {
  const synchronous = facts.standby_names !== '';
  return [
    !synchronous &&
      (facts.standbys ?? 0) > 0 &&
      warning(
        'synchronous_standby_names',
        '',
        `${facts.standbys} standby(s) stream asynchronously: a failover to one loses acked commits; set synchronous_standby_names, such as 'ANY 1 (*)'`,
      ),
    synchronous &&
      facts.synchronous_commit === 'local' &&
      warning(
        'synchronous_commit',
        'local',
        'commits do not wait for the synchronous standbys: set synchronous_commit = on',
      ),
  ];
}

/**
 * Throws when a broker must not start there. @param unsafe lets servers pass that lose commits on power failure: tests.
 * @returns the warnings. @throws FloeError `unsupported`, naming every reason and remedy.
 */
export async function assertServer(db: Database, unsafe: boolean): Promise<readonly Finding[]> {
  const findings = await checkServer(db.on('background'));
  const durability = ['fsync', 'full_page_writes', 'synchronous_commit'];
  const bad = findings.filter(
    ({ severity, what }) => severity === 'refused' && !(unsafe && durability.includes(what)),
  );
  if (bad.length > 0) {
    const reasons = bad.map(({ what, value, remedy }) => `${what} is ${value}: ${remedy}`);
    throw new FloeError('unsupported', `metadata on this PostgreSQL: ${reasons.join('; ')}`);
  }
  return findings.filter(({ severity }) => severity === 'warning');
}

const refused = (what: string, value: string, remedy: string): Finding => ({
  what,
  value,
  remedy,
  severity: 'refused',
});

const warning = (what: string, value: string, remedy: string): Finding => ({
  what,
  value,
  remedy,
  severity: 'warning',
});
