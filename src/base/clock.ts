// Time as a parameter: the system's clock for real life, a manual one for tests and simulation.
// Everything outside base/ takes a Clock; lint forbids Date, setTimeout and performance elsewhere.

export interface Timer {
  /** Harmless after the timer fired. */
  cancel(): void;
}

export interface Clock {
  /** Wall time, milliseconds since the epoch. May jump; for timestamps only. */
  now(): number;
  /** Milliseconds that never go back; for durations and deadlines. */
  monotonic(): number;
  /** Calls `action` once after `delayMs`. A pending timer never keeps the process alive. */
  setTimer(delayMs: number, action: () => void): Timer;
  /** Resolves after `delayMs`; rejects with the signal's reason when aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

function sleepOn(clock: Pick<Clock, 'setTimer'>, delayMs: number, signal?: AbortSignal) {
  return new Promise<void>((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.setTimer(delayMs, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** setTimeout's largest delay; longer ones would fire at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  setTimer(delayMs, action) {
    const handle = setTimeout(action, Math.min(Math.max(0, delayMs), MAX_DELAY_MS));
    handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
  sleep: (delayMs, signal) => sleepOn(systemClock, delayMs, signal),
};

/** A moment as the Date that a library wants. */
export const dateAt = (epochMs: number): Date => new Date(epochMs);

/** Milliseconds since the epoch of an HTTP or ISO date; undefined when it is none. */
export function dateMs(text: string): number | undefined {
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

interface Pending {
  readonly at: number;
  readonly sequence: number;
  readonly action: () => void;
}

/** A clock that moves only when told; timers fire in order of their time, then of their creation. */
export class ManualClock implements Clock {
  #now: number;
  #sequence = 0;
  #pending: Pending[] = [];

  constructor(startMs = 1_700_000_000_000) {
    this.#now = startMs;
  }

  /** Whole milliseconds, as the machine's clock; timers may fall between. */
  now(): number {
    return Math.floor(this.#now);
  }

  monotonic(): number {
    return this.#now;
  }

  setTimer(delayMs: number, action: () => void): Timer {
    const entry = { at: this.#now + Math.max(0, delayMs), sequence: this.#sequence++, action };
    this.#pending.push(entry);
    return {
      cancel: () => {
        this.#pending = this.#pending.filter((other) => other !== entry);
      },
    };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, delayMs, signal);
  }

  /** When the next timer is due, or undefined. */
  nextTimer(): number | undefined {
    return this.#earliest()?.at;
  }

  /** Moves time forward, firing what falls due, and lets promise callbacks run between timers. */
  async advance(byMs: number): Promise<void> {
    const target = this.#now + byMs;
    // What is already resolved may still want to set its timers.
    await settle();
    for (let next = this.#earliest(); next !== undefined && next.at <= target; ) {
      this.#pending = this.#pending.filter((other) => other !== next);
      this.#now = Math.max(this.#now, next.at);
      next.action();
      await settle();
      next = this.#earliest();
    }
    this.#now = target;
    await settle();
  }

  #earliest(): Pending | undefined {
    let best: Pending | undefined;
    for (const entry of this.#pending) {
      if (
        best === undefined ||
        entry.at < best.at ||
        (entry.at === best.at && entry.sequence < best.sequence)
      ) {
        best = entry;
      }
    }
    return best;
  }
}

/** Lets all promise callbacks that are due now run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
