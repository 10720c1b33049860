// Manual assignments of partitions to brokers: accepted where Kafka takes them, as lists of distinct living
// brokers of one length; they change nothing: every broker serves every partition, durability is the storage's, and
// clients meet where Metadata sends them.
import type { RequestContext } from '../handler.ts';

/** Ids of the living brokers. */
export function brokerIds({ services, connection }: RequestContext): ReadonlySet<number> {
  return new Set(services.cluster.brokers(connection.listener).map(({ nodeId }) => nodeId));
}

/** Why partitions can't have these lists of replicas, for people; undefined when they can. */
export function replicasFault(
  lists: readonly (readonly number[])[],
  ids: ReadonlySet<number>,
): string | undefined {
  for (const list of lists) {
    if (list.length === 0) return 'a list of replicas is empty';
    const strange = list.find((id) => !ids.has(id));
    if (strange !== undefined) return `there is no broker ${strange}, only ${[...ids].join(', ')}`;
    const twice = list.find((id, at) => list.indexOf(id) !== at);
    if (twice !== undefined) return `a list of replicas names broker ${twice} twice`;
    if (list.length !== lists[0]!.length)
      return `lists of ${lists[0]!.length} and ${list.length} replicas: all partitions must have as many`;
  }
  return undefined;
}
