// Views over HTTP: create, load, replace, register, rename, drop. Source: Iceberg REST OpenAPI.
import type { FastifyInstance, FastifyReply } from 'fastify';
import { asText } from '../../formats/iceberg/index.ts';
import { catalogError } from '../errors.ts';
import type { StoredView } from '../metadata-files.ts';
import { shownTable } from '../names.ts';
import type { EmbeddedViews } from '../views.ts';
import {
  bodyOf,
  commitFrom,
  identifierFrom,
  namespaceOf,
  nextToken,
  page,
  viewOf,
  viewRequestFrom,
} from './request.ts';

const VIEW = '/namespaces/:namespace/views/:view';

export function viewRoutes(app: FastifyInstance, views: EmbeddedViews): void {
  app.get('/namespaces/:namespace/views', async (request) => {
    const found = await page(
      request,
      (range) => views.list(namespaceOf(request), range),
      (view) => view.name,
    );
    return { identifiers: found.items, ...nextToken(found) };
  });

  app.post('/namespaces/:namespace/views', async (request, reply) =>
    sendView(reply, await views.create(namespaceOf(request), viewRequestFrom(bodyOf(request)))),
  );

  app.get(VIEW, { exposeHeadRoute: false }, async (request, reply) =>
    sendView(reply, await views.load(viewOf(request))),
  );

  app.head(VIEW, async (request, reply) => {
    const view = viewOf(request);
    if (!(await views.exists(view))) {
      throw catalogError(
        'not-found',
        'NoSuchViewException',
        `View does not exist: ${shownTable(view)}`,
      );
    }
    return reply.code(204).send();
  });

  app.post(VIEW, async (request, reply) =>
    sendView(reply, await views.commit(viewOf(request), commitFrom(bodyOf(request)))),
  );

  app.delete(VIEW, async (request, reply) => {
    await views.drop(viewOf(request));
    return reply.code(204).send();
  });

  app.post('/namespaces/:namespace/register-view', async (request, reply) => {
    const body = bodyOf(request);
    const view = { namespace: namespaceOf(request), name: asText(body['name'], 'name') };
    const location = asText(body['metadata-location'], 'metadata-location');
    return sendView(reply, await views.register(view, location));
  });

  app.post('/views/rename', async (request, reply) => {
    const body = bodyOf(request);
    await views.rename(identifierFrom(body['source']), identifierFrom(body['destination']));
    return reply.code(204).send();
  });
}

/** The metadata's text goes out as it is stored: nothing is parsed and printed again. */
function sendView(reply: FastifyReply, { location, text }: StoredView) {
  return reply
    .type('application/json')
    .send(`{"metadata-location":${JSON.stringify(location)},"metadata":${text}}`);
}
