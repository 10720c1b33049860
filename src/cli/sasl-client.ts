// The client's side of SASL for the wire client: PLAIN, and SCRAM with the server's signature checked.
// Not for: kafkajs, which has its own.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { FloeError } from '../base/error.ts';
import type { Prng } from '../base/prng.ts';
import { SCRAM, saltPassword } from '../broker/auth/index.ts';
import {
  type AnyApi,
  kafkaError,
  type ResponseOf,
  saslAuthenticateApi,
  saslHandshakeApi,
} from '../protocol/index.ts';
import type { Login } from './client-auth.ts';

const NONCE_BYTES = 18;

/** What is needed of the wire client. */
interface Asker {
  ask<A extends AnyApi>(api: A, request: object): Promise<ResponseOf<A>>;
}

/** Authenticates a connection. @throws FloeError with the server's own words. */
export async function authenticate(client: Asker, login: Login, prng: Prng): Promise<void> {
  const { mechanism, user, password } = login;
  const { errorCode, mechanisms } = await client.ask(saslHandshakeApi, { mechanism });
  if (errorCode !== 0) {
    const offered = mechanisms.length === 0 ? '' : ` (it offers ${mechanisms.join(', ')})`;
    const { description } = kafkaError(errorCode);
    throw new FloeError('unauthorized', `--mechanism ${mechanism}: ${description}${offered}`);
  }
  const send = async (token: string) => {
    const reply = await client.ask(saslAuthenticateApi, { authBytes: Buffer.from(token) });
    if (reply.errorCode !== 0) {
      const why = reply.errorMessage ?? kafkaError(reply.errorCode).description;
      throw new FloeError('unauthorized', `user "${user}": ${why}`);
    }
    return Buffer.from(reply.authBytes).toString();
  };
  if (mechanism === 'PLAIN') await send(`\0${user}\0${password}`);
  else await scram({ ...login, mechanism }, send, prng);
}

async function scram(
  login: Login & { readonly mechanism: keyof typeof SCRAM },
  send: (token: string) => Promise<string>,
  prng: Prng,
): Promise<void> {
  const { mechanism, user, password } = login;
  const nonce = Buffer.from(prng.bytes(NONCE_BYTES)).toString('base64url');
  const bare = `n=${user.replaceAll('=', '=3D').replaceAll(',', '=2C')},r=${nonce}`;
  const serverFirst = await send(`n,,${bare}`);
  const [, both, salt, iterations] = /^r=([^,]+),s=([^,]+),i=(\d+)/.exec(serverFirst) ?? [];
  if (both === undefined || !both.startsWith(nonce)) throw strange();
  const { digest } = SCRAM[mechanism];
  const hmac = (key: Uint8Array, text: string) => createHmac(digest, key).update(text).digest();
  const rounds = { mechanism, salt: Buffer.from(salt!, 'base64'), iterations: Number(iterations) };
  const salted = await saltPassword(password, rounds);
  const clientKey = hmac(salted, 'Client Key');
  const said = `c=${Buffer.from('n,,').toString('base64')},r=${both}`;
  const about = `${bare},${serverFirst},${said}`;
  const signature = hmac(createHash(digest).update(clientKey).digest(), about);
  const proof = Buffer.from(clientKey.map((byte, index) => byte ^ signature[index]!));
  const answer = await send(`${said},p=${proof.toString('base64')}`);
  const shown = Buffer.from(/^v=(.+)$/.exec(answer)?.[1] ?? '', 'base64');
  const expected = hmac(hmac(salted, 'Server Key'), about);
  if (shown.length !== expected.length || !timingSafeEqual(shown, expected)) throw strange();
}

const strange = () =>
  new FloeError('unauthorized', 'the server does not know the password: it is not who it seems');
