// The operator's HTTP face: health, metrics, tables, SQL, and what to paste into other engines.
import { type FastifyInstance, fastify } from 'fastify';
import { FloeError } from '../base/error.ts';
import { httpRefusal } from '../base/http-refusal.ts';
import type { PrometheusMetrics } from '../base/metrics.ts';
import { type TableTopics, tableRoutes } from '../table-topic/index.ts';
import { type AttachOptions, attachTexts } from './attach.ts';
import type { Asking, ClusterStatus, NodeStatus } from './cluster-status.ts';

export interface OperatorOptions {
  readonly metrics: PrometheusMetrics;
  readonly tables: TableTopics;
  /** Known once the catalog listens. */
  readonly attach: () => AttachOptions;
  /** Builds the server of `/v1/sql`, called at the first query; undefined: this node answers none. */
  readonly sql: (() => Promise<FastifyInstance>) | undefined;
  /** This node, and the cluster as it sees it. */
  readonly cluster: {
    readonly node: () => NodeStatus;
    readonly status: (asking: Asking) => Promise<ClusterStatus>;
  };
}

export function operatorApp(options: OperatorOptions): FastifyInstance {
  const { metrics, tables, attach, sql, cluster } = options;
  const app = fastify({ routerOptions: { maxParamLength: 1_024 } });
  refuseClearly(app);
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.render()),
  );
  app.get('/v1/attach', async () => attachTexts(attach()));
  app.get('/v1/node', async () => cluster.node());
  app.get('/v1/cluster', async ({ headers: { authorization } }) =>
    cluster.status({ authorization }),
  );
  tableRoutes(app, { tables });
  if (sql !== undefined) void app.register(async (scope) => sqlFace(scope, sql));
  return app;
}

/** What fastify refuses by itself has the same body as every other error here. */
function refuseClearly(app: FastifyInstance): void {
  const body = (code: string, message: string) => ({ error: { code, message } });
  app.removeContentTypeParser('text/plain');
  app.setErrorHandler((caught, request, reply) => {
    const refusal = httpRefusal(caught, {
      contentType: request.headers['content-type'],
      accepts: 'application/json, or no body',
      body: 'a JSON object',
    });
    if (refusal !== undefined)
      return reply.code(refusal.status).send(body('invalid', refusal.message));
    const error = FloeError.from(caught);
    return reply.code(500).send(body(error.code, error.message));
  });
  app.setNotFoundHandler((request, reply) =>
    reply
      .code(404)
      .send(
        body(
          'not-found',
          `no route ${request.method} ${request.url.split('?', 1)[0]}: there are ${ROUTES}`,
        ),
      ),
  );
}

const ROUTES =
  'GET /healthz, /metrics, /v1/attach, /v1/node, /v1/cluster, /v1/tables, /v1/tables/NAME, POST /v1/sql, /v1/tables/NAME/{pause,resume,commit}';

/** DuckDB takes a while to load and much memory, so its server is built when somebody asks it something. */
function sqlFace(scope: FastifyInstance, sql: NonNullable<OperatorOptions['sql']>): void {
  let server: Promise<FastifyInstance> | undefined;
  scope.removeAllContentTypeParsers();
  // The body stays unread: the inner server reads it by its own limits.
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
  scope.post('/v1/sql', async (request, reply) => {
    server ??= sql();
    const inner = await server;
    reply.hijack();
    inner.routing(request.raw, reply.raw);
  });
  scope.addHook('onClose', async () => {
    if (server !== undefined) await (await server).close();
  });
}
