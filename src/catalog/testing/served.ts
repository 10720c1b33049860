// Our own catalog behind HTTP with authentication, and a client of it whose answers can be lost, late or old: what the
// external REST client is tested against. For tests only.
import type { FastifyInstance } from 'fastify';
import { type Clock, systemClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { MemoryObjectStore } from '../../storage/objects/memory.ts';
import { EmbeddedCatalog } from '../embedded.ts';
import { createCatalogServer } from '../http/routes.ts';
import { type Fetch, noAuth, type RestAuth, RestHttp } from '../rest/http.ts';
import { OAuth2Auth } from '../rest/oauth2.ts';
import { RestCatalog, type RestCatalogOptions } from '../rest/rest-catalog.ts';
import { catalogSettings } from '../settings.ts';
import { CatalogTokens } from '../tokens.ts';
import { Warehouse } from '../warehouse.ts';

export interface Served {
  readonly app: FastifyInstance;
  readonly embedded: EmbeddedCatalog;
  readonly warehouse: Warehouse;
  readonly tokens: CatalogTokens;
  /** Without trailing slash. */
  readonly uri: string;
  /** Every request with its status, as `POST /v1/… 200`. */
  readonly requests: string[];
}

/** Listens on a free port of 127.0.0.1; takes Bearer tokens that it issued to `floe:secret`. */
export async function serveCatalog(clock: Clock = systemClock): Promise<Served> {
  const settings = resolveSettings(catalogSettings, {});
  const metadata = openSqliteMetadata(':memory:').catalog;
  const ids = seededIds(seededPrng(11));
  const shared = { metadata, clock, ids, logger: silentLogger, settings, metrics: noMetrics };
  const warehouse = new Warehouse(new MemoryObjectStore(clock), 'w/');
  const embedded = new EmbeddedCatalog({ ...shared, warehouse });
  const tokens = new CatalogTokens({ ...shared, lifetimeMs: 60_000 });
  const app = createCatalogServer({
    ...shared,
    catalog: embedded,
    s3: NO_S3,
    tokens,
    authority: {
      async login(user, password) {
        if (user === 'floe' && password === 'secret') return user;
        throw new FloeError('unauthorized', 'wrong user or password');
      },
      userOfToken: (token) => tokens.verify(token),
    },
  });
  const requests: string[] = [];
  app.addHook('onRequest', async (request, reply) => {
    if (request.url.startsWith('/v1/oauth/')) return;
    const token = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    const user = await tokens.verify(token).catch(() => undefined);
    if (user !== undefined) return;
    await reply
      .code(401)
      .send({ error: { message: 'who are you?', type: 'NotAuthorizedException', code: 401 } });
  });
  app.addHook('onResponse', async (request, reply) => {
    requests.push(`${request.method} ${request.url} ${reply.statusCode}`);
  });
  const uri = await app.listen({ host: '127.0.0.1', port: 0 });
  return { app, embedded, warehouse, tokens, uri, requests };
}

const NO_S3 = {
  endpoint: '',
  region: '',
  pathStyle: true,
  accessKeyId: '',
  secretAccessKey: '',
  sessionToken: '',
};

/** What happens to the next request that fits, between client and catalog. */
export interface Fault {
  readonly fits: (method: string, url: string) => boolean;
  /** The catalog's answer can be had by `real`; the client gets what is returned. */
  readonly answer: (real: () => Promise<Response>, url: string) => Promise<Response>;
}

/** A `fetch` with faults in the way, used up one by one. */
export class FaultyFetch {
  readonly faults: Fault[] = [];
  readonly #first = new Map<string, string>();

  readonly fetch: Fetch = (url, init) => {
    const at = this.faults.findIndex(({ fits }) => fits(init.method ?? 'GET', url));
    const real = () => this.#real(url, init);
    if (at < 0) return real();
    const [fault] = this.faults.splice(at, 1);
    return fault!.answer(real, url);
  };

  /** The first answer that a GET of `url` ever got. */
  first(url: string): Response {
    return new Response(this.#first.get(url));
  }

  async #real(url: string, init: RequestInit): Promise<Response> {
    const response = await fetch(url, init);
    if (init.method !== 'GET' || !response.ok) return response;
    const text = await response.text();
    if (!this.#first.has(url)) this.#first.set(url, text);
    return new Response(text, { status: response.status, headers: response.headers });
  }
}

/** What Node's fetch throws when the connection breaks. */
export function brokenConnection(code = 'ECONNRESET'): Error {
  return new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
}

export function restClient(
  served: Pick<Served, 'uri'>,
  fetch: Fetch,
  options: Partial<RestCatalogOptions> & { readonly auth?: RestAuth; readonly clock?: Clock } = {},
): RestCatalog {
  const clock = options.clock ?? systemClock;
  const auth = options.auth ?? floeAuth(served, fetch, clock);
  return new RestCatalog({
    http: new RestHttp({ fetch, clock, auth, timeoutMs: 10_000, maxBytes: 16 * 1024 * 1024 }),
    clock,
    prng: seededPrng(1),
    uri: served.uri,
    warehouse: 'anything',
    readAttempts: 3,
    staleMs: 60_000,
    cacheBytes: 1024 * 1024,
    ...options,
  });
}

export const floeAuth = ({ uri }: Pick<Served, 'uri'>, fetch: Fetch, clock: Clock): RestAuth =>
  new OAuth2Auth({
    fetch,
    clock,
    tokenUrl: `${uri}/v1/oauth/tokens`,
    credential: 'floe:secret',
    scope: 'catalog',
    parameters: {},
    timeoutMs: 10_000,
  });

export const anonymous = noAuth;
