// Commands for a table that another node is at: sent there over HTTP with the caller's own authorization, so that this
// node lends nobody its rights. A request that was sent on once isn't sent on again: the two nodes see the table elsewhere
// for a moment, and the caller tries again.
import type { FastifyReply, FastifyRequest } from 'fastify';
import { FloeError } from '../base/error.ts';
import type { ClusterNode } from '../cluster/index.ts';

/** Says that a node sent the request on, and which. */
export const FORWARDED_HEADER = 'x-floe-forwarded';

/** Sends a request; the default is the runtime's `fetch`. */
export type Send = (
  url: string,
  request: {
    readonly method: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
  },
) => Promise<{ readonly status: number; text(): Promise<string> }>;

export interface ForwardTo {
  readonly node: ClusterNode;
  /** This node. */
  readonly self: number;
  readonly send: Send;
}

/** The other node's answer, as it came. @throws FloeError `unavailable` when there is none. */
export async function forward(
  request: FastifyRequest,
  reply: FastifyReply,
  { node, self, send }: ForwardTo,
): Promise<unknown> {
  const { nodeId, http } = node;
  if (request.headers[FORWARDED_HEADER] !== undefined) {
    throw new FloeError('unavailable', `the table is moving to node ${nodeId}: try again`);
  }
  if (http === null) {
    const remedy = 'give that node the role http, or stop it';
    throw new FloeError('unavailable', `node ${nodeId} is at the table and has no HTTP: ${remedy}`);
  }
  const { authorization } = request.headers;
  const hasBody = request.body !== undefined && request.body !== null;
  try {
    const answer = await send(`${http}${request.url}`, {
      method: request.method,
      headers: {
        [FORWARDED_HEADER]: String(self),
        ...(authorization === undefined ? {} : { authorization }),
        ...(hasBody ? { 'content-type': 'application/json' } : {}),
      },
      ...(hasBody ? { body: JSON.stringify(request.body) } : {}),
    });
    const text = await answer.text();
    reply.code(answer.status).header('content-type', 'application/json; charset=utf-8');
    return reply.send(text);
  } catch (caught) {
    const why = causeText(caught);
    throw new FloeError(
      'unavailable',
      `node ${nodeId} is at the table and does not answer at ${http} (${why}): ask it itself, or try again`,
      { cause: caught },
    );
  }
}

/** `fetch` hides the reason in its cause. */
function causeText(caught: unknown): string {
  const { message } = FloeError.from(caught instanceof Error ? (caught.cause ?? caught) : caught);
  return message;
}
