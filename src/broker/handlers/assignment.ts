// Manual assignments of partitions to brokers: accepted where they name one living broker each, though every broker
// serves every partition and clients meet where Metadata sends them.
import type { RequestContext } from '../handler.ts';

/** Ids of the living brokers. */
export function brokerIds({ services, connection }: RequestContext): ReadonlySet<number> {
  return new Set(services.cluster.brokers(connection.listener).map(({ nodeId }) => nodeId));
}

/** True for a list of replicas that a partition can have. */
export function isOneOf(replicas: readonly number[], ids: ReadonlySet<number>): boolean {
  return replicas.length === 1 && ids.has(replicas[0]!);
}

/** For people: where a partition can go. */
export const toOneOf = (ids: ReadonlySet<number>): string => `to broker ${[...ids].join(' or ')}`;
