// A store that fails as stores do, by seed: refusals, lost replies (done, but nobody knows), late writes (done
// after the caller gave up), delays. For simulation and tests only.
import type { Clock } from '../../../base/clock.ts';
import { FloeError } from '../../../base/error.ts';
import type { Prng } from '../../../base/prng.ts';
import { bodyParts } from '../keys.ts';
import type { ObjectStore } from '../object-store.ts';

/** Probabilities in [0, 1) per request, and bounds of time. */
export interface Faults {
  /** Refused before anything happened: `unavailable`. */
  readonly refuse: number;
  /** A put that happens and answers `timeout`. */
  readonly loseReply: number;
  /** A put that answers `timeout` and happens up to `lateMs` afterwards. */
  readonly late: number;
  readonly lateMs: number;
  /** Every request takes up to this long. */
  readonly delayMs: number;
}

/** Nothing goes wrong. */
export const noFaults: Faults = { refuse: 0, loseReply: 0, late: 0, lateMs: 0, delayMs: 0 };

/** `store` under `faults()`, asked afresh for each request so that a test can end them. */
export function faultyStore(
  store: ObjectStore,
  { clock, prng }: { readonly clock: Clock; readonly prng: Prng },
  faults: () => Faults,
): ObjectStore {
  async function before(doing: string): Promise<void> {
    const { delayMs, refuse } = faults();
    if (delayMs > 0) await clock.sleep(prng.next() * delayMs);
    if (prng.next() < refuse) throw new FloeError('unavailable', `${doing}: refused (injected)`);
  }
  return {
    uri: store.uri,
    async put(key, body, options) {
      await before(`put "${key}"`);
      const { late, lateMs, loseReply } = faults();
      const unknown = new FloeError('timeout', `put "${key}": no reply (injected)`);
      if (prng.next() < late) {
        // The late write carries the bytes of now, whatever the caller does with its buffers.
        const bytes = bodyParts(body).map((part) => new Uint8Array(part));
        clock.setTimer(prng.next() * lateMs, () => {
          store.put(key, bytes, options).catch(() => {});
        });
        throw unknown;
      }
      await store.put(key, body, options);
      if (prng.next() < loseReply) throw unknown;
    },
    async get(key, options) {
      await before(`get "${key}"`);
      return store.get(key, options);
    },
    async head(key) {
      await before(`head "${key}"`);
      return store.head(key);
    },
    async *list(prefix, options) {
      await before(`list "${prefix}"`);
      yield* store.list(prefix, options);
    },
    async delete(keys) {
      await before(`delete "${keys[0]}"`);
      const half = prng.next() < faults().loseReply ? Math.ceil(keys.length / 2) : keys.length;
      await store.delete(keys.slice(0, half));
      if (half < keys.length) throw new FloeError('unavailable', 'delete: done in part (injected)');
    },
  };
}
