// Small async tools with limits: a mutex, a semaphore, a keyed single flight.
import { assert } from './assert.ts';

/** Lets `permits` holders in at a time, in order of arrival. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(permits: number) {
    assert(permits >= 1, 'a semaphore has at least one permit');
    this.#free = permits;
  }

  /** How many wait for a permit. */
  get waiting(): number {
    return this.#waiting.length;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

/** One holder at a time. */
export class Mutex extends Semaphore {
  constructor() {
    super(1);
  }
}

/** Concurrent calls for the same key share one execution; nothing is kept after it settles. */
export class SingleFlight<K, V> {
  readonly #running = new Map<K, Promise<V>>();

  run(key: K, work: () => Promise<V>): Promise<V> {
    const running = this.#running.get(key);
    if (running !== undefined) return running;
    const started = work().finally(() => this.#running.delete(key));
    this.#running.set(key, started);
    return started;
  }
}
