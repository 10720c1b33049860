// The object store: five methods over immutable objects. Implementations: memory, local folder, S3;
// decorators (retry, count, fault) wrap any of them. All pass `contract.ts`.
// Not for: names of objects (storage/paths.ts makes and parses every key).

import type { Purpose } from './purposes.ts';

export interface ObjectInfo {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  /** Milliseconds since the epoch, by the store's clock. */
  readonly modifiedMs: number;
}

export interface PutOptions {
  /** Fail with `conflict` when the key exists (S3: `If-None-Match: *`). */
  readonly ifNoneMatch?: boolean;
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

export interface GetOptions {
  /** First byte; with `length` past the end, what is there is returned. */
  readonly start?: number;
  readonly length?: number;
  /**
   * Where to put the bytes (a shared block, say); the result is then a view of its front.
   * With it, no more than `into.length` bytes are read.
   */
  readonly into?: Uint8Array;
  readonly signal?: AbortSignal;
}

/**
 * Errors: `not-found` (get of a missing key), `conflict` (ifNoneMatch), `unavailable` (retry may help),
 * `timeout` (a put's outcome is unknown), `exhausted` (disk full), `unauthorized`.
 */
export interface ObjectStore {
  /** URI of the root, without trailing slash: `file:///dir`, `s3://bucket/prefix`, `memory://name`. */
  readonly uri: string;
  /** Durable when it resolves. The bytes may be given in parts, which are not copied where the store allows. */
  put(key: string, body: Uint8Array | readonly Uint8Array[], options?: PutOptions): Promise<void>;
  get(key: string, options?: GetOptions): Promise<Uint8Array>;
  /** Undefined when the key does not exist. */
  head(key: string): Promise<ObjectInfo | undefined>;
  /** Keys under `prefix` in ascending byte order, those up to and including `after` left out. */
  list(prefix: string, options?: { readonly after?: string }): AsyncIterable<ObjectInfo>;
  /** Missing keys are fine. */
  delete(keys: readonly string[]): Promise<void>;
  /** The same store for requests of one purpose; ask by purposes.ts `storeFor`. Missing: purposes aren't told apart. */
  for?(purpose: Purpose): ObjectStore;
  /** Gives up uploads in parts that began before a time and never ended. Missing: there are none. @returns how many. */
  abortUploads?(prefix: string, beforeMs: number): Promise<number>;
  /** How many of those there are that began before a time. Missing: there are none. */
  countUploads?(prefix: string, beforeMs: number): Promise<number>;
}
