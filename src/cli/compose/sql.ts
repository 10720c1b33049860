// The server of `/v1/sql`, with DuckDB behind it: built at the first query.
import type { IncomingMessage } from 'node:http';
import { type FastifyInstance, fastify } from 'fastify';
import type { ClientQuotas } from '../../broker/quotas/index.ts';
import type { Catalog, TableIdentifier, Warehouse } from '../../catalog/index.ts';
import type { TableTopics } from '../../table-topic/index.ts';
import type { HttpAuth } from '../http-auth.ts';
import type { Node } from './node.ts';

export interface SqlParts {
  readonly catalog: Catalog;
  readonly warehouse: Warehouse;
  readonly tables: TableTopics;
  readonly auth: HttpAuth;
  readonly quotas: ClientQuotas;
}

export async function startSql(node: Node, parts: SqlParts): Promise<FastifyInstance> {
  const { openQueries, sqlRoutes } = await import('../../queries/index.ts');
  const { catalog, warehouse, tables, auth, quotas } = parts;
  const { options, settings, clock } = node;
  const service = await openQueries({
    ...node,
    catalog,
    warehouse,
    dataDir: options.dataDir,
    tableOfTopic: (topic) => tables.tableOf(topic),
    tail: { read: (identifier, metadata) => tables.tail(identifier, metadata) },
  });
  const app = fastify();
  const mayRead = (request: IncomingMessage, table: TableIdentifier) =>
    auth.mayRead(request, tables.topicsOf(table));
  const quotaOf = (request: IncomingMessage) => {
    // HTTP knows users, not client ids.
    const fetch = quotas.limits(auth.accessOf(request).who.principal.name, '')?.fetch;
    if (fetch === undefined) return undefined;
    return { charge: (bytes: number) => fetch.charge(bytes, clock.monotonic()) };
  };
  sqlRoutes(app, { ...node, service, settings, mayRead, quotaOf });
  app.addHook('onClose', () => service.stop());
  await app.ready();
  return app;
}
