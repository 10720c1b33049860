// SASL SCRAM (RFC 5802): the client proves that it knows the password, the server that it knows its keys; neither
// sends anything that could be used again. Without channel binding, as in Kafka: a client that insists on it is
// refused, one that could is believed only in what it signs, so nobody between can take the offer away unseen.
import type { Prng } from '../../base/prng.ts';
import type { ScramCredential, ScramMechanism } from '../../metadata/security.ts';
import { type Exchange, failure, type Mechanism, type Step, tokenText } from './exchange.ts';
import { isProof, serverSignature } from './scram-keys.ts';
import type { Users } from './users.ts';

const NONCE_BYTES = 24;

export interface ScramOptions {
  readonly mechanism: ScramMechanism;
  readonly users: Users;
  readonly prng: Prng;
}

export function scramMechanism(options: ScramOptions): Mechanism {
  return { name: options.mechanism, begin: () => new ScramExchange(options) };
}

interface FirstMessage {
  /** `n,,` and the like: what the client says about channel binding, to be repeated in its last message. */
  readonly header: string;
  readonly bare: string;
  readonly user: string;
  readonly nonce: string;
}

interface Asked {
  readonly first: FirstMessage;
  readonly credential: ScramCredential;
  readonly serverFirst: string;
  /** The client's nonce and ours. */
  readonly nonce: string;
}

class ScramExchange implements Exchange {
  readonly #options: ScramOptions;
  #asked: Asked | undefined;

  constructor(options: ScramOptions) {
    this.#options = options;
  }

  async step(token: Uint8Array): Promise<Step> {
    const text = tokenText(token);
    if (text === undefined) return failure('a SCRAM message is UTF-8 text');
    return this.#asked === undefined ? this.#first(text) : finish(text, this.#asked);
  }

  #first(text: string): Step {
    const first = parseFirst(text);
    if (typeof first === 'string') return failure(first);
    const { users, mechanism, prng } = this.#options;
    const credential = users.credential({ user: first.user, mechanism });
    const nonce = first.nonce + Buffer.from(prng.bytes(NONCE_BYTES)).toString('base64url');
    const salt = Buffer.from(credential.salt).toString('base64');
    const serverFirst = `r=${nonce},s=${salt},i=${credential.iterations}`;
    this.#asked = { first, credential, serverFirst, nonce };
    return { kind: 'challenge', token: Buffer.from(serverFirst) };
  }
}

/** client-first-message, or what is wrong with it. */
function parseFirst(text: string): FirstMessage | string {
  const match = /^(([^,]*),([^,]*),)((?:m=[^,]*,)?n=([^,]*),r=([!-+\--~]+)(?:,.*)?)$/.exec(text);
  if (match === null) return 'the first SCRAM message is malformed';
  const [, header, binding, onBehalfOf, bare, name, nonce] = match as unknown as string[];
  if (binding!.startsWith('p=')) return 'channel binding is not supported';
  if (binding !== 'n' && binding !== 'y') return 'the first SCRAM message is malformed';
  if (bare!.startsWith('m=')) return 'a mandatory SCRAM extension is not supported';
  if (/,tokenauth=true(,|$)/.test(bare!)) return 'delegation tokens are not supported';
  const user = unescapeName(name!);
  if (user === undefined || user === '') return 'the SCRAM user name is malformed';
  if (onBehalfOf !== '' && unescapeName(onBehalfOf!.replace(/^a=/, '')) !== user) {
    return 'authorization id and user differ';
  }
  return { header: header!, bare: bare!, user, nonce: nonce! };
}

/** saslname: "=2C" stands for a comma, "=3D" for "="; a lone "=" is wrong. */
function unescapeName(text: string): string | undefined {
  if (/=(?!2C|3D)/.test(text)) return undefined;
  return text.replaceAll('=2C', ',').replaceAll('=3D', '=');
}

function finish(text: string, asked: Asked): Step {
  const match = /^((c=([^,]+)),r=([^,]+)(?:,.*)?),p=([^,]+)$/.exec(text);
  if (match === null) return failure('the last SCRAM message is malformed');
  const [, withoutProof, , binding, nonce, proofText] = match as unknown as string[];
  if (nonce !== asked.nonce) return failure('the SCRAM nonce is not the one of this exchange');
  // What was said at first about channel binding is signed here: a change on the way shows.
  if (Buffer.from(binding!, 'base64').toString() !== asked.first.header) {
    return failure('the SCRAM channel binding is not what the first message said');
  }
  const authMessage = `${asked.first.bare},${asked.serverFirst},${withoutProof}`;
  if (!isProof(asked.credential, authMessage, Buffer.from(proofText!, 'base64'))) {
    return failure('wrong user or password');
  }
  const signature = serverSignature(asked.credential, authMessage).toString('base64');
  const { user } = asked.first;
  return { kind: 'success', token: Buffer.from(`v=${signature}`), user };
}
