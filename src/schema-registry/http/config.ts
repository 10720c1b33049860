// Routes under /config and /mode: global values, a subject's own, and the fall-back from one to the other.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { errors } from '../errors.ts';
import type { SchemaRegistry } from '../registry.ts';
import { parseConfig, parseMode } from '../subject-settings.ts';
import { flag, objectBody, pathSubject } from './input.ts';
import { configBody, modeBody } from './output.ts';

/** Undefined on the routes without one. */
function subject(request: FastifyRequest): string | undefined {
  return pathSubject(request) || undefined;
}

export function configRoutes(app: FastifyInstance, registry: SchemaRegistry): void {
  const { settings } = registry;

  app.get('/config', async () => configBody((await settings.config())!));

  app.get('/config/:subject', async (request) => {
    const name = pathSubject(request);
    if (flag(request, 'defaultToGlobal')) return configBody(await settings.effectiveConfig(name));
    const own = await settings.config(name);
    if (own === undefined) throw errors.noSubjectCompatibility(name);
    return configBody(own);
  });

  for (const path of ['/config', '/config/:subject']) {
    app.put(path, async (request) => {
      const change = parseConfig(objectBody(request));
      return settings.setConfig(subject(request), change);
    });
    app.delete(path, async (request) => configBody(await settings.deleteConfig(subject(request))));
  }
}

export function modeRoutes(app: FastifyInstance, registry: SchemaRegistry): void {
  const { settings } = registry;

  app.get('/mode', async () => modeBody((await settings.mode())!));

  app.get('/mode/:subject', async (request) => {
    const name = pathSubject(request);
    if (flag(request, 'defaultToGlobal')) return modeBody(await settings.effectiveMode(name));
    const own = await settings.mode(name);
    if (own === undefined) throw errors.noSubjectMode(name);
    return modeBody(own);
  });

  for (const path of ['/mode', '/mode/:subject']) {
    app.put(path, async (request) => {
      const mode = parseMode(objectBody(request)['mode']);
      await settings.setMode(subject(request), mode, flag(request, 'force'));
      return modeBody(mode);
    });
    app.delete(path, async (request) => modeBody(await settings.deleteMode(subject(request))));
  }
}
