// Small async tools with limits: a mutex, a semaphore, a keyed single flight, a queue that is worked off in batches.
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

/** Works off what is pushed, in order, all that queued up meanwhile in one batch of at most `limit`. */
export class BatchQueue<T> {
  readonly #limit: number;
  readonly #work: (batch: readonly T[]) => Promise<void>;
  readonly #queue: T[] = [];
  #running: Promise<void> | undefined;

  /** `work` answers whoever waits for its items, and never rejects. */
  constructor(limit: number, work: (batch: readonly T[]) => Promise<void>) {
    assert(limit >= 1, 'a batch has at least one item');
    this.#limit = limit;
    this.#work = work;
  }

  push(item: T): void {
    this.#queue.push(item);
    this.#running ??= this.#drain();
  }

  /** Resolves when nothing is queued. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #drain(): Promise<void> {
    // Lets pushes of the same turn join the first batch.
    await Promise.resolve();
    while (this.#queue.length > 0) await this.#work(this.#queue.splice(0, this.#limit));
    this.#running = undefined;
  }
}
