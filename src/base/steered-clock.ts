// A machine's clock that may be off, and is told by how much: wall time is corrected, what only goes is left alone.
// Not for: whose time is right, and asking for it.
import type { Clock, Timer } from './clock.ts';

export class SteeredClock implements Clock {
  readonly #machine: Clock;
  #offsetMs = 0;

  constructor(machine: Clock) {
    this.#machine = machine;
  }

  /** What is added to the machine's wall time. */
  get offsetMs(): number {
    return this.#offsetMs;
  }

  steer(offsetMs: number): void {
    this.#offsetMs = offsetMs;
  }

  now(): number {
    return this.#machine.now() + this.#offsetMs;
  }

  monotonic(): number {
    return this.#machine.monotonic();
  }

  setTimer(delayMs: number, action: () => void): Timer {
    return this.#machine.setTimer(delayMs, action);
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return this.#machine.sleep(delayMs, signal);
  }
}
