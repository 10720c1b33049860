// Objects in memory: for tests and simulation, and for `memory://` trials. Bytes are copied in and out.
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { bodyParts, bodySize, checkKey, clampRange, compareKeys } from './keys.ts';
import type { GetOptions, ObjectInfo, ObjectStore, PutOptions } from './object-store.ts';

interface Held {
  readonly bytes: Uint8Array;
  readonly modifiedMs: number;
}

/** An object store that ends with the process. Every operation takes effect at once, in call order. */
export class MemoryObjectStore implements ObjectStore {
  readonly uri: string;
  readonly #clock: Clock;
  readonly #objects = new Map<string, Held>();

  constructor(clock: Clock, name = 'floe') {
    this.#clock = clock;
    this.uri = `memory://${name}`;
  }

  async put(
    key: string,
    body: Uint8Array | readonly Uint8Array[],
    options: PutOptions = {},
  ): Promise<void> {
    checkKey(key);
    options.signal?.throwIfAborted();
    if (options.ifNoneMatch === true && this.#objects.has(key))
      throw new FloeError('conflict', `object "${key}" already exists`);
    const parts = bodyParts(body);
    const bytes = new Uint8Array(bodySize(parts));
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    this.#objects.set(key, { bytes, modifiedMs: this.#clock.now() });
  }

  async get(key: string, options: GetOptions = {}): Promise<Uint8Array> {
    checkKey(key);
    options.signal?.throwIfAborted();
    const held = this.#objects.get(key);
    if (held === undefined) throw new FloeError('not-found', `there is no object "${key}"`);
    const { start, length } = clampRange(options, held.bytes.length);
    const found = held.bytes.subarray(start, start + length);
    if (options.into === undefined) return found.slice();
    options.into.set(found);
    return options.into.subarray(0, length);
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    checkKey(key);
    const held = this.#objects.get(key);
    return held && { key, size: held.bytes.length, modifiedMs: held.modifiedMs };
  }

  async *list(
    prefix: string,
    options: { readonly after?: string } = {},
  ): AsyncGenerator<ObjectInfo> {
    const { after } = options;
    const keys = [...this.#objects.keys()].filter(
      (key) => key.startsWith(prefix) && (after === undefined || compareKeys(key, after) > 0),
    );
    for (const key of keys.sort(compareKeys)) {
      const held = this.#objects.get(key);
      if (held !== undefined) yield { key, size: held.bytes.length, modifiedMs: held.modifiedMs };
    }
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      checkKey(key);
      this.#objects.delete(key);
    }
  }
}
