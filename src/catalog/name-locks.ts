// Commits of one table or view queue up here instead of racing for its pointer. The pointer still decides: another
// process may move it meanwhile.
import { Mutex } from '../base/queue.ts';

export class NameLocks {
  readonly #locks = new Map<string, { readonly mutex: Mutex; users: number }>();

  /** Runs `work` while it holds every name. Taken in sorted order, so that no two holders wait for each other. */
  run<T>(names: readonly string[], work: () => Promise<T>): Promise<T> {
    return this.#next([...names].sort(), work);
  }

  async #next<T>(names: readonly string[], work: () => Promise<T>): Promise<T> {
    const [name, ...rest] = names;
    if (name === undefined) return work();
    const lock = this.#locks.get(name) ?? { mutex: new Mutex(), users: 0 };
    this.#locks.set(name, lock);
    lock.users += 1;
    try {
      return await lock.mutex.run(() => this.#next(rest, work));
    } finally {
      lock.users -= 1;
      if (lock.users === 0) this.#locks.delete(name);
    }
  }
}
