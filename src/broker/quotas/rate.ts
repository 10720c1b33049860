// How much a client has used, measured as Kafka does: bytes, time and connections as an average over the last windows
// (`quota.window.num` × `.size.seconds`), changes of metadata as a token bucket (KIP-599). Pure arithmetic over the times
// given; nothing here waits.

/** Longest wait that a reply can carry: an int32. */
const MAX_THROTTLE_MS = 2 ** 31 - 1;

export interface WindowOptions {
  /** Windows, the present one included; at least 2. */
  readonly windows: number;
  readonly windowMs: number;
}

/** A rate over sliding windows that lie at multiples of their length. */
export class WindowedRate {
  /** Units per second; may change while it is measured. */
  limit: number;
  readonly windowMs: number;
  readonly #sums: Float64Array;
  /** Number of the present window: time divided by window length. */
  #window = 0;
  #total = 0;

  constructor(limit: number, { windows, windowMs }: WindowOptions) {
    this.limit = limit;
    this.windowMs = windowMs;
    this.#sums = new Float64Array(windows);
  }

  /**
   * Adds `amount`; how much longer it should have taken to use so much, in milliseconds, 0 when the average isn't above
   * the limit. A client that uses more after this wait may have to wait again, until the burst has left the windows.
   */
  charge(amount: number, nowMs: number): number {
    this.add(amount, nowMs);
    return this.throttleMs(nowMs);
  }

  /** Adds without asking; a negative amount takes back what was charged just now. */
  add(amount: number, nowMs: number): void {
    this.#advance(nowMs);
    const at = this.#window % this.#sums.length;
    this.#sums[at] = this.#sums[at]! + amount;
    this.#total += amount;
  }

  throttleMs(nowMs: number): number {
    this.#advance(nowMs);
    const spanMs = this.#spanMs(nowMs);
    const rate = (this.#total * 1_000) / spanMs;
    if (rate <= this.limit) return 0;
    return Math.min(Math.ceil(((rate - this.limit) / this.limit) * spanMs), MAX_THROTTLE_MS);
  }

  /** Units per second as measured. */
  rate(nowMs: number): number {
    this.#advance(nowMs);
    return (this.#total * 1_000) / this.#spanMs(nowMs);
  }

  /** What may be charged at once without certainly being above the limit. */
  get largestCharge(): number {
    return this.limit * (((this.#sums.length - 1) * this.windowMs) / 1_000);
  }

  /** True when nothing is remembered any more: a new one would say the same. */
  idle(nowMs: number): boolean {
    this.#advance(nowMs);
    return this.#total === 0;
  }

  /** All windows but the present one count as whole, so that a young rate isn't taken for a high one. */
  #spanMs(nowMs: number): number {
    return (this.#sums.length - 1) * this.windowMs + (nowMs % this.windowMs);
  }

  #advance(nowMs: number): void {
    const window = Math.floor(nowMs / this.windowMs);
    const passed = window - this.#window;
    if (passed <= 0) return;
    this.#window = window;
    if (passed >= this.#sums.length) {
      this.#sums.fill(0);
      this.#total = 0;
      return;
    }
    for (let back = 0; back < passed; back += 1) {
      const at = (window - back) % this.#sums.length;
      this.#total -= this.#sums[at]!;
      this.#sums[at] = 0;
    }
    // Additions and subtractions of fractions leave dust behind.
    if (this.#total < 1e-9) this.#total = 0;
  }
}

/** Tokens that come at `limit` per second and are kept up to all windows' worth; may be overdrawn once. */
export class TokenBucket {
  /** Tokens per second; may change. */
  limit: number;
  readonly #burstSeconds: number;
  #tokens: number;
  #atMs: number;

  constructor(limit: number, { windows, windowMs }: WindowOptions, nowMs: number) {
    this.limit = limit;
    this.#burstSeconds = (windows * windowMs) / 1_000;
    this.#tokens = limit * this.#burstSeconds;
    this.#atMs = nowMs;
  }

  /** Takes tokens, below zero if need be; how long until there is none missing, in milliseconds. */
  charge(amount: number, nowMs: number): number {
    this.#refill(nowMs);
    this.#tokens -= amount;
    return this.#waitMs();
  }

  /** How long until tokens may be taken again; 0 when they may be now. */
  throttleMs(nowMs: number): number {
    this.#refill(nowMs);
    return this.#waitMs();
  }

  /** True when it is full again: a new one would say the same. */
  idle(nowMs: number): boolean {
    this.#refill(nowMs);
    return this.#tokens >= this.limit * this.#burstSeconds;
  }

  #waitMs(): number {
    if (this.#tokens >= 0) return 0;
    return Math.min(Math.ceil((-this.#tokens / this.limit) * 1_000), MAX_THROTTLE_MS);
  }

  #refill(nowMs: number): void {
    const passedMs = Math.max(nowMs - this.#atMs, 0);
    const full = this.limit * this.#burstSeconds;
    this.#tokens = Math.min(full, this.#tokens + (passedMs / 1_000) * this.limit);
    this.#atMs = nowMs;
  }
}
