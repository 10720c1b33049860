// HTTP for table topics: status and commands. Mounted by the composition root on the process's API server. In a cluster
// status is any node's to give; a command goes to the node that is at the table (forward.ts).
//   GET  /v1/tables            all tables
//   GET  /v1/tables/:name      one, by topic name
//   POST /v1/tables/:name/compact | expire            maintenance at once
//   POST /v1/tables/:name/rewind   {"offsets": {"<partition>": <offset>}} or {"timestamp": <ISO 8601 or milliseconds>}
//   POST /v1/tables/:name/rebuild  the same for everything that the log has
//   POST /v1/tables/:name/replay   dead letters tried again: {"rows", "letters", "gone"}
//   POST /v1/tables/:name/pause | resume | commit     resume takes {"policy": "rewind" | "keep" | "restart"}
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { FloeError } from '../base/error.ts';
import { forward, type Send } from './forward.ts';
import type { Rewound } from './operations/rewind.ts';
import { parseRewindTo } from './operations/rewind-to.ts';
import { parsePolicy, RECOVERY_POLICIES } from './positions.ts';
import type { TableDuty, TableTopics } from './table-topics.ts';

const STATUS: Readonly<Partial<Record<FloeError['code'], number>>> = {
  invalid: 400,
  unsupported: 400,
  'not-found': 404,
  conflict: 409,
  unavailable: 503,
  timeout: 504,
};

export interface TableRouteDeps {
  readonly tables: TableTopics;
  /** How other nodes are reached. */
  readonly send?: Send;
}

type Named = { Params: { name: string }; Body: unknown };

/** A command's work on the node that is at the table. */
type Command = (name: string, body: unknown) => Promise<unknown>;

export function tableRoutes(app: FastifyInstance, { tables, send = fetch }: TableRouteDeps): void {
  const onNode = (duty: TableDuty, work: Command) => {
    return (request: FastifyRequest<Named>, reply: FastifyReply) =>
      answer(reply, async () => {
        const { name } = request.params;
        const elsewhere = await tables.elsewhere(name, duty);
        if (elsewhere === undefined) return work(name, request.body);
        return forward(request, reply, { ...elsewhere, send });
      });
  };
  const command = (verb: string, duty: TableDuty, work: Command) =>
    app.post<Named>(`/v1/tables/:name/${verb}`, onNode(duty, work));
  const thenStatus =
    (work: Command): Command =>
    async (name, body) => {
      await work(name, body);
      return tables.status(name);
    };

  app.get('/v1/tables', (_request, reply) =>
    answer(reply, async () => ({ tables: await tables.list() })),
  );
  app.get<Named>('/v1/tables/:name', ({ params }, reply) =>
    answer(reply, () => tables.status(params.name)),
  );
  const pause = thenStatus((name) => tables.pause(name));
  const resume = thenStatus((name, body) => tables.resume(name, policyOf(body)));
  command('pause', 'coordinator', pause);
  command('resume', 'coordinator', resume);
  command(
    'commit',
    'coordinator',
    thenStatus((name) => tables.commit(name)),
  );
  for (const what of ['compact', 'expire'] as const) {
    command(
      what,
      'upkeep',
      thenStatus((name) => tables.maintain(name, what)),
    );
  }
  command('rewind', 'coordinator', async (name, body) =>
    rewound(await tables.rewind(name, parseRewindTo(body))),
  );
  command('rebuild', 'coordinator', async (name) =>
    rewound(await tables.rewind(name, { kind: 'start' })),
  );
  command('replay', 'coordinator', (name) => tables.replay(name));
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
