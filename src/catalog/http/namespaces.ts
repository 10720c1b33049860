// Namespaces over HTTP. Source: Iceberg REST OpenAPI.
import type { FastifyInstance } from 'fastify';
import { asList, asText, asTextMap } from '../../formats/iceberg/index.ts';
import { LEVEL_SEPARATOR } from '../../metadata/catalog.ts';
import type { EmbeddedCatalog } from '../embedded.ts';
import { catalogError } from '../errors.ts';
import { bodyOf, namespaceFrom, namespaceOf, nextToken, page, queryOf } from './request.ts';

export function namespaceRoutes(app: FastifyInstance, catalog: EmbeddedCatalog): void {
  app.get('/namespaces', async (request) => {
    const parent = queryOf(request, 'parent') ?? '';
    const levels = parent === '' ? [] : parent.split(LEVEL_SEPARATOR);
    const found = await page(
      request,
      (range) => catalog.listNamespaces(levels, range),
      (namespace) => namespace.join(LEVEL_SEPARATOR),
    );
    return { namespaces: found.items, ...nextToken(found) };
  });

  app.post('/namespaces', async (request) => {
    const body = bodyOf(request);
    const namespace = namespaceFrom(body['namespace']);
    const properties = asTextMap(body['properties'] ?? {}, 'properties');
    await catalog.createNamespace(namespace, properties);
    return { namespace, properties };
  });

  app.get('/namespaces/:namespace', { exposeHeadRoute: false }, async (request) => {
    const namespace = namespaceOf(request);
    return { namespace, properties: await catalog.namespaceProperties(namespace) };
  });

  app.head('/namespaces/:namespace', async (request, reply) => {
    await catalog.namespaceProperties(namespaceOf(request));
    return reply.code(204).send();
  });

  app.delete('/namespaces/:namespace', async (request, reply) => {
    await catalog.dropNamespace(namespaceOf(request));
    return reply.code(204).send();
  });

  app.post('/namespaces/:namespace/properties', async (request) => {
    const body = bodyOf(request);
    const updates = asTextMap(body['updates'] ?? {}, 'updates');
    const removals = [
      ...new Set(
        asList(body['removals'] ?? [], 'removals').map((name) => asText(name, 'removals')),
      ),
    ];
    const both = removals.find((name) => Object.hasOwn(updates, name));
    if (both !== undefined) {
      throw catalogError(
        'invalid',
        'UnprocessableEntityException',
        `property "${both}" is both set and removed`,
      );
    }
    const missing = await catalog.alterNamespace(namespaceOf(request), { updates, removals });
    return {
      updated: Object.keys(updates),
      removed: removals.filter((name) => !missing.includes(name)),
      missing,
    };
  });
}
