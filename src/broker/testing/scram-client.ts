// The client's side of SCRAM, for tests: also in ways that no honest client has.
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto';
import type { ScramMechanism } from '../../metadata/security.ts';
import { SCRAM } from '../auth/scram-keys.ts';

export interface ScramClientOptions {
  readonly mechanism: ScramMechanism;
  readonly user: string;
  readonly password: string;
  readonly nonce?: string;
  /** What it says about channel binding. */
  readonly header?: string;
  /** What it says in its last message that it said. */
  readonly headerAtLast?: string;
  readonly changeNonce?: boolean;
}

export const firstMessage = ({ user, nonce = 'abc', header = 'n,,' }: ScramClientOptions): Buffer =>
  Buffer.from(`${header}n=${user.replaceAll('=', '=3D').replaceAll(',', '=2C')},r=${nonce}`);

/** The last message of the client, in answer to the server's first, and the signature it wants to see. */
export function lastMessage(options: ScramClientOptions, serverFirst: Uint8Array) {
  const { mechanism, password, header = 'n,,' } = options;
  const { digest, bytes } = SCRAM[mechanism];
  const text = Buffer.from(serverFirst).toString();
  const [, nonce, salt, iterations] = /^r=([^,]+),s=([^,]+),i=(\d+)$/.exec(text)!;
  const hmac = (key: Uint8Array, about: string) => createHmac(digest, key).update(about).digest();
  const salted = pbkdf2Sync(
    password,
    Buffer.from(salt!, 'base64'),
    Number(iterations),
    bytes,
    digest,
  );
  const clientKey = hmac(salted, 'Client Key');
  const storedKey = createHash(digest).update(clientKey).digest();
  const binding = Buffer.from(options.headerAtLast ?? header).toString('base64');
  const said = `c=${binding},r=${options.changeNonce ? `${nonce}x` : nonce}`;
  const bare = firstMessage(options).toString().slice(header.length);
  const about = `${bare},${text},${said}`;
  const signature = hmac(storedKey, about);
  const proof = clientKey.map((byte, index) => byte ^ signature[index]!);
  const serverSignature = hmac(hmac(salted, 'Server Key'), about).toString('base64');
  const message = Buffer.from(`${said},p=${Buffer.from(proof).toString('base64')}`);
  return { message, expected: `v=${serverSignature}` };
}
