// Retry with exponential backoff and jitter. For: calls to the outside world that failed in a way that
// says "try again". Not for: unknown outcomes (`timeout`) of calls that aren't idempotent.
import type { Clock } from './clock.ts';
import { FloeError } from './error.ts';
import type { Prng } from './prng.ts';

export interface RetryOptions {
  readonly clock: Clock;
  readonly prng: Prng;
  /** Attempts in all, the first included. */
  readonly attempts: number;
  /** No attempt begins later than this after the first. */
  readonly giveUpMs?: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  readonly signal?: AbortSignal;
  /** Which failures are worth another attempt; `unavailable` by default. */
  readonly retryable?: (error: FloeError) => boolean;
}

/** Runs `attempt` until it succeeds, fails for good, or attempts are used up (then throws the last error). */
export async function retry<T>(
  options: RetryOptions,
  attempt: (n: number) => Promise<T>,
): Promise<T> {
  const retryable = options.retryable ?? ((error) => error.code === 'unavailable');
  const { clock, giveUpMs = Infinity } = options;
  const startedMs = clock.monotonic();
  for (let n = 1; ; n += 1) {
    try {
      return await attempt(n);
    } catch (caught) {
      const error = FloeError.from(caught);
      if (n >= options.attempts || !retryable(error)) throw error;
      const pauseMs = backoffMs(options, n);
      if (clock.monotonic() + pauseMs - startedMs > giveUpMs) throw error;
      await clock.sleep(pauseMs, options.signal);
    }
  }
}

/** Delay before attempt `n + 1`: doubles each time, full jitter on the upper half. */
export function backoffMs(
  options: Pick<RetryOptions, 'prng' | 'firstDelayMs' | 'maxDelayMs'>,
  n: number,
): number {
  const ceiling = Math.min(options.maxDelayMs, options.firstDelayMs * 2 ** Math.min(n - 1, 30));
  return ceiling / 2 + (options.prng.next() * ceiling) / 2;
}
