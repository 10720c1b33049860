// How one listener knows its clients: whether the wire is encrypted, whether they authenticate, and how.
// Not for: sockets and certificates themselves (server.ts, tls-files.ts).
import { ANONYMOUS, type Principal } from './authorizer.ts';
import type { Mechanism } from './exchange.ts';

export const SECURITY_PROTOCOLS = ['PLAINTEXT', 'SSL', 'SASL_PLAINTEXT', 'SASL_SSL'] as const;
export type SecurityProtocol = (typeof SECURITY_PROTOCOLS)[number];

export interface ListenerAuth {
  readonly name: string;
  readonly protocol: SecurityProtocol;
  /** Enabled mechanisms by name; empty where clients don't authenticate by SASL. */
  readonly mechanisms: ReadonlyMap<string, Mechanism>;
  /** Longest session before a client has to authenticate anew, 0 without limit (KIP-368). */
  readonly maxReauthMs: number;
  /** Largest request of a client that isn't authenticated. */
  readonly maxTokenBytes: number;
  /** How long a client may take to authenticate. */
  readonly timeoutMs: number;
  /** How long the answer to a failed attempt is held back. */
  readonly failureDelayMs: number;
  /** Who a client is without SASL, by the subject of its certificate if it showed one. */
  principal(subject: string | undefined): Principal;
}

export const usesTls = (protocol: SecurityProtocol) =>
  protocol === 'SSL' || protocol === 'SASL_SSL';

export const usesSasl = (protocol: SecurityProtocol) =>
  protocol === 'SASL_PLAINTEXT' || protocol === 'SASL_SSL';

/** A listener that asks nobody anything. */
export function openListener(name: string): ListenerAuth {
  return {
    name,
    protocol: 'PLAINTEXT',
    mechanisms: new Map(),
    maxReauthMs: 0,
    maxTokenBytes: 0,
    timeoutMs: Number.POSITIVE_INFINITY,
    failureDelayMs: 0,
    principal: () => ANONYMOUS,
  };
}
