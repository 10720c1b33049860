// HTTP for table topics: status and commands. Mounted by the composition root on the process's API server.
//   GET  /v1/tables            all tables
//   GET  /v1/tables/:name      one, by topic name
//   POST /v1/tables/:name/compact | expire            maintenance at once
//   POST /v1/tables/:name/rewind   {"offsets": {"<partition>": <offset>}} or {"timestamp": <ISO 8601 or milliseconds>}
//   POST /v1/tables/:name/rebuild  the same for everything that the log has
//   POST /v1/tables/:name/replay   dead letters tried again: {"rows", "letters", "gone"}
//   POST /v1/tables/:name/pause | resume | commit     resume takes {"policy": "rewind" | "keep" | "restart"}
import type { FastifyInstance, FastifyReply } from 'fastify';
import { FloeError } from '../base/error.ts';
import type { Rewound } from './operations/rewind.ts';
import { parseRewindTo } from './operations/rewind-to.ts';
import { parsePolicy, RECOVERY_POLICIES } from './positions.ts';
import type { TableTopics } from './table-topics.ts';

const STATUS: Readonly<Partial<Record<FloeError['code'], number>>> = {
  invalid: 400,
  unsupported: 400,
  'not-found': 404,
  conflict: 409,
  unavailable: 503,
  timeout: 504,
};

export function tableRoutes(app: FastifyInstance, deps: { readonly tables: TableTopics }): void {
  const { tables } = deps;
  app.get('/v1/tables', (_request, reply) =>
    answer(reply, async () => ({ tables: await tables.list() })),
  );
  app.get<{ Params: { name: string } }>('/v1/tables/:name', ({ params }, reply) =>
    answer(reply, () => tables.status(params.name)),
  );
  app.post<{ Params: { name: string } }>('/v1/tables/:name/pause', ({ params }, reply) =>
    answer(reply, async () => {
      await tables.pause(params.name);
      return tables.status(params.name);
    }),
  );
  app.post<{ Params: { name: string }; Body: unknown }>(
    '/v1/tables/:name/resume',
    ({ params, body }, reply) =>
      answer(reply, async () => {
        await tables.resume(params.name, policyOf(body));
        return tables.status(params.name);
      }),
  );
  for (const what of ['compact', 'expire'] as const)
    app.post<{ Params: { name: string } }>(`/v1/tables/:name/${what}`, ({ params }, reply) =>
      answer(reply, async () => {
        await tables.maintain(params.name, what);
        return tables.status(params.name);
      }),
    );
  app.post<{ Params: { name: string }; Body: unknown }>(
    '/v1/tables/:name/rewind',
    ({ params, body }, reply) =>
      answer(reply, async () => rewound(await tables.rewind(params.name, parseRewindTo(body)))),
  );
  app.post<{ Params: { name: string } }>('/v1/tables/:name/rebuild', ({ params }, reply) =>
    answer(reply, async () => rewound(await tables.rewind(params.name, { kind: 'start' }))),
  );
  app.post<{ Params: { name: string } }>('/v1/tables/:name/replay', ({ params }, reply) =>
    answer(reply, () => tables.replay(params.name)),
  );
  app.post<{ Params: { name: string } }>('/v1/tables/:name/commit', ({ params }, reply) =>
    answer(reply, async () => {
      await tables.commit(params.name);
      return tables.status(params.name);
    }),
  );
}

/** No body, or `{"policy": …}`. @throws FloeError `invalid` for anything else: a word must not be lost. */
function policyOf(body: unknown) {
  if (body === undefined || body === null) return undefined;
  const names = typeof body === 'object' ? Object.keys(body) : [];
  if (typeof body !== 'object' || names.some((name) => name !== 'policy')) {
    throw new FloeError(
      'invalid',
      `the body ${JSON.stringify(body)} is not {"policy": "${RECOVERY_POLICIES.join('" | "')}"}: send that, or no body`,
    );
  }
  return 'policy' in body ? parsePolicy(String(body.policy)) : undefined;
}

const rewound = ({ rows, offsets }: Rewound) => ({ rows, offsets: Object.fromEntries(offsets) });

async function answer(reply: FastifyReply, work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (caught) {
    const error = FloeError.from(caught);
    reply.code(STATUS[error.code] ?? 500);
    return { error: { code: error.code, message: error.message } };
  }
}
