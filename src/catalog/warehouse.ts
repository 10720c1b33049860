// The warehouse: where tables lie in an object store, and the one place that turns their absolute URIs into keys.
// A URI outside it is refused, so that no metadata, whoever wrote it, makes us read or delete anything else.
import { FloeError, isFloeError } from '../base/error.ts';
import type { FileReader } from '../formats/iceberg/index.ts';
import { keyOfUri, objectUri } from '../storage/objects/keys.ts';
import type { ObjectInfo, ObjectStore } from '../storage/objects/object-store.ts';

/** Keys given to one delete call. */
const DELETE_BATCH = 1000;

export class Warehouse implements FileReader {
  readonly #store: ObjectStore;
  readonly #prefix: string;
  /** Absolute URI without trailing slash: `file:///dir/warehouse`, `s3://bucket/prefix`. */
  readonly uri: string;

  /** `prefix`: the keys that are the warehouse, '' for the whole store; else it ends with `/`. */
  constructor(store: ObjectStore, prefix = '') {
    if (prefix !== '' && !prefix.endsWith('/'))
      throw new FloeError('invalid', `warehouse prefix "${prefix}" must end with /`);
    this.#store = store;
    this.#prefix = prefix;
    this.uri = this.#uriOf(prefix).slice(0, -1);
  }

  /** @throws FloeError `invalid` for a URI outside the warehouse. */
  keyOf(uri: string): string {
    const key = this.#keyOf(uri);
    if (key === undefined) {
      throw new FloeError('invalid', `${uri} lies outside the warehouse ${this.uri}`);
    }
    return key;
  }

  /** Does the URI lie in the warehouse? */
  holds(uri: string): boolean {
    return this.#keyOf(uri) !== undefined;
  }

  #keyOf(uri: string): string | undefined {
    const key = keyOfUri(this.#store, canonical(uri));
    if (key === undefined || !key.startsWith(this.#prefix)) return undefined;
    // The store refuses such keys too; here they could leave the prefix.
    return key.split('/').includes('..') ? undefined : key;
  }

  #uriOf(key: string): string {
    return objectUri(this.#store, key);
  }

  read(uri: string): Promise<Uint8Array> {
    return this.#store.get(this.keyOf(uri));
  }

  /** Bytes `[start, end)` of a file. */
  readRange(uri: string, start: number, end: number): Promise<Uint8Array> {
    return this.#store.get(this.keyOf(uri), { start, length: end - start });
  }

  /** Fails with `conflict` when the file exists: our files are written once. */
  async write(uri: string, body: Uint8Array | readonly Uint8Array[]): Promise<void> {
    await this.#store.put(this.keyOf(uri), body, { ifNoneMatch: true });
  }

  async exists(uri: string): Promise<boolean> {
    return (await this.size(uri)) !== undefined;
  }

  /** Bytes of a file; undefined when it isn't there. */
  async size(uri: string): Promise<number | undefined> {
    return (await this.#store.head(this.keyOf(uri)))?.size;
  }

  /** Files outside the warehouse are left alone. */
  async delete(uris: Iterable<string>): Promise<void> {
    const keys = [...uris].filter((uri) => this.holds(uri)).map((uri) => this.keyOf(uri));
    for (let from = 0; from < keys.length; from += DELETE_BATCH)
      await this.#store.delete(keys.slice(from, from + DELETE_BATCH));
  }

  /** The files whose URIs start with `prefix`: a folder's end with `/`. */
  async *list(prefix: string): AsyncIterable<ObjectInfo & { readonly uri: string }> {
    for await (const info of this.#store.list(this.keyOf(prefix)))
      yield { ...info, uri: this.#uriOf(info.key) };
  }
}

/** `file:/dir` and `file:///dir` are the same; `s3a://` is how Hadoop says `s3://`. */
function canonical(uri: string): string {
  return uri.replace(/^file:\/(?!\/)/, 'file:///').replace(/^s3[an]:\/\//, 's3://');
}

/** True for "the file isn't there". */
export const isMissing = (caught: unknown) => isFloeError(caught, 'not-found');
