// A store whose keys come and go: a catalog hands them out for prefixes, for an hour or so, and hands out others later.
// Every thread opens the store for itself (`vended+s3://…`); whoever hears of keys gives them to all by a channel named
// after the store. Not for: getting keys (catalog/rest/vended.ts), stores with keys of their own (s3.ts).
import { BroadcastChannel } from 'node:worker_threads';
import type { Clock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { objectUri } from './keys.ts';
import type { GetOptions, ObjectInfo, ObjectStore, PutOptions } from './object-store.ts';

/** Scheme of such stores, before the real one. */
export const VENDED = 'vended+';

/** Keys to the objects whose URIs start with `prefix`. */
export interface StoreKeys {
  readonly prefix: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  /** Empty where there is none; so are `endpoint` and `region`. */
  readonly sessionToken: string;
  readonly endpoint: string;
  readonly region: string;
}

type Message = { readonly kind: 'ask' } | { readonly kind: 'keys'; readonly keys: StoreKeys[] };

/** Prefixes whose keys are kept; the one renewed longest ago is forgotten. */
const MAX_PREFIXES = 10_000;
/** How long a call waits for the first keys, in ms: a thread that has just started asks for them. */
const FIRST_KEYS_MS = 2_000;

const channelOf = (uri: string) => `floe-store-keys ${uri}`;

/** Gives keys to every thread's store of `uri` (without {@link VENDED}), and remembers them for those to come. */
export class KeyDispenser {
  readonly #channel: BroadcastChannel;
  readonly #keys = new Map<string, StoreKeys>();

  constructor(uri: string) {
    this.#channel = new BroadcastChannel(channelOf(uri));
    this.#channel.unref();
    this.#channel.onmessage = (event) => {
      if ((event as { data: Message }).data.kind === 'ask') this.#send([...this.#keys.values()]);
    };
  }

  use(keys: readonly StoreKeys[]): void {
    const fresh = keys.filter((one) => !sameKeys(one, this.#keys.get(one.prefix)));
    remember(this.#keys, fresh);
    if (fresh.length > 0) this.#send(fresh);
  }

  stop(): void {
    this.#channel.close();
  }

  #send(keys: StoreKeys[]): void {
    this.#channel.postMessage({ kind: 'keys', keys } satisfies Message);
  }
}

interface Held {
  readonly keys: StoreKeys;
  readonly store: ObjectStore;
}

export interface VendedStoreOptions {
  /** `s3://bucket/prefix`. */
  readonly uri: string;
  readonly clock: Clock;
  /** The store behind some keys. */
  readonly open: (keys: StoreKeys) => ObjectStore;
}

export class VendedObjectStore implements ObjectStore {
  readonly uri: string;
  readonly #options: VendedStoreOptions;
  readonly #channel: BroadcastChannel;
  readonly #held = new Map<string, Held>();
  #waiting: (() => void)[] = [];

  constructor(options: VendedStoreOptions) {
    this.uri = options.uri;
    this.#options = options;
    this.#channel = new BroadcastChannel(channelOf(options.uri));
    this.#channel.unref();
    this.#channel.onmessage = (event) => {
      const { data } = event as { data: Message };
      if (data.kind === 'keys') this.#take(data.keys);
    };
    this.#channel.postMessage({ kind: 'ask' } satisfies Message);
  }

  async put(key: string, body: Uint8Array | readonly Uint8Array[], options?: PutOptions) {
    await (await this.#storeOf(key)).put(key, body, options);
  }

  async get(key: string, options?: GetOptions): Promise<Uint8Array> {
    return (await this.#storeOf(key)).get(key, options);
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    return (await this.#storeOf(key)).head(key);
  }

  async *list(prefix: string, options?: { readonly after?: string }): AsyncIterable<ObjectInfo> {
    yield* (await this.#storeOf(prefix)).list(prefix, options);
  }

  async delete(keys: readonly string[]): Promise<void> {
    const byStore = new Map<ObjectStore, string[]>();
    for (const key of keys) {
      const store = await this.#storeOf(key);
      byStore.set(store, [...(byStore.get(store) ?? []), key]);
    }
    for (const [store, own] of byStore) await store.delete(own);
  }

  close(): void {
    this.#channel.close();
  }

  #take(keys: readonly StoreKeys[]): void {
    const changed = keys.filter((one) => !sameKeys(one, this.#held.get(one.prefix)?.keys));
    const opened = changed.map((one) => ({
      prefix: one.prefix,
      keys: one,
      store: this.#options.open(one),
    }));
    remember(this.#held, opened);
    for (const go of this.#waiting.splice(0)) go();
  }

  async #storeOf(key: string): Promise<ObjectStore> {
    const uri = objectUri(this, key);
    const found = this.#find(uri) ?? (await this.#await(uri));
    if (found !== undefined) return found;
    throw new FloeError(
      'unauthorized',
      `the catalog has handed out no keys to ${uri} (catalog.vended.credentials)`,
    );
  }

  /** The longest prefix wins. */
  #find(uri: string): ObjectStore | undefined {
    let best: Held | undefined;
    for (const held of this.#held.values()) {
      if (!uri.startsWith(held.keys.prefix)) continue;
      if (best === undefined || held.keys.prefix.length > best.keys.prefix.length) best = held;
    }
    return best?.store;
  }

  async #await(uri: string): Promise<ObjectStore | undefined> {
    const { clock } = this.#options;
    const until = clock.monotonic() + FIRST_KEYS_MS;
    for (let left = FIRST_KEYS_MS; left > 0; left = until - clock.monotonic()) {
      await this.#news(left);
      const found = this.#find(uri);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Resolves when keys come, or when the time is up. */
  #news(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.setTimer(ms, resolve);
      this.#waiting.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}

/** Puts entries under their prefix, last, and forgets the first ones past the limit. */
function remember<T extends { readonly prefix: string }, M>(
  map: Map<string, M>,
  entries: readonly (T & M)[],
): void {
  for (const entry of entries) {
    map.delete(entry.prefix);
    map.set(entry.prefix, entry);
  }
  for (const prefix of map.keys()) {
    if (map.size <= MAX_PREFIXES) break;
    map.delete(prefix);
  }
}

function sameKeys(a: StoreKeys, b: StoreKeys | undefined): boolean {
  return (
    b !== undefined &&
    a.accessKeyId === b.accessKeyId &&
    a.secretAccessKey === b.secretAccessKey &&
    a.sessionToken === b.sessionToken &&
    a.endpoint === b.endpoint &&
    a.region === b.region
  );
}
