// Retries what says "try again". A put of unknown outcome is repeated too: the same bytes under the same key
// are the same object, and when an exclusive put finds its key taken after an unknown attempt of its own, it
// looks whether the object there is the one it wrote.
// Not for: hedging a slow put under a second key (storage/log), which is the writer's decision.
import type { Clock } from '../../../base/clock.ts';
import { type FloeError, isFloeError } from '../../../base/error.ts';
import type { Prng } from '../../../base/prng.ts';
import { type RetryOptions, retry } from '../../../base/retry.ts';
import type { Values } from '../../../base/settings.ts';
import { bodyParts, bodySize } from '../keys.ts';
import type { ObjectInfo, ObjectStore, PutOptions } from '../object-store.ts';
import type { objectSettings } from '../settings.ts';

export interface RetryingOptions {
  readonly clock: Clock;
  readonly prng: Prng;
  readonly settings: Pick<
    Values<typeof objectSettings>,
    'objects.retry.attempts' | 'objects.retry.first.delay.ms' | 'objects.retry.max.delay.ms'
  >;
  /** Given: it is tried for this long instead of so many times. */
  readonly giveUpMs?: number;
}

const again = (error: FloeError) => error.code === 'unavailable' || error.code === 'timeout';

/** `store`, patient. Its errors are those of the last attempt. */
export function retryingStore(store: ObjectStore, options: RetryingOptions): ObjectStore {
  const { settings, clock, prng, giveUpMs } = options;
  const rules = (signal?: AbortSignal): RetryOptions => ({
    clock,
    prng,
    attempts: giveUpMs === undefined ? settings['objects.retry.attempts'] : Infinity,
    ...(giveUpMs === undefined ? {} : { giveUpMs }),
    firstDelayMs: settings['objects.retry.first.delay.ms'],
    maxDelayMs: settings['objects.retry.max.delay.ms'],
    retryable: again,
    ...(signal === undefined ? {} : { signal }),
  });
  return {
    uri: store.uri,
    put: (key, body, how = {}) => putPatiently(store, { key, body, how, rules: rules(how.signal) }),
    get: (key, how = {}) => retry(rules(how.signal), () => store.get(key, how)),
    head: (key) => retry(rules(), () => store.head(key)),
    delete: (keys) => retry(rules(), () => store.delete(keys)),
    list: (prefix, how) => listPatiently(store, rules(), prefix, how?.after),
  };
}

interface PatientPut {
  readonly key: string;
  readonly body: Uint8Array | readonly Uint8Array[];
  readonly how: PutOptions;
  readonly rules: RetryOptions;
}

async function putPatiently(store: ObjectStore, put: PatientPut): Promise<void> {
  const { key, body, how, rules } = put;
  let unknown = false;
  await retry(rules, async () => {
    try {
      await store.put(key, body, how);
    } catch (caught) {
      if (isFloeError(caught, 'timeout')) unknown = true;
      const ours = unknown && isFloeError(caught, 'conflict') && (await holds(store, key, body));
      if (!ours) throw caught;
    }
  });
}

/** True when the object under `key` has exactly these bytes. */
async function holds(
  store: ObjectStore,
  key: string,
  body: Uint8Array | readonly Uint8Array[],
): Promise<boolean> {
  const parts = bodyParts(body);
  if ((await store.head(key))?.size !== bodySize(parts)) return false;
  const found = await store.get(key);
  let at = 0;
  for (const part of parts) {
    if (Buffer.compare(found.subarray(at, at + part.length), part) !== 0) return false;
    at += part.length;
  }
  return true;
}

/** A listing that breaks goes on after the last key it gave. */
async function* listPatiently(
  store: ObjectStore,
  rules: RetryOptions,
  prefix: string,
  after: string | undefined,
): AsyncGenerator<ObjectInfo> {
  let last = after;
  let pages = open();
  function open() {
    const found = store.list(prefix, last === undefined ? {} : { after: last });
    return found[Symbol.asyncIterator]();
  }
  for (;;) {
    const next = await retry(rules, async (attempt) => {
      if (attempt > 1) pages = open();
      return pages.next();
    });
    if (next.done === true) return;
    last = next.value.key;
    yield next.value;
  }
}
