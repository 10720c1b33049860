// Translates the errors of Node and the operating system into codes, in this one place.
import type { ErrorCode } from './error-code.ts';

const SYSTEM_CODES: Readonly<Record<string, ErrorCode>> = {
  ENOENT: 'not-found',
  EEXIST: 'conflict',
  ENOTEMPTY: 'conflict',
  EADDRINUSE: 'conflict',
  EACCES: 'unauthorized',
  EPERM: 'unauthorized',
  // A full disk or an exceeded quota: the remedy is the operator's.
  ENOSPC: 'exhausted',
  EDQUOT: 'exhausted',
  EMFILE: 'exhausted',
  ENFILE: 'exhausted',
  ENOMEM: 'exhausted',
  // The peer or the path to it fails for now.
  ECONNREFUSED: 'unavailable',
  ECONNRESET: 'unavailable',
  EPIPE: 'unavailable',
  EHOSTUNREACH: 'unavailable',
  ENETUNREACH: 'unavailable',
  ENOTFOUND: 'unavailable',
  EAI_AGAIN: 'unavailable',
  EIO: 'unavailable',
  EROFS: 'unavailable',
  // Nobody knows whether the request arrived.
  ETIMEDOUT: 'timeout',
  ABORT_ERR: 'cancelled',
};

/** The code of a system error, or undefined when `caught` is none. */
export function translateSystemError(caught: unknown): ErrorCode | undefined {
  if (!(caught instanceof Error)) return undefined;
  if (caught.name === 'AbortError') return 'cancelled';
  const { code } = caught as NodeJS.ErrnoException;
  return typeof code === 'string' ? SYSTEM_CODES[code] : undefined;
}
