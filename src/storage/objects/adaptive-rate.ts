// A rate that finds what a store takes: nothing is held back until it says "slow down"; then requests go at seven tenths of
// the rate that was too much, and from there up again along a cubic curve, slowly near the old rate and fast past it.
// The rule is that of AWS's clients in their adaptive retry mode, whose services expect it; other than theirs it lets go
// after a while without a refusal, or a burst after a quiet hour would be held to the pace of that hour.
// Not for: what is retried (decorators/retrying.ts).
import type { Clock } from '../../base/clock.ts';

/** What is left of the rate after a refusal. */
const BETA = 0.7;
/** How fast the curve rises again. */
const SCALE = 0.4;
/** Weight of the newest measurement in the average. */
const SMOOTH = 0.8;
/** Without a refusal for so long, beyond the time the curve takes to the old rate, nothing is held back any more. */
const RELEASE_S = 20;
/** The rate is measured over halves of a second. */
const BUCKETS_PER_SECOND = 2;

export class AdaptiveRate {
  readonly #clock: Clock;
  readonly #minRate: number;
  #limited = false;
  /** Requests a second. */
  #rate = 0;
  #tokens = 0;
  #refilledS = 0;
  #measured = 0;
  #bucketS: number;
  #bucketCount = 0;
  #lastMax = 0;
  #throttledS = 0;
  #windowS = 0;

  /** `minRate`: requests a second that are tried however often the store refuses. */
  constructor(clock: Clock, minRate: number) {
    this.#clock = clock;
    this.#minRate = minRate;
    this.#bucketS = this.#seconds();
  }

  /** Requests a second that are let through; Infinity while the store takes everything. */
  get rate(): number {
    return this.#isLimited() ? this.#rate : Infinity;
  }

  /** Milliseconds to wait before a request is made; it is then accounted for. */
  reserve(): number {
    if (!this.#isLimited()) return 0;
    this.#refill();
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#rate) * 1_000;
  }

  /** The store has answered a request otherwise than by a refusal. */
  answered(): void {
    this.#measure();
    if (!this.#isLimited()) return;
    const since = this.#seconds() - this.#throttledS - this.#windowS;
    this.#setRate(Math.min(SCALE * since ** 3 + this.#lastMax, 2 * this.#measured));
  }

  /** The store has said "slow down". */
  refused(): void {
    this.#measure();
    const before = this.#isLimited() ? Math.min(this.#measured, this.#rate) : this.#measured;
    this.#lastMax = before;
    this.#windowS = Math.cbrt((before * (1 - BETA)) / SCALE);
    this.#throttledS = this.#seconds();
    if (!this.#limited) this.#refilledS = this.#throttledS;
    this.#limited = true;
    this.#setRate(before * BETA);
  }

  #isLimited(): boolean {
    const since = this.#seconds() - this.#throttledS;
    if (since > this.#windowS + RELEASE_S) this.#limited = false;
    return this.#limited;
  }

  #setRate(rate: number): void {
    this.#refill();
    this.#rate = Math.max(rate, this.#minRate);
    this.#tokens = Math.min(this.#tokens, this.#capacity());
  }

  #refill(): void {
    const now = this.#seconds();
    this.#tokens = Math.min(this.#capacity(), this.#tokens + (now - this.#refilledS) * this.#rate);
    this.#refilledS = now;
  }

  #capacity(): number {
    return Math.max(1, this.#rate);
  }

  #measure(): void {
    const bucket = Math.floor(this.#seconds() * BUCKETS_PER_SECOND) / BUCKETS_PER_SECOND;
    this.#bucketCount += 1;
    if (bucket <= this.#bucketS) return;
    const rate = this.#bucketCount / (bucket - this.#bucketS);
    this.#measured = rate * SMOOTH + this.#measured * (1 - SMOOTH);
    this.#bucketCount = 0;
    this.#bucketS = bucket;
  }

  #seconds(): number {
    return this.#clock.monotonic() / 1_000;
  }
}
