// A connection that has to wait: for so long nothing more of it is worked on or read. One timer at most.
import type { Clock, Timer } from '../../base/clock.ts';

export class Mute {
  readonly #clock: Clock;
  readonly #over: () => void;
  #untilMs = 0;
  /** When the last wait was over; what came before it did not wait for us since. */
  endedMs = 0;
  #timer: Timer | undefined;

  /** `over` is called when the wait has ended. */
  constructor(clock: Clock, over: () => void) {
    this.#clock = clock;
    this.#over = over;
  }

  get on(): boolean {
    return this.#timer !== undefined;
  }

  /** Waits for `ms` from now; a longer wait that is under way stays. */
  start(ms: number): void {
    const untilMs = this.#clock.monotonic() + ms;
    if (this.#timer !== undefined && untilMs <= this.#untilMs) return;
    this.#timer?.cancel();
    this.#untilMs = untilMs;
    this.#timer = this.#clock.setTimer(ms, () => {
      this.#timer = undefined;
      this.endedMs = this.#clock.monotonic();
      this.#over();
    });
  }

  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
