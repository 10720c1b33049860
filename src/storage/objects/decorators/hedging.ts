// A read that takes longer than nearly all others of its size did lately is asked a second time; the first answer is
// taken, the other attempt is called off. A few extra requests buy the tail of the latency. Objects never change, so two
// answers are the same bytes. Not for: writes; those are hedged under a second key by whoever can name it (storage/log).
import type { Clock } from '../../../base/clock.ts';
import { FloeError } from '../../../base/error.ts';
import type { Metrics } from '../../../base/metrics.ts';
import { HedgeTimer, LatencyWindow } from '../latency-window.ts';
import type { GetOptions, ObjectStore } from '../object-store.ts';

export interface HedgingOptions {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly settings: {
    readonly 'objects.hedge.quantile': number;
    readonly 'objects.hedge.share': number;
    readonly 'objects.hedge.min.ms': number;
    readonly 'objects.hedge.late.ms': number;
  };
}

/** Upper bounds of the sizes whose durations are compared with one another, in bytes. */
const SIZE_CLASSES = [256 * 1024, 1024 * 1024, 4 * 1024 * 1024, Infinity];

/** `store`, its reads hedged. */
export function hedgingStore(store: ObjectStore, options: HedgingOptions): ObjectStore {
  const hedger = new Hedger(store, options);
  return {
    uri: store.uri,
    put: (key, body, how) => store.put(key, body, how),
    get: (key, how = {}) => hedger.get(key, how),
    head: (key) => store.head(key),
    list: (prefix, how) => store.list(prefix, how),
    delete: (keys) => store.delete(keys),
  };
}

class Hedger {
  readonly #store: ObjectStore;
  readonly #options: HedgingOptions;
  readonly #windows = SIZE_CLASSES.map(() => new LatencyWindow());
  readonly #timer: HedgeTimer;

  constructor(store: ObjectStore, options: HedgingOptions) {
    const { clock, settings } = options;
    this.#store = store;
    this.#options = options;
    this.#timer = new HedgeTimer(clock, {
      quantile: settings['objects.hedge.quantile'],
      share: settings['objects.hedge.share'],
      minMs: settings['objects.hedge.min.ms'],
      lateMs: settings['objects.hedge.late.ms'],
    });
  }

  async get(key: string, how: GetOptions): Promise<Uint8Array> {
    const { clock } = this.#options;
    const length = Math.min(how.length ?? Infinity, how.into?.length ?? Infinity);
    const windows = this.#windows.slice(SIZE_CLASSES.findIndex((bound) => length <= bound));
    const startedMs = clock.monotonic();
    const found = await this.#hedged(key, how, this.#timer.begin(windows));
    windows[0]!.add(clock.monotonic() - startedMs);
    return found;
  }

  async #hedged(key: string, how: GetOptions, usualMs: number | undefined): Promise<Uint8Array> {
    const first = this.#attempt(key, how);
    const pause = new AbortController();
    const due = this.#timer.due(usualMs, pause.signal).then(
      () => true,
      () => false,
    );
    const done = first.result.then(
      () => false,
      () => false,
    );
    const slow = await Promise.race([done, due]);
    pause.abort();
    if (!slow) return first.result;
    const { metrics } = this.#options;
    metrics.count('floe_objects_hedges_total', 'Slow reads that were asked a second time.');
    // The first attempt may still write where the caller wants its bytes: the second has room of its own.
    const { into, ...rest } = how;
    const size = Math.min(how.length ?? Infinity, into?.length ?? Infinity);
    const own = into === undefined ? rest : { ...rest, length: size };
    return this.#either(first, this.#attempt(key, own), into);
  }

  async #either(
    first: Attempt,
    second: Attempt,
    into: Uint8Array | undefined,
  ): Promise<Uint8Array> {
    try {
      const { winner, bytes } = await Promise.any(
        [first, second].map(async (attempt) => ({ winner: attempt, bytes: await attempt.result })),
      );
      const loser = winner === first ? second : first;
      loser.abort();
      loser.result.catch(() => {});
      if (winner === first || into === undefined) return bytes;
      // Not before the first attempt has let go of the caller's memory.
      await first.result.catch(() => {});
      into.set(bytes);
      return into.subarray(0, bytes.length);
    } catch (caught) {
      const error = caught instanceof AggregateError ? caught.errors[0] : caught;
      throw FloeError.from(error);
    }
  }

  #attempt(key: string, how: GetOptions): Attempt {
    const control = new AbortController();
    const signal =
      how.signal === undefined ? control.signal : AbortSignal.any([how.signal, control.signal]);
    return {
      result: this.#store.get(key, { ...how, signal }),
      abort: () => control.abort(),
    };
  }
}

interface Attempt {
  readonly result: Promise<Uint8Array>;
  abort(): void;
}
