// The closed list of error codes, each telling the caller what to do next.

/**
 * What the caller does next:
 * - `invalid`       the input is wrong: the message names thing, value and remedy; do not retry
 * - `not-found`     the named thing does not exist
 * - `conflict`      somebody else was first, or a condition did not hold: reload, decide afresh
 * - `unavailable`   the outside world fails for now: retry with backoff
 * - `timeout`       the outcome is unknown: find out before doing it again
 * - `exhausted`     a limit was reached: the message names the limit and its setting
 * - `corrupt`       stored bytes are not what was written: alarm, isolate that partition or table
 * - `unauthorized`  credentials missing or insufficient
 * - `unsupported`   understood, and deliberately not served
 * - `cancelled`     stopped on request (shutdown, abort signal)
 * - `internal`      anything else caught: log it with its cause
 */
export type ErrorCode =
  | 'invalid'
  | 'not-found'
  | 'conflict'
  | 'unavailable'
  | 'timeout'
  | 'exhausted'
  | 'corrupt'
  | 'unauthorized'
  | 'unsupported'
  | 'cancelled'
  | 'internal';
