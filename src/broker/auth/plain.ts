// SASL PLAIN (RFC 4616): user and password in the clear, so for TLS listeners. The password is checked against the
// user's salted credential: no password is stored anywhere.
import { type Exchange, failure, type Mechanism, type Step, tokenText } from './exchange.ts';
import type { Users } from './users.ts';

const NOTHING = new Uint8Array(0);

export function plainMechanism(users: Users): Mechanism {
  return { name: 'PLAIN', begin: (): Exchange => ({ step: (token) => check(users, token) }) };
}

async function check(users: Users, token: Uint8Array): Promise<Step> {
  const parts = tokenText(token)?.split('\0');
  if (parts?.length !== 3) return failure('the PLAIN token is not "authzid NUL user NUL password"');
  const [onBehalfOf, user, password] = parts as [string, string, string];
  if (user === '' || password === '') return failure('the PLAIN token has no user or no password');
  const right = await users.verify(user, password);
  if (!right) return failure('wrong user or password', 'Invalid username or password');
  if (onBehalfOf !== '' && onBehalfOf !== user) {
    return failure('authorization id and user differ', 'authorization id and user name differ');
  }
  return { kind: 'success', token: NOTHING, user };
}
