// The registry's HTTP interface as one Fastify plugin: Confluent's API, version 1. What isn't served, and why, is in
// docs/schema-registry.md.
import type { FastifyInstance, FastifyServerOptions } from 'fastify';
import type { SchemaRegistry } from '../registry.ts';
import { configRoutes, modeRoutes } from './config.ts';
import { page } from './input.ts';
import { setUpReplies } from './reply.ts';
import { schemaRoutes } from './schemas.ts';
import { subjectRoutes } from './subjects.ts';

/**
 * Options that the server under the plugin needs: subjects longer than the router's default of 100 characters,
 * and bodies as large as the largest schema, escaped, with its references.
 */
export const registryServerOptions = {
  bodyLimit: 4 * 1024 * 1024,
  routerOptions: { maxParamLength: 4_096 },
} satisfies FastifyServerOptions;

/** Registers all routes on `app`, which serves nothing else (media types and error bodies are the registry's). */
export function registryRoutes(app: FastifyInstance, registry: SchemaRegistry): void {
  setUpReplies(app);
  app.get('/', async () => ({}));
  app.get('/contexts', async (request) => page(request, await registry.contexts()));
  app.get('/v1/metadata/id', async () => ({
    scope: { path: [], clusters: { 'schema-registry-cluster': 'floe' } },
    id: '',
  }));
  app.get('/v1/metadata/version', async () => ({ version: 'floe', commitId: '' }));
  schemaRoutes(app, registry);
  subjectRoutes(app, registry);
  configRoutes(app, registry);
  modeRoutes(app, registry);
}
