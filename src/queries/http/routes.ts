// `POST /v1/sql` with `{"query": "SELECT …"}`; the answer by Accept: application/json (`{columns: [{name, type}], rows}`),
// application/x-ndjson, text/csv, application/vnd.apache.arrow.stream. How values look in JSON: values.ts.
// Errors: `{"error": {"code", "message", "line"?, "column"?}}`, 400 for the query's faults, 504 past the time limit,
// 413 past a size limit, 503 when too many wait. A client that goes away ends its query.
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import { type ErrorCode, FloeError } from '../../base/error.ts';
import { httpRefusal } from '../../base/http-refusal.ts';
import type { Logger } from '../../base/log.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { Values } from '../../base/settings.ts';
import type { TableIdentifier } from '../../catalog/catalog.ts';
import type { QueryService } from '../service.ts';
import type { querySettings } from '../settings.ts';
import { paced, type ReadQuota } from './paced.ts';
import { chooseWriter, type ResultWriter, writers } from './writers.ts';

export interface SqlRoutesOptions {
  readonly service: QueryService;
  readonly settings: Values<typeof querySettings>;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** Whether the sender of a request may read a table; everybody may, if not said. */
  readonly mayRead?: (request: IncomingMessage, table: TableIdentifier) => boolean;
  /** The quota of a request's sender, if it has one. */
  readonly quotaOf?: (request: IncomingMessage) => ReadQuota | undefined;
}

const STATUS: Readonly<Record<ErrorCode, number>> = {
  invalid: 400,
  unauthorized: 403,
  'not-found': 404,
  conflict: 409,
  exhausted: 413,
  cancelled: 499,
  corrupt: 500,
  internal: 500,
  unsupported: 501,
  unavailable: 503,
  timeout: 504,
};

/** What JSON around the query may add to its length. */
const ENVELOPE_BYTES = 1024;

export function sqlRoutes(app: FastifyInstance, options: SqlRoutesOptions): void {
  // JSON may spell a character with six: the query's own length is checked by the service.
  const limit = options.settings['sql.max.query.bytes'];
  const bodyLimit = limit * 6 + ENVELOPE_BYTES;
  // JSON only: else a body of that type would be refused for what is in it.
  app.removeContentTypeParser('text/plain');
  app.setErrorHandler((caught, request, reply) => {
    const { status, message } = httpRefusal(caught, {
      contentType: request.headers['content-type'],
      accepts: 'application/json',
      body: `{"query": "SELECT …"}, the query of at most ${limit} bytes (sql.max.query.bytes)`,
    }) ?? { status: 500, message: FloeError.from(caught).message };
    const code = status === 413 ? 'exhausted' : status < 500 ? 'invalid' : 'internal';
    return reply.code(status).send(errorBody(new FloeError(code, message)));
  });
  app.post('/v1/sql', { bodyLimit }, async (request, reply) => {
    const started = options.clock.monotonic();
    let outcome = 'ok';
    try {
      return await answer(options, request, reply);
    } catch (caught) {
      const error = FloeError.from(caught);
      outcome = error.code;
      if (STATUS[error.code] >= 500)
        options.logger.warn({ code: error.code, error: error.message }, 'query failed');
      return reply.code(STATUS[error.code]).type('application/json').send(errorBody(error));
    } finally {
      const seconds = (options.clock.monotonic() - started) / 1000;
      options.metrics.seconds('floe_sql_seconds', 'Time to the first rows of a query', seconds, {
        outcome,
      });
    }
  });
}

function errorBody({ code, message, details }: FloeError) {
  const { line, column } = details;
  return {
    error: {
      code,
      message,
      ...(line === undefined ? {} : { line }),
      ...(column === undefined ? {} : { column }),
    },
  };
}

async function answer(
  { service, settings, mayRead, quotaOf, clock }: SqlRoutesOptions,
  request: FastifyRequest,
  reply: FastifyReply,
) {
  const writer = chooseWriter(request.headers.accept);
  if (writer === undefined) {
    const known = writers.map(({ mediaType }) => mediaType).join(', ');
    return reply
      .code(406)
      .send(
        errorBody(
          new FloeError('invalid', `Accept: ${request.headers.accept} is none of ${known}`),
        ),
      );
  }
  const query = (request.body as { query?: unknown } | null)?.query;
  if (typeof query !== 'string' || query.trim() === '')
    throw new FloeError('invalid', 'the body must be {"query": "SELECT …"}');
  const gone = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  const result = await service.query(query, {
    signal: gone.signal,
    whole: writer.whole,
    ...(mayRead === undefined ? {} : { mayRead: (table) => mayRead(request.raw, table) }),
  });
  const bytes = writer.write(result, { maxRows: settings['sql.max.result.rows'] });
  const quota = quotaOf?.(request.raw);
  if (quota === undefined) return send(reply, writer, bytes);
  const maxWaitMs = settings['sql.timeout.ms'];
  return send(reply, writer, paced(bytes, { quota, clock, signal: gone.signal, maxWaitMs }));
}

/** Waits for the first part, so that a query that fails before it gets its status. */
async function send(
  reply: FastifyReply,
  writer: ResultWriter,
  bytes: AsyncIterable<string | Uint8Array>,
) {
  const iterator = bytes[Symbol.asyncIterator]();
  const first = await iterator.next();
  const body = Readable.from(resume(first, iterator), { objectMode: false });
  return reply
    .type(writer.mediaType === 'text/csv' ? 'text/csv; charset=utf-8' : writer.mediaType)
    .send(body);
}

async function* resume<T>(first: IteratorResult<T>, rest: AsyncIterator<T>): AsyncGenerator<T> {
  try {
    for (let next = first; next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    // A reader that stops early ends the query too.
    await rest.return?.();
  }
}
