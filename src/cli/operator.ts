// The operator's HTTP face: health, metrics, tables, SQL, and what to paste into other engines.
import { type FastifyInstance, fastify } from 'fastify';
import type { PrometheusMetrics } from '../base/metrics.ts';
import { type TableTopics, tableRoutes } from '../table-topic/index.ts';
import { type AttachOptions, attachTexts } from './attach.ts';

export interface OperatorOptions {
  readonly metrics: PrometheusMetrics;
  readonly tables: TableTopics;
  /** Known once the catalog listens. */
  readonly attach: () => AttachOptions;
  /** Builds the server of `/v1/sql`; called at the first query. */
  readonly sql: () => Promise<FastifyInstance>;
}

export function operatorApp({ metrics, tables, attach, sql }: OperatorOptions): FastifyInstance {
  const app = fastify({ routerOptions: { maxParamLength: 1_024 } });
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.render()),
  );
  app.get('/v1/attach', async () => attachTexts(attach()));
  tableRoutes(app, { tables });
  void app.register(async (scope) => sqlFace(scope, sql));
  return app;
}

/** DuckDB takes a while to load and much memory, so its server is built when somebody asks it something. */
function sqlFace(scope: FastifyInstance, sql: OperatorOptions['sql']): void {
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
