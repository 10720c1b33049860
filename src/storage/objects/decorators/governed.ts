// Paces what goes to a store: each attempt waits for a slot of its purpose (request-slots.ts) and for the rate that the
// store has shown to take (adaptive-rate.ts, one per purpose, so that a refused compaction doesn't slow a flush).
// A refusal ("503 SlowDown" is normal weather) costs time here and goes on to the retries. Not for: those (retrying.ts).
import type { Clock } from '../../../base/clock.ts';
import { isFloeError } from '../../../base/error.ts';
import { AdaptiveRate } from '../adaptive-rate.ts';
import { bodyParts, bodySize } from '../keys.ts';
import type { ObjectStore } from '../object-store.ts';
import { MAX_SINGLE_PUT_BYTES, PARALLEL_PARTS } from '../prices.ts';
import { isBackground, type Purpose, purposes } from '../purposes.ts';
import type { RequestSlots } from '../request-slots.ts';

/** Requests a second that are tried against refusals, whoever causes them: what somebody waits for, and all else. */
const MIN_RATE_FOREGROUND = 10;
const MIN_RATE_BACKGROUND = 2;

/** The rates that purposes have found, shared by all views of one store. */
export type Rates = Readonly<Record<Purpose, AdaptiveRate>>;

export function newRates(clock: Clock): Rates {
  const rate = (purpose: Purpose) =>
    new AdaptiveRate(clock, isBackground(purpose) ? MIN_RATE_BACKGROUND : MIN_RATE_FOREGROUND);
  return Object.fromEntries(purposes.map((purpose) => [purpose, rate(purpose)])) as Rates;
}

/** True when the store has said that requests come too fast, not that this one is wrong. */
export function isRefusal(caught: unknown): boolean {
  if (!isFloeError(caught, 'unavailable')) return false;
  const { status, name } = caught.details;
  return status === 503 || status === 429 || name === 'SlowDown' || name === 'TooManyRequests';
}

export interface GovernedOptions {
  readonly purpose: Purpose;
  readonly slots: RequestSlots;
  readonly rates: Rates;
  readonly clock: Clock;
}

interface Request {
  readonly bytes: number;
  readonly slots?: number;
  readonly signal?: AbortSignal;
}

/** `store` at the pace of its purpose. */
export function governedStore(store: ObjectStore, options: GovernedOptions): ObjectStore {
  const { purpose, slots, clock } = options;
  const rate = options.rates[purpose];

  async function attempt<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      rate.answered();
      return result;
    } catch (caught) {
      if (isRefusal(caught)) rate.refused();
      else if (isFloeError(caught, 'not-found', 'conflict')) rate.answered();
      throw caught;
    }
  }
  async function pause(signal: AbortSignal | undefined): Promise<void> {
    const pauseMs = rate.reserve();
    if (pauseMs > 0) await clock.sleep(pauseMs, signal);
  }
  async function paced<T>(request: Request, work: () => Promise<T>): Promise<T> {
    await pause(request.signal);
    return slots.run(purpose, request, () => attempt(work));
  }
  const withSignal = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

  return {
    uri: store.uri,
    put(key, body, how = {}) {
      const bytes = bodySize(bodyParts(body));
      const request = { bytes, slots: bytes > MAX_SINGLE_PUT_BYTES ? PARALLEL_PARTS : 1 };
      return paced({ ...request, ...withSignal(how.signal) }, () => store.put(key, body, how));
    },
    get(key, how = {}) {
      const bytes = Math.min(how.length ?? Infinity, how.into?.length ?? Infinity);
      const request = { bytes: bytes === Infinity ? 0 : bytes, ...withSignal(how.signal) };
      return paced(request, () => store.get(key, how));
    },
    head: (key) => paced({ bytes: 0 }, () => store.head(key)),
    delete: (keys) => paced({ bytes: 0 }, () => store.delete(keys)),
    // A listing holds no slot: it goes on for as long as its reader takes.
    async *list(prefix, how) {
      await pause(undefined);
      try {
        yield* store.list(prefix, how);
      } catch (caught) {
        if (isRefusal(caught)) rate.refused();
        throw caught;
      }
    },
  };
}
