// A wake-up call for one waiter: set while nobody waits, it is remembered once.
import type { Clock, Timer } from '../base/clock.ts';

export class Signal {
  readonly #clock: Clock;
  #set = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Wakes the waiter, or the next one at once. */
  set(): void {
    this.#set = true;
    this.#wake?.();
  }

  /** Resolves at the next `set`, or after `timeoutMs` if that is given. */
  async wait(timeoutMs?: number): Promise<void> {
    if (!this.#set && (timeoutMs === undefined || timeoutMs > 0)) {
      let timer: Timer | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        if (timeoutMs !== undefined) timer = this.#clock.setTimer(timeoutMs, resolve);
      });
      timer?.cancel();
      this.#wake = undefined;
    }
    this.#set = false;
  }

  /** Waits `delayMs`, whatever wakes it meanwhile, for as long as `goesOn` at each of those times. */
  async waitOut(delayMs: number, goesOn: () => boolean): Promise<void> {
    const until = this.#clock.monotonic() + delayMs;
    while (goesOn()) {
      const left = until - this.#clock.monotonic();
      if (left <= 0) return;
      await this.wait(left);
    }
  }
}
