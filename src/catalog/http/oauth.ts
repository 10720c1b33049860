// POST /v1/oauth/tokens: a user's name and password, or a token, for an access token of the catalog. The specification
// calls the endpoint deprecated; clients in use ask it all the same when they are given a `credential`.
// Source: Iceberg REST OpenAPI, getToken; RFC 6749 §4.4, §5.2; RFC 8693 §2.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FloeError } from '../../base/error.ts';
import type { CatalogTokens } from '../tokens.ts';

/** Who says who may have a token. */
export interface TokenAuthority {
  /** Checks a user's password. @throws FloeError `unauthorized`. */
  login(user: string, password: string): Promise<string>;
  /** The user of a token: one of ours, or an identity provider's. @throws FloeError `unauthorized`. */
  userOfToken(token: string): Promise<string>;
}

export interface OAuthOptions {
  readonly tokens: CatalogTokens;
  /** Undefined: nobody has to authenticate here. */
  readonly authority: TokenAuthority | undefined;
}

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
/** Kinds of subject token whose user we can tell. */
const SUBJECT_TYPES: ReadonlySet<string> = new Set([
  ACCESS_TOKEN,
  'urn:ietf:params:oauth:token-type:jwt',
  'urn:ietf:params:oauth:token-type:id_token',
]);

type OAuthErrorType =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'unsupported_grant_type';

const oauthError = (type: OAuthErrorType, message: string) =>
  new FloeError('invalid', message, { details: { oauth: type } });

export function oauthRoutes(app: FastifyInstance, options: OAuthOptions): void {
  app.post('/oauth/tokens', async (request, reply) => {
    void reply.header('cache-control', 'no-store');
    try {
      return await grant(request, options);
    } catch (caught) {
      return refuse(reply, caught);
    }
  });
}

async function grant(request: FastifyRequest, { tokens, authority }: OAuthOptions) {
  if (!(request.body instanceof URLSearchParams))
    throw oauthError('invalid_request', 'the request is a form (x-www-form-urlencoded)');
  if (authority === undefined) {
    throw oauthError(
      'invalid_request',
      'this catalog asks nobody to authenticate: leave the credential out of the client’s configuration',
    );
  }
  const form = request.body;
  const user = await userOf(form, request.headers.authorization, authority);
  const { token, expiresInSeconds } = await tokens.issue(user);
  const scope = form.get('scope');
  return {
    access_token: token,
    token_type: 'bearer',
    expires_in: expiresInSeconds,
    issued_token_type: ACCESS_TOKEN,
    ...(scope === null ? {} : { scope }),
  };
}

function userOf(
  form: URLSearchParams,
  authorization: string | undefined,
  authority: TokenAuthority,
): Promise<string> {
  const type = form.get('grant_type');
  switch (type) {
    case 'client_credentials': {
      const [user, password] = clientOf(form, authorization);
      return authority.login(user, password);
    }
    case TOKEN_EXCHANGE:
      return exchange(form, authority);
    default:
      throw oauthError(
        type === null ? 'invalid_request' : 'unsupported_grant_type',
        `grant_type is client_credentials or ${TOKEN_EXCHANGE}`,
      );
  }
}

/** Client id and secret, of the Basic header or of the form. RFC 6749 §2.3.1: in the header both are form-encoded. */
function clientOf(form: URLSearchParams, authorization: string | undefined): [string, string] {
  const basic = /^basic +(\S+)$/i.exec(authorization?.trim() ?? '')?.[1];
  if (basic !== undefined) {
    const text = Buffer.from(basic, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    if (colon > 0) return [text.slice(0, colon), text.slice(colon + 1)];
  }
  const id = form.get('client_id');
  const secret = form.get('client_secret');
  if (id === null || secret === null) {
    throw oauthError(
      'invalid_request',
      'client_id and client_secret are missing: set the credential to user:password',
    );
  }
  return [id, secret];
}

/** The token of a user for another one of the same user. Actors are not told apart: the subject is who acts. */
async function exchange(form: URLSearchParams, authority: TokenAuthority): Promise<string> {
  const token = form.get('subject_token');
  const type = form.get('subject_token_type');
  if (token === null || type === null)
    throw oauthError('invalid_request', 'subject_token and subject_token_type are missing');
  if (!SUBJECT_TYPES.has(type)) {
    throw oauthError(
      'invalid_request',
      `subject_token_type ${type.slice(0, 80)} is not one of ${[...SUBJECT_TYPES].join(', ')}`,
    );
  }
  try {
    return await authority.userOfToken(token);
  } catch (caught) {
    const error = FloeError.from(caught);
    if (error.code === 'unauthorized') throw oauthError('invalid_grant', error.message);
    throw error;
  }
}

/** Refusals in the form of RFC 6749 §5.2, which differs from all other errors of the catalog. */
function refuse(reply: FastifyReply, caught: unknown) {
  const error = FloeError.from(caught);
  const [status, type] = refusalOf(error);
  if (status === undefined) throw error;
  if (status === 401) void reply.header('www-authenticate', 'Basic realm="floe"');
  return reply.code(status).send({ error: type, error_description: error.message });
}

function refusalOf({ code, details }: FloeError): [number, string] | [undefined, undefined] {
  if (typeof details['oauth'] === 'string') return [400, details['oauth']];
  if (code === 'unauthorized') return [401, 'invalid_client'];
  return code === 'invalid' ? [400, 'invalid_request'] : [undefined, undefined];
}
