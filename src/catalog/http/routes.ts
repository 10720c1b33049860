// The Iceberg REST catalog as a fastify plugin, and a server with the options it needs.
// Any prefix and any warehouse name is accepted: there is one warehouse.
import { type FastifyInstance, type FastifyServerOptions, fastify } from 'fastify';
import { FloeError } from '../../base/error.ts';
import { httpRefusal } from '../../base/http-refusal.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Values } from '../../base/settings.ts';
import { parseIcebergJson, stringifyIcebergJson } from '../../formats/iceberg/index.ts';
import type { EmbeddedCatalog } from '../embedded.ts';
import { catalogError, errorBody } from '../errors.ts';
import { MAX_NAME_LENGTH } from '../names.ts';
import type { catalogSettings } from '../settings.ts';
import type { CatalogTokens } from '../tokens.ts';
import { ENDPOINTS, fileAccess, type S3Access } from './config.ts';
import { namespaceRoutes } from './namespaces.ts';
import { oauthRoutes, type TokenAuthority } from './oauth.ts';
import { tableRoutes } from './tables.ts';
import { viewRoutes } from './views.ts';

/** A form holds a password or a token. */
const MAX_FORM_BYTES = 64 * 1024;

export interface CatalogRoutesOptions {
  readonly catalog: EmbeddedCatalog;
  readonly s3: S3Access;
  readonly settings: Values<typeof catalogSettings>;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tokens: CatalogTokens;
  /** Who checks passwords and tokens; undefined where nobody has to authenticate. */
  readonly authority?: TokenAuthority | undefined;
}

/** Options that a fastify instance with these routes must have: names may be long and are percent-encoded. */
export const catalogServerOptions: FastifyServerOptions = {
  routerOptions: { maxParamLength: 12 * MAX_NAME_LENGTH },
};

/** A fastify instance that serves the catalog only. The caller listens and closes. */
export function createCatalogServer(options: CatalogRoutesOptions): FastifyInstance {
  const app = fastify(catalogServerOptions);
  catalogRoutes(app, options);
  return app;
}

/** Adds the catalog under `/v1` and `/v1/{prefix}`. */
export function catalogRoutes(app: FastifyInstance, options: CatalogRoutesOptions): void {
  void app.register(async (scope) => serve(scope, options), { prefix: '/v1' });
}

async function serve(scope: FastifyInstance, options: CatalogRoutesOptions): Promise<void> {
  const { catalog, s3, settings, logger, metrics, tokens, authority } = options;
  const access = fileAccess(catalog.warehouse.uri, s3, settings['catalog.vend.credentials']);
  readBodies(scope, settings['catalog.max.request.bytes']);
  scope.setSerializerCompiler(() => stringifyIcebergJson);
  scope.setReplySerializer(stringifyIcebergJson);
  scope.setErrorHandler((caught, request, reply) => {
    const body = errorBody(httpError(caught, settings['catalog.max.request.bytes']));
    if (body.error.code >= 500)
      logger.warn({ url: request.url, error: body.error.message }, 'catalog request failed');
    return reply.code(body.error.code).send(body);
  });
  scope.setNotFoundHandler((request, reply) => {
    const path = request.url.split('?', 1)[0];
    return reply
      .code(404)
      .send(errorBody(catalogError('not-found', 'NotFoundException', `no route ${path}`)));
  });
  scope.get('/config', async () => ({
    defaults: access.config,
    overrides: {},
    endpoints: ENDPOINTS,
  }));
  oauthRoutes(scope, { tokens, authority });
  const all = async (routes: FastifyInstance) => {
    namespaceRoutes(routes, catalog);
    tableRoutes(routes, { catalog, access, metrics });
    viewRoutes(routes, catalog.views);
  };
  await scope.register(all);
  await scope.register(all, { prefix: '/:prefix' });
}

/** JSON with exact 64-bit numbers, whatever the content type says; forms where a client asks for a token. */
function readBodies(scope: FastifyInstance, bodyLimit: number): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    (_request, body, done) => done(null, new URLSearchParams(body as string)),
  );
  scope.addContentTypeParser('*', { parseAs: 'string', bodyLimit }, (_request, body, done) => {
    try {
      done(null, body === '' ? undefined : parseIcebergJson(body as string));
    } catch (caught) {
      done(FloeError.from(caught));
    }
  });
}

/** Fastify's own refusals (body too large, bad encoding) → our codes. */
function httpError(caught: unknown, limit: number): unknown {
  if (caught instanceof FloeError) return caught;
  const refusal = httpRefusal(caught, {
    contentType: undefined,
    accepts: 'application/json',
    body: `at most ${limit} bytes of JSON (catalog.max.request.bytes)`,
  });
  return refusal === undefined
    ? caught
    : new FloeError('invalid', refusal.message, { cause: caught });
}
