// A SASL exchange from the server's side: tokens in, tokens out, until it is known who the client is.
// Each mechanism has one file that makes exchanges. Not for: frames and states of the connection (session.ts).

export interface Challenge {
  readonly kind: 'challenge';
  /** For the client, which answers with another token. */
  readonly token: Uint8Array;
}

export interface Success {
  readonly kind: 'success';
  readonly token: Uint8Array;
  /** Name of the user. */
  readonly user: string;
  /** When what the client showed ends to be valid, wall time; undefined: never. */
  readonly expiresMs?: number;
}

export interface Failure {
  readonly kind: 'failure';
  /** For the log: what is wrong, without secrets. */
  readonly reason: string;
  /** For the client, where it may know more than that authentication failed. */
  readonly message?: string;
}

export type Step = Challenge | Success | Failure;

/** One attempt; after a success or a failure it is over. */
export interface Exchange {
  step(token: Uint8Array): Promise<Step>;
}

export interface Mechanism {
  readonly name: string;
  begin(): Exchange;
}

export function failure(reason: string, message?: string): Failure {
  return message === undefined ? { kind: 'failure', reason } : { kind: 'failure', reason, message };
}

const decoder = new TextDecoder('utf-8', { fatal: true });

/** A token as text; undefined when it is no UTF-8. */
export function tokenText(token: Uint8Array): string | undefined {
  try {
    return decoder.decode(token);
  } catch {
    return undefined;
  }
}
