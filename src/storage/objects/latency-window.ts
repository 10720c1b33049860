// How long requests took lately, and whether one that takes longer may be asked a second time: a hedge costs a request,
// so there are at most so many of them in a hundred, however slow everything becomes.
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';

/** Latest samples that count. */
const SAMPLES = 128;
/** Before so many are known, nothing is said. */
const MIN_SAMPLES = 16;
/** The order of samples is looked at anew after so many. */
const SORT_EVERY = 8;

/** A sliding window of durations. */
export class LatencyWindow {
  readonly #samples = new Float64Array(SAMPLES);
  #sorted: Float64Array = new Float64Array(0);
  #count = 0;
  #sortedAt = -1;

  add(ms: number): void {
    this.#samples[this.#count % SAMPLES] = ms;
    this.#count += 1;
  }

  /** The duration that the share `q` of recent requests stayed below; undefined while too few are known. */
  quantile(q: number): number | undefined {
    assert(q >= 0 && q <= 1, 'a quantile lies between 0 and 1');
    if (this.#count < MIN_SAMPLES) return undefined;
    if (this.#sortedAt === -1 || this.#count - this.#sortedAt >= SORT_EVERY) {
      this.#sorted = this.#samples.slice(0, Math.min(this.#count, SAMPLES)).sort();
      this.#sortedAt = this.#count;
    }
    return this.#sorted[Math.min(this.#sorted.length - 1, Math.floor(q * this.#sorted.length))];
  }
}

/** Hedges saved up at most: what a bad minute may spend at once. */
const MAX_SAVED = 10;
/** Latencies are often alike: one that takes a little more than the others isn't slow. */
const MARGIN = 1.1;
/** A request that takes so many times what is usual is asked again without regard to the share. */
const LATE_FACTOR = 3;

export interface HedgeLimits {
  /** Share of recent requests that took less. */
  readonly quantile: number;
  /** Hedges per request. */
  readonly share: number;
  /** Never sooner. */
  readonly minMs: number;
  /**
   * After this long (or three times what is usual, if that is more) a request has got lost rather than slow, and is
   * hedged in any case.
   */
  readonly lateMs: number;
}

/** When a slow request is asked a second time. */
export class HedgeTimer {
  readonly #clock: Clock;
  readonly #limits: HedgeLimits;
  #saved = 1;

  constructor(clock: Clock, limits: HedgeLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** A request is made, of a kind that took as long as `windows` know: the first that knows anything counts. */
  begin(windows: readonly LatencyWindow[]): number | undefined {
    this.#saved = Math.min(MAX_SAVED, this.#saved + this.#limits.share);
    for (const window of windows) {
      const usual = window.quantile(this.#limits.quantile);
      if (usual !== undefined) return usual;
    }
    return undefined;
  }

  /** Resolves when the second attempt is due, which is paid for then; rejects when `signal` is aborted first, or none ever is. */
  async due(usualMs: number | undefined, signal: AbortSignal): Promise<void> {
    const { minMs, lateMs, share } = this.#limits;
    if (share === 0) throw new FloeError('cancelled', 'there are no hedges (share 0)');
    let waitedMs = 0;
    if (usualMs !== undefined) {
      waitedMs = Math.max(usualMs * MARGIN, minMs);
      await this.#clock.sleep(waitedMs, signal);
      if (this.#take()) return;
    }
    const late = Math.max(lateMs, LATE_FACTOR * (usualMs ?? 0));
    await this.#clock.sleep(late - waitedMs, signal);
  }

  #take(): boolean {
    if (this.#saved < 1) return false;
    this.#saved -= 1;
    return true;
  }
}
