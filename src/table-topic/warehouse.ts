// The warehouse's object store by absolute URI, which is how Iceberg metadata names files.
import { FloeError } from '../base/error.ts';
import type { FileReader } from '../formats/iceberg/index.ts';
import { keyOfUri } from '../storage/objects/index.ts';
import type { ObjectStore } from '../storage/objects/object-store.ts';

/** Reads, writes and deletes by URI. */
export interface Warehouse extends FileReader {
  readonly store: ObjectStore;
  /** @throws FloeError `invalid` for a URI outside the warehouse. */
  keyOf(uri: string): string;
  write(uri: string, body: Uint8Array): Promise<void>;
  delete(uris: readonly string[]): Promise<void>;
  /** The URIs that start with `prefix`. */
  list(prefix: string): Promise<string[]>;
}

export function openWarehouse(store: ObjectStore): Warehouse {
  const keyOf = (uri: string) => {
    const key = keyOfUri(store, uri);
    if (key === undefined) {
      throw new FloeError('invalid', `${uri} lies outside the warehouse ${store.uri}`);
    }
    return key;
  };
  return {
    store,
    keyOf,
    read: async (uri) => store.get(keyOf(uri)),
    write: async (uri, body) => store.put(keyOf(uri), body),
    delete: async (uris) => store.delete(uris.map(keyOf)),
    async list(prefix) {
      const found: string[] = [];
      const root = keyOf(prefix);
      for await (const { key } of store.list(root)) found.push(prefix + key.slice(root.length));
      return found;
    },
  };
}
