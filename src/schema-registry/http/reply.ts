// Results and errors → HTTP, in the registry's media type.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FloeError } from '../../base/error.ts';
import { httpRefusal } from '../../base/http-refusal.ts';

const MEDIA_TYPE = 'application/vnd.schemaregistry.v1+json';
/** Request bodies are JSON under any of these names, or under none. */
const REQUEST_TYPES = [
  MEDIA_TYPE,
  'application/vnd.schemaregistry+json',
  'application/json',
  'application/octet-stream',
];

/** Statuses of errors that carry no code of the registry: Confluent's 500xx. */
const BACKEND: Partial<Record<FloeError['code'], { code: number; message: string }>> = {
  timeout: { code: 50002, message: 'Operation timed out' },
};

/** Parsers, media type and error bodies of the registry's routes. */
export function setUpReplies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  for (const type of [...REQUEST_TYPES, ''])
    app.addContentTypeParser(
      type === '' ? /^$/ : type,
      { parseAs: 'string' },
      (_request, body, done) => {
        try {
          done(null, body === '' ? undefined : JSON.parse(body as string));
        } catch (caught) {
          done(Object.assign(FloeError.from(caught, 'the body is not JSON'), { statusCode: 400 }));
        }
      },
    );
  app.addHook('onSend', async (request, reply, payload) => {
    reply.header('content-type', responseType(request));
    return payload;
  });
  app.setNotFoundHandler((request, reply) =>
    sendError(
      reply,
      404,
      404,
      `HTTP 404 Not Found: no resource ${request.method} ${request.url.split('?', 1)[0]}`,
    ),
  );
  app.setErrorHandler((error, request, reply) => replyError(error, request, reply));
}

/** Plain JSON for those who ask for nothing else, the registry's own type for the rest. */
function responseType(request: FastifyRequest): string {
  const accept = request.headers.accept ?? '';
  return accept.includes('application/json') && !accept.includes('vnd.schemaregistry')
    ? 'application/json'
    : MEDIA_TYPE;
}

function replyError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const floe = FloeError.from(error);
  const { registryCode } = floe.details;
  if (typeof registryCode === 'number')
    return sendError(reply, Number(String(registryCode).slice(0, 3)), registryCode, floe.message);
  const refusal = httpRefusal(error, {
    contentType: request.headers['content-type'],
    accepts: REQUEST_TYPES.slice(0, 3).join(' or '),
    body: `at most ${request.routeOptions.bodyLimit} bytes of JSON`,
  });
  if (refusal !== undefined)
    return sendError(reply, refusal.status, refusal.status, refusal.message);
  const { code, message } = BACKEND[floe.code] ?? {
    code: 50001,
    message: 'Error in the backend data store',
  };
  return sendError(reply, 500, code, `${message}: ${floe.message}`);
}

function sendError(
  reply: FastifyReply,
  status: number,
  code: number,
  message: string,
): FastifyReply {
  return reply.code(status).send({ error_code: code, message });
}
