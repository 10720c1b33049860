// Tables as a catalog gave them last, by its ETags: a load of an unchanged table costs a 304. Bounded by the length of
// their answers; the one not asked for longest goes first.
import type { LoadedTable, TableIdentifier } from '../catalog.ts';
import type { RestAnswer } from './http.ts';

interface Cached {
  readonly etag: string;
  readonly table: LoadedTable;
  readonly size: number;
}

export class TableCache {
  readonly #limit: number;
  readonly #tables = new Map<string, Cached>();
  #size = 0;

  /** `limit`: characters of answers; 0 keeps nothing. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  get(identifier: TableIdentifier): Cached | undefined {
    return this.#tables.get(keyOf(identifier));
  }

  keep(table: LoadedTable, { etag, size }: RestAnswer): void {
    this.forget(table.identifier);
    if (etag === undefined || size > this.#limit) return;
    this.#tables.set(keyOf(table.identifier), { etag, table, size });
    this.#size += size;
    for (const cached of this.#tables.values()) {
      if (this.#size <= this.#limit) break;
      this.forget(cached.table.identifier);
    }
  }

  forget(identifier: TableIdentifier): void {
    const key = keyOf(identifier);
    this.#size -= this.#tables.get(key)?.size ?? 0;
    this.#tables.delete(key);
  }
}

const keyOf = ({ namespace, name }: TableIdentifier) => JSON.stringify([...namespace, name]);
