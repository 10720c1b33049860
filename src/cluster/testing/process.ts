// A process as a model sees it: it may be stopped and continued (SIGSTOP), and its calls to the store take time, fail
// before or after they took effect, or take effect long after it gave up waiting. Everything by one manual clock.
import type { Clock, Timer } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import type { Prng } from '../../base/prng.ts';

/** Stops and continues; while stopped nothing of the process runs, though its clocks go on. */
export class ModelProcess {
  readonly clock: Clock;
  readonly #base: Clock;
  #paused = false;
  #held: (() => void)[] = [];

  constructor(base: Clock) {
    this.#base = base;
    const setTimer = (delayMs: number, action: () => void): Timer => {
      let cancelled = false;
      const timer = base.setTimer(delayMs, () => this.run(() => cancelled || action()));
      return {
        cancel() {
          cancelled = true;
          timer.cancel();
        },
      };
    };
    this.clock = {
      now: () => base.now(),
      monotonic: () => base.monotonic(),
      setTimer,
      sleep: (delayMs) => new Promise((resolve) => setTimer(delayMs, resolve)),
    };
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Runs `action` now, or when the process continues. */
  run(action: () => void): void {
    if (this.#paused) this.#held.push(action);
    else action();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    for (const action of this.#held.splice(0)) action();
  }

  /** A domain of the store as this process reaches it. */
  link<T extends object>(domain: T, weather: Weather): T {
    return new Proxy(domain, {
      get: (target, method) => {
        const call = Reflect.get(target, method) as (...args: unknown[]) => Promise<unknown>;
        return (...args: unknown[]) => this.#call(() => call(...args), weather);
      },
    });
  }

  #call(work: () => Promise<unknown>, { prng, maxDelayMs, faults }: Weather): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const delay = () => prng.int(maxDelayMs + 1);
      const fail = (code: 'timeout' | 'unavailable') =>
        this.run(() => reject(new FloeError(code, 'the weather of the model')));
      const luck = prng.next();
      if (luck < faults / 3) {
        this.#base.setTimer(delay(), () => fail('unavailable'));
        return;
      }
      const lost = luck < faults;
      // A call that was given up may still take effect a while later.
      if (lost) this.#base.setTimer(delay(), () => fail('timeout'));
      this.#base.setTimer(delay() * (luck < faults / 2 ? 2 : 1), () => {
        void work().then(
          (value) => {
            if (!lost) this.#base.setTimer(delay(), () => this.run(() => resolve(value)));
          },
          (caught) => {
            if (!lost) this.#base.setTimer(delay(), () => this.run(() => reject(caught)));
          },
        );
      });
    });
  }
}

/** How well the store is reached. */
export interface Weather {
  readonly prng: Prng;
  /** Most that each way of a call takes. */
  maxDelayMs: number;
  /** Share of calls that fail. */
  faults: number;
}
