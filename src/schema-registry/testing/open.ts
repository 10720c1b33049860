// A registry on a database in memory, asked over injected requests. For the tests of this folder.
import { fastify } from 'fastify';
import { resolveSettings } from '../../base/settings.ts';
import type { RegistryMetadata } from '../../metadata/registry.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { registryRoutes, registryServerOptions } from '../http/routes.ts';
import { SchemaRegistry } from '../registry.ts';
import { registrySettings } from '../settings.ts';

/** What the routes are asked with. */
export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/**
 * `call` sends a request and gives status and JSON; `register` posts a version; `wrap` may spoil the store.
 */
export function open(
  set: Record<string, string> = {},
  wrap = (metadata: RegistryMetadata) => metadata,
) {
  const metadata = wrap(openSqliteMetadata(':memory:').registry);
  const registry = new SchemaRegistry(metadata, resolveSettings(registrySettings, set));
  const app = fastify(registryServerOptions);
  registryRoutes(app, registry);
  const call = async (method: Method, url: string, body?: unknown) => {
    const response = await app.inject({
      method,
      url,
      headers: { 'content-type': 'application/vnd.schemaregistry.v1+json' },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    });
    return { status: response.statusCode, body: response.body === '' ? null : response.json() };
  };
  const register = async (subject: string, schema: unknown, others: object = {}) => {
    const url = `/subjects/${encodeURIComponent(subject)}/versions`;
    const text = typeof schema === 'string' ? schema : JSON.stringify(schema);
    return call('POST', url, { schema: text, ...others });
  };
  return { app, registry, call, register };
}
