// Translates failures of PostgreSQL and of the way to it into FloeErrors, in this one place.
// What matters most: whether a transaction surely did not happen (`unavailable`), or nobody knows (`timeout`).
// SQLSTATEs: PostgreSQL documentation, appendix A.
import { AssertionError } from '../../base/assert.ts';
import type { ErrorCode } from '../../base/error.ts';
import { FloeError } from '../../base/error.ts';
import { CONTRADICTED } from './lineage.ts';

/** Where a failure struck: before COMMIT was sent nothing has happened; after it, it may have. */
export type Phase = 'work' | 'commit';

/** By SQLSTATE, longest prefix first. Others are `internal`: a bug of ours. */
const CODES: readonly (readonly [prefix: string, code: ErrorCode])[] = [
  ['53100', 'exhausted'], // disk_full
  ['53', 'unavailable'], // too many connections, out of memory
  ['08', 'unavailable'], // connection exceptions
  ['40', 'unavailable'], // serialization failure, deadlock: attempts used up
  ['55P03', 'unavailable'], // lock_not_available
  ['57', 'unavailable'], // cancelled by timeout, shutting down, starting up
  ['58', 'unavailable'], // I/O error
  ['25006', 'unavailable'], // read-only: we reached a standby
  ['25P03', 'unavailable'], // idle in transaction for too long
  ['28', 'unauthorized'],
  ['42501', 'unauthorized'],
  ['3D000', 'not-found'],
  [CONTRADICTED, 'corrupt'],
  ['XX001', 'corrupt'],
  ['XX002', 'corrupt'],
  ['22021', 'invalid'], // characters that the encoding lacks
  ['54', 'exhausted'], // program limits, such as too long a key
];

/** SQLSTATE of a failure that the server itself reported. No class begins with E, as names of the system's errors do (EPIPE). */
export function sqlState(caught: unknown): string | undefined {
  const code = (caught as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^(?!E)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** True when the server broke the transaction off and it may simply be tried again. */
export function isBrokenOff(caught: unknown): boolean {
  const state = sqlState(caught);
  return state === '40001' || state === '40P01' || isStale(caught);
}

/**
 * True when a statement was prepared on a table that has other columns since, by a migration of a newer broker: on this
 * connection it fails for ever, on another one it is prepared anew. Its SQLSTATE is that of much else.
 */
export function isStale(caught: unknown): boolean {
  const { routine } = (caught ?? {}) as { routine?: unknown };
  return sqlState(caught) === '0A000' && routine === 'RevalidateCachedQuery';
}

/** True when the connection can't be used any more: lost, shut down by the server, or leading to a standby. */
export function isConnectionLost(caught: unknown): boolean {
  if (caught instanceof FloeError || caught instanceof AssertionError) return false;
  const state = sqlState(caught);
  if (state === undefined) return true;
  return /^(08|57P|25006|25P03)/.test(state);
}

/** @param doing names the thing that was attempted, for the message. */
export function postgresError(caught: unknown, doing: string, phase: Phase = 'work'): FloeError {
  if (caught instanceof FloeError) return caught;
  if (caught instanceof AssertionError) throw caught;
  const text = caught instanceof Error ? caught.message : String(caught);
  const state = sqlState(caught);
  if (phase === 'commit' && isConnectionLost(caught)) {
    return new FloeError('timeout', `${doing}: the answer to COMMIT never came (${text})`, {
      cause: caught,
    });
  }
  if (state === undefined) {
    const system = FloeError.from(caught).code;
    const code: ErrorCode = system === 'unauthorized' ? system : 'unavailable';
    return new FloeError(
      code,
      `${doing}: PostgreSQL can't be reached (${text}): check that it runs, and --metadata`,
      {
        cause: caught,
      },
    );
  }
  const code = CODES.find(([prefix]) => state.startsWith(prefix))?.[1] ?? 'internal';
  return new FloeError(code, `${doing}: ${hint(state) ?? text} (SQLSTATE ${state})`, {
    cause: caught,
    details: { sqlState: state },
  });
}

function hint(state: string): string | undefined {
  if (state === '53100') return "PostgreSQL's disk is full: free space there";
  if (state === '53300')
    return 'PostgreSQL has no connection left: raise max_connections, or lower metadata.postgres.*.connections';
  if (state === '25006') return 'this PostgreSQL is read-only, perhaps a standby: name the primary';
  return undefined;
}
