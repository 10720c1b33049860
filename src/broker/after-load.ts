// Requests to a coordinator whose shards are just being loaded wait for that, instead of being answered
// COORDINATOR_LOAD_IN_PROGRESS: kafkajs gives a transaction up on that code and crashes a consumer that joins, and a load
// takes milliseconds. Not for: what is answered then; a shard that went to another node meanwhile is NOT_COORDINATOR.
import type { AnyApi, RequestOf } from '../protocol/api.ts';
import type { AnyHandler, Handler } from './handler.ts';

/** A coordinator, by the keys of its shards: groups or transactional ids. */
export interface Loading {
  /** Resolves when the key can be spoken for, or surely can't; undefined where there is nothing to wait for. */
  loading(key: string): Promise<unknown> | undefined;
}

/** `handler`, whose requests begin once the coordinators of all their keys are loaded. */
export function afterLoad<A extends AnyApi>(
  handler: Handler<A>,
  coordinator: Loading,
  keysOf: (request: RequestOf<A>) => readonly string[],
): AnyHandler {
  return {
    ...handler,
    prepare(request: RequestOf<A>) {
      const loads = keysOf(request)
        .map((key) => coordinator.loading(key))
        .filter((load) => load !== undefined);
      return loads.length === 0 ? undefined : Promise.all(loads);
    },
  } as AnyHandler;
}
