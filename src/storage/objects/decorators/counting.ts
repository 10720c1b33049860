// Counts what passes: requests, bytes and time by operation and outcome. Feeds the metrics, and tests that
// assert how many requests a plan costs.
import type { Clock } from '../../../base/clock.ts';
import { type ErrorCode, FloeError } from '../../../base/error.ts';
import type { Metrics } from '../../../base/metrics.ts';
import { bodyParts, bodySize } from '../keys.ts';
import type { ObjectStore } from '../object-store.ts';
import { dollarsOf, type Prices } from '../prices.ts';
import type { Purpose } from '../purposes.ts';

/** One finished request (a listing counts once, when it ends). */
export interface ObjectRequest {
  readonly operation: 'put' | 'get' | 'head' | 'list' | 'delete';
  readonly key: string;
  readonly outcome: 'ok' | ErrorCode;
  /** Bytes moved, 0 for those that move none. */
  readonly bytes: number;
  readonly seconds: number;
}

/** `store`, telling `onRequest` of every request when it settles. */
export function countingStore(
  store: ObjectStore,
  clock: Clock,
  onRequest: (request: ObjectRequest) => void,
): ObjectStore {
  async function tell<T>(
    operation: ObjectRequest['operation'],
    key: string,
    work: Promise<T>,
    bytesOf: (result: T) => number = () => 0,
  ): Promise<T> {
    const startedMs = clock.monotonic();
    const done = (outcome: ObjectRequest['outcome'], bytes: number) =>
      onRequest({
        operation,
        key,
        outcome,
        bytes,
        seconds: (clock.monotonic() - startedMs) / 1_000,
      });
    try {
      const result = await work;
      done('ok', bytesOf(result));
      return result;
    } catch (caught) {
      done(FloeError.from(caught).code, 0);
      throw caught;
    }
  }
  return {
    uri: store.uri,
    put: (key, body, options) =>
      tell('put', key, store.put(key, body, options), () => bodySize(bodyParts(body))),
    get: (key, options) => tell('get', key, store.get(key, options), (found) => found.length),
    head: (key) => tell('head', key, store.head(key)),
    delete: (keys) => tell('delete', keys[0] ?? '', store.delete(keys)),
    async *list(prefix, options) {
      const startedMs = clock.monotonic();
      let outcome: ObjectRequest['outcome'] = 'ok';
      try {
        yield* store.list(prefix, options);
      } catch (caught) {
        outcome = FloeError.from(caught).code;
        throw caught;
      } finally {
        const seconds = (clock.monotonic() - startedMs) / 1_000;
        onRequest({ operation: 'list', key: prefix, outcome, bytes: 0, seconds });
      }
    },
  };
}

export interface MeasuredOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly purpose: Purpose;
  readonly prices: Prices;
}

/** `store`, its requests recorded in `metrics` by purpose and operation, with what they cost. */
export function measuredStore(store: ObjectStore, options: MeasuredOptions): ObjectStore {
  const { clock, metrics, purpose, prices } = options;
  return countingStore(store, clock, (request) => {
    const { operation, outcome, bytes, seconds } = request;
    metrics.count('floe_objects_requests_total', 'Requests to the object store.', {
      purpose,
      operation,
      outcome,
    });
    const labels = { purpose, operation };
    if (bytes > 0) metrics.count('floe_objects_bytes_total', 'Bytes moved.', labels, bytes);
    const dollars = dollarsOf(request, prices);
    if (dollars > 0)
      metrics.count(
        'floe_objects_dollars_total',
        'Price of requests, objects.price.*.',
        labels,
        dollars,
      );
    metrics.seconds('floe_objects_request_seconds', 'Time of a request.', seconds, labels);
  });
}
