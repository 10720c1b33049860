// Faults for simulations: a catalog that loses answers, applies late, refuses, or is raced by others; and a process
// that is dead from one moment on, whatever it still tries.
import { FloeError } from '../../base/error.ts';
import type { Prng } from '../../base/prng.ts';
import type {
  Catalog,
  CommitTableRequest,
  LoadedTable,
  TableIdentifier,
} from '../../catalog/catalog.ts';

export interface CatalogFaults {
  /** Chances in [0, 1] per call. */
  readonly loadFails: number;
  /** Refused though nobody interfered: answered 409, not applied. */
  readonly conflict: number;
  /** The request never arrives; the caller sees a timeout. */
  readonly lostRequest: number;
  /** Applied, the answer is lost. */
  readonly lostReply: number;
  /** The caller sees a timeout; applied later by `deliver`. */
  readonly late: number;
  /** Somebody else commits just before. */
  readonly raced: number;
}

const timeout = () => new FloeError('timeout', 'no answer from the catalog');

/** Wraps a catalog. `race` is what a foreign writer does to a table. */
export class FaultyCatalog implements Catalog {
  /** Without faults. */
  readonly inner: Catalog;
  readonly #prng: Prng;
  readonly #race: (identifier: TableIdentifier) => Promise<void>;
  readonly #held: (() => Promise<unknown>)[] = [];
  faults: CatalogFaults | undefined;
  /** Every call made, by name. */
  readonly calls = { load: 0, commit: 0, applied: 0, create: 0 };

  constructor(inner: Catalog, prng: Prng, race: (identifier: TableIdentifier) => Promise<void>) {
    this.inner = inner;
    this.#prng = prng;
    this.#race = race;
  }

  #hit(chance: number | undefined): boolean {
    return chance !== undefined && this.#prng.next() < chance;
  }

  /** Requests on their way arrive now, in any order. */
  async deliver(): Promise<void> {
    while (this.#held.length > 0) {
      const [apply] = this.#held.splice(this.#prng.int(this.#held.length), 1);
      await apply!().catch(() => {});
    }
  }

  ensureNamespace(namespace: readonly string[]): Promise<void> {
    return this.inner.ensureNamespace(namespace);
  }

  listNamespaces(parent: readonly string[]): Promise<readonly (readonly string[])[]> {
    return this.inner.listNamespaces(parent);
  }

  tableExists(identifier: TableIdentifier): Promise<boolean> {
    return this.inner.tableExists(identifier);
  }

  checkTable(...args: Parameters<Catalog['checkTable']>): void {
    this.inner.checkTable(...args);
  }

  listTables(namespace: readonly string[]): Promise<readonly TableIdentifier[]> {
    return this.inner.listTables(namespace);
  }

  async loadTable(identifier: TableIdentifier): Promise<LoadedTable> {
    this.calls.load += 1;
    if (this.#hit(this.faults?.loadFails)) throw new FloeError('unavailable', 'catalog down');
    return this.inner.loadTable(identifier);
  }

  createTable(...args: Parameters<Catalog['createTable']>): Promise<LoadedTable> {
    this.calls.create += 1;
    return this.inner.createTable(...args);
  }

  async commitTable(
    identifier: TableIdentifier,
    request: CommitTableRequest,
  ): Promise<LoadedTable> {
    this.calls.commit += 1;
    const apply = async () => {
      const table = await this.inner.commitTable(identifier, request);
      this.calls.applied += 1;
      return table;
    };
    if (this.#hit(this.faults?.conflict)) throw new FloeError('conflict', 'somebody was first');
    if (this.#hit(this.faults?.lostRequest)) throw timeout();
    if (this.#hit(this.faults?.late)) {
      this.#held.push(apply);
      throw timeout();
    }
    if (this.#hit(this.faults?.raced)) await this.#race(identifier);
    if (this.#hit(this.faults?.lostReply)) {
      await apply().catch(() => {});
      throw timeout();
    }
    return apply();
  }

  dropTable(...args: Parameters<Catalog['dropTable']>): Promise<void> {
    return this.inner.dropTable(...args);
  }
}

/** Calls through a process border: once `kill` was called, nothing gets out and no answer gets in. */
export class ProcessBorder {
  #dead = false;

  kill(): void {
    this.#dead = true;
  }

  /** `target` as the process sees it; sometimes an answer is lost, as `lose` says. */
  wrap<T extends object>(target: T, lose: () => boolean = () => false): T {
    return new Proxy(target, {
      get: (object, name) => {
        const value = (object as Record<string | symbol, unknown>)[name];
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (this.#dead) return new Promise(() => {});
          const result = (value as (...rest: unknown[]) => unknown).apply(object, args);
          if (!(result instanceof Promise)) return result;
          return result.then((answer: unknown) => {
            if (this.#dead) return new Promise(() => {});
            if (lose()) throw new FloeError('timeout', `the answer of ${String(name)} was lost`);
            return answer;
          });
        };
      },
    });
  }
}
