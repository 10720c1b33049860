// SASL OAUTHBEARER (RFC 7628, KIP-255): a signed JSON web token says who the client is. Signature, issuer, audience
// and times are checked by `jose` with the keys of a JWKS (jwks.ts). Unsigned and symmetrically signed tokens are
// refused whatever they say. The session ends with the token (KIP-368).
// Not for: tokens over HTTP, which ask `verify` too (cli/http-auth.ts).
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { type Clock, dateAt } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { type Exchange, failure, type Mechanism, type Step, tokenText } from './exchange.ts';

/** Signatures whose keys may be public. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

export interface TokenRules {
  readonly keys: JWTVerifyGetKey;
  /** Undefined: any. */
  readonly issuer: string | undefined;
  /** Empty: any. */
  readonly audience: readonly string[];
  readonly userClaim: string;
  readonly scopeClaim: string;
  readonly clockSkewSeconds: number;
  readonly clock: Clock;
}

export interface VerifiedToken {
  readonly user: string;
  /** Wall time. */
  readonly expiresMs: number;
}

/** Who the token is about. @throws FloeError `unauthorized` saying what is wrong with it, `unavailable` without keys. */
export async function verifyToken(token: string, rules: TokenRules): Promise<VerifiedToken> {
  const payload = await verifiedPayload(token, rules);
  const user = payload[rules.userClaim];
  if (typeof user !== 'string' || user.trim() === '') {
    throw new FloeError('unauthorized', `the token has no claim "${rules.userClaim}"`);
  }
  const scope = payload[rules.scopeClaim];
  const scopes = Array.isArray(scope) ? scope : [scope ?? ''];
  if (scopes.some((one) => typeof one !== 'string')) {
    throw new FloeError('unauthorized', `claim "${rules.scopeClaim}" is neither text nor a list`);
  }
  return { user, expiresMs: payload.exp! * 1_000 };
}

async function verifiedPayload(token: string, rules: TokenRules): Promise<JWTPayload> {
  const { issuer, audience, clockSkewSeconds, clock } = rules;
  try {
    const { payload } = await jwtVerify(token, rules.keys, {
      algorithms: ALGORITHMS,
      ...(issuer === undefined ? {} : { issuer }),
      ...(audience.length === 0 ? {} : { audience: [...audience] }),
      clockTolerance: clockSkewSeconds,
      currentDate: dateAt(clock.now()),
      requiredClaims: ['exp'],
    });
    return payload;
  } catch (caught) {
    if (!(caught instanceof errors.JOSEError)) throw FloeError.from(caught, 'token');
    // Its texts name claims and algorithms, never the token.
    throw new FloeError('unauthorized', `token: ${caught.message}`, { cause: caught });
  }
}

const INVALID_TOKEN = '{"status":"invalid_token"}';
const NOTHING = new Uint8Array(0);
/** What a client says after it was told why its token is refused (RFC 7628 §3.2.3). */
const UNDERSTOOD = '\u0001';

export function oauthMechanism(rules: TokenRules): Mechanism {
  return { name: 'OAUTHBEARER', begin: () => new OauthExchange(rules) };
}

class OauthExchange implements Exchange {
  readonly #rules: TokenRules;
  #refused: string | undefined;

  constructor(rules: TokenRules) {
    this.#rules = rules;
  }

  async step(token: Uint8Array): Promise<Step> {
    const text = tokenText(token);
    if (this.#refused !== undefined) {
      const reason = text === UNDERSTOOD ? this.#refused : 'a further token after a refused one';
      return failure(reason, INVALID_TOKEN);
    }
    const message = text === undefined ? 'the message is no UTF-8' : parseMessage(text);
    if (typeof message === 'string') return failure(`OAUTHBEARER: ${message}`);
    try {
      const { user, expiresMs } = await verifyToken(message.token, this.#rules);
      if (message.onBehalfOf !== '' && message.onBehalfOf !== user) {
        return failure('authorization id and user differ');
      }
      return { kind: 'success', token: NOTHING, user, expiresMs };
    } catch (caught) {
      this.#refused = FloeError.from(caught).message;
      return { kind: 'challenge', token: Buffer.from(INVALID_TOKEN) };
    }
  }
}

interface BearerMessage {
  readonly onBehalfOf: string;
  readonly token: string;
}

/** `n,a=user,^Aauth=Bearer TOKEN^A…^A^A`, or what is wrong with it. */
function parseMessage(text: string): BearerMessage | string {
  const [header, ...pairs] = text.split('\u0001');
  const head = /^n,(?:a=([^,]*))?,$/.exec(header!);
  if (head === null) return 'the header is malformed or asks for channel binding';
  if (pairs.length < 3 || pairs.at(-1) !== '' || pairs.at(-2) !== '') return 'the end is missing';
  const auth = pairs.find((pair) => pair.startsWith('auth='));
  const token = /^auth=bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(auth ?? '')?.[1];
  if (token === undefined) return 'there is no bearer token';
  const onBehalfOf = (head[1] ?? '').replaceAll('=2C', ',').replaceAll('=3D', '=');
  return { onBehalfOf, token };
}
