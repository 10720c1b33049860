// The arithmetic of SCRAM (RFC 5802, RFC 7677): from a password to what a server keeps, from a proof to yes or no.
// Not for: the messages (scram.ts), where credentials are kept (users.ts).
import { createHash, createHmac, pbkdf2, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { ScramCredential, ScramMechanism } from '../../metadata/security.ts';

interface Algorithm {
  readonly digest: 'sha256' | 'sha512';
  /** Length of keys and proofs. */
  readonly bytes: number;
  /** Kafka's ScramMechanism number in the APIs of KIP-554. */
  readonly code: number;
}

export const SCRAM: Readonly<Record<ScramMechanism, Algorithm>> = {
  'SCRAM-SHA-256': { digest: 'sha256', bytes: 32, code: 1 },
  'SCRAM-SHA-512': { digest: 'sha512', bytes: 64, code: 2 },
};

export const SCRAM_MECHANISMS = Object.keys(SCRAM) as readonly ScramMechanism[];

/** The fewest rounds that RFC 7677 and Kafka allow; what is taken where nobody says. */
export const MIN_ITERATIONS = 4_096;
/** Kafka's limit: the client does as many rounds for each connection. */
export const MAX_ITERATIONS = 16_384;

const hash = promisify(pbkdf2);

interface Salted {
  readonly user: string;
  readonly mechanism: ScramMechanism;
  readonly iterations: number;
  readonly salt: Uint8Array;
}

/** SaltedPassword of RFC 5802: PBKDF2, off the event loop. */
export function saltPassword(
  password: string,
  { mechanism, salt, iterations }: Omit<Salted, 'user'>,
): Promise<Uint8Array> {
  const { digest, bytes } = SCRAM[mechanism];
  return hash(password, salt, iterations, bytes, digest);
}

/** What a server keeps of a salted password, which can't be had back from it. */
export function credentialOf(salted: Salted, saltedPassword: Uint8Array): ScramCredential {
  const { digest } = SCRAM[salted.mechanism];
  const clientKey = hmac(digest, saltedPassword, 'Client Key');
  return {
    ...salted,
    storedKey: createHash(digest).update(clientKey).digest(),
    serverKey: hmac(digest, saltedPassword, 'Server Key'),
  };
}

/** True when `proof` was made for `authMessage` by somebody who knows the password. Takes as long either way. */
export function isProof(
  { mechanism, storedKey }: ScramCredential,
  authMessage: string,
  proof: Uint8Array,
): boolean {
  const { digest, bytes } = SCRAM[mechanism];
  if (proof.length !== bytes) return false;
  const signature = hmac(digest, storedKey, authMessage);
  const clientKey = signature.map((byte, index) => byte ^ proof[index]!);
  return timingSafeEqual(createHash(digest).update(clientKey).digest(), storedKey);
}

/** By which the server proves that it knows the user's keys, too. */
export function serverSignature({ mechanism, serverKey }: ScramCredential, authMessage: string) {
  return hmac(SCRAM[mechanism].digest, serverKey, authMessage);
}

/** True when `password` is the one that the credential was made of. */
export async function isPassword(credential: ScramCredential, password: string): Promise<boolean> {
  const made = credentialOf(credential, await saltPassword(password, credential));
  return timingSafeEqual(made.storedKey, credential.storedKey);
}

export function hmac(digest: string, key: Uint8Array, text: string): Buffer {
  return createHmac(digest, key).update(text).digest();
}
