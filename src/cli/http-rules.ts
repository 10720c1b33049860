// What the routes of each HTTP face ask for, in the terms of Kafka's ACLs: a subject named after a topic, a topic's table
// and its rows are the topic's; what belongs to no topic is the cluster's. docs/security.md shows it as a table.
import type { FastifyRequest } from 'fastify';
import type { Operation, ResourceType } from '../broker/auth/index.ts';
import type { TableIdentifier } from '../catalog/index.ts';
import { normalSubject } from '../schema-registry/index.ts';
import { ZONE_PATH } from './compose/zone.ts';

export type Ask = readonly [operation: Operation, type: ResourceType, name?: string];

/** `open`: for everybody; `known`: for everybody who authenticates; else all of what is asked must be allowed. */
export type HttpRule = 'open' | 'known' | readonly Ask[];

const SEE_ALL: HttpRule = [['describe', 'cluster']];
const CHANGE_ALL: HttpRule = [['alter', 'cluster']];

type Routed = Pick<FastifyRequest, 'method' | 'params'> & {
  readonly routeOptions: { readonly url?: string | undefined };
};

const reads = ({ method }: Routed) => method === 'GET' || method === 'HEAD';

/** The subject that a request of the registry names, in its normal form; whether an alias may stand for it. */
export function namedSubject(request: Routed): { subject: string; aliased: boolean } | undefined {
  const { subject } = request.params as { readonly subject?: string };
  if (subject === undefined) return undefined;
  const aliased = !/^\/(config|mode)/.test(request.routeOptions.url ?? '');
  return { subject: normalSubject(subject), aliased };
}

/**
 * The registry: `<topic>-key` and `<topic>-value` of the default context are the topic's; schemas by id are for every
 * user, who can't list them. `subject` is what the request is about, its alias resolved.
 */
export function registryRule(request: Routed, subject?: string): HttpRule {
  const url = request.routeOptions.url ?? '';
  if (subject !== undefined) {
    const lookUp = reads(request) || /^\/compatibility|^\/subjects\/:subject$/.test(url);
    const removes = request.method === 'DELETE';
    const topic = /^(?!:\.)(.+)-(?:key|value)$/.exec(subject)?.[1];
    if (topic === undefined) return lookUp && !removes ? SEE_ALL : CHANGE_ALL;
    if (lookUp && !removes) return [['describe', 'topic', topic]];
    return [['write', 'topic', topic]];
  }
  if (!reads(request)) return CHANGE_ALL;
  return url === '/subjects' ||
    url === '/schemas' ||
    url.endsWith('/subjects') ||
    url.endsWith('/versions')
    ? SEE_ALL
    : 'known';
}

/** The catalog; `topicsOf` tells whose table an identifier names: who may not ask all of them may not ask it. */
export function catalogRule(
  request: Routed,
  topicsOf: (table: TableIdentifier) => readonly string[],
): HttpRule {
  const url = (request.routeOptions.url ?? '').replace('/:prefix', '');
  // Whoever asks for a token shows a password or a token in the request's body.
  if (url.endsWith('/oauth/tokens')) return 'open';
  const { namespace, table } = request.params as { namespace?: string; table?: string };
  if (table !== undefined && namespace !== undefined) {
    const topics = topicsOf({ namespace: namespace.split('\u001f'), name: table });
    const report = url.endsWith('/metrics');
    if (topics.length === 0) return reads(request) || report ? SEE_ALL : CHANGE_ALL;
    const drops = request.method === 'DELETE' || url.endsWith('/unregister');
    const change = drops ? 'delete' : 'alter';
    const operation = reads(request) || report ? 'read' : change;
    return topics.map((topic) => [operation, 'topic', topic] as const);
  }
  if (!reads(request)) return CHANGE_ALL;
  return /\/(?:tables|views|views\/:view)$/.test(url) ? SEE_ALL : 'known';
}

const SEEN_BY_OPERATORS = new Set(['/metrics', '/v1/tables', '/v1/cluster', '/v1/node']);

/** SQL, tables, metrics. Which tables a query may read is asked table by table. */
export function operatorRule(request: Routed): HttpRule {
  const url = request.routeOptions.url ?? '';
  const { name } = request.params as { readonly name?: string };
  if (url === '/healthz') return 'open';
  // Only nodes are served there, by a proof of their own.
  if (url === ZONE_PATH) return 'open';
  if (name !== undefined) return [[reads(request) ? 'describe' : 'alter', 'topic', name]];
  return SEEN_BY_OPERATORS.has(url) ? SEE_ALL : 'known';
}
