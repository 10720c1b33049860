// An object store of sizes: takes keys and lengths, counts requests as S3 bills them, and takes its time on the virtual
// clock. Bytes are never kept; of an object only the footer can be read, which is made from its index when asked for.
// Not for: dollars (prices.ts).
import type { Clock } from '../../src/base/clock.ts';
import { FloeError } from '../../src/base/error.ts';
import type { Prng } from '../../src/base/prng.ts';
import type {
  GetOptions,
  ObjectInfo,
  ObjectStore,
} from '../../src/storage/objects/object-store.ts';
import { PARALLEL_PARTS, putRequests } from '../../src/storage/objects/prices.ts';
import type { Purpose } from '../../src/storage/objects/purposes.ts';
import { MIB } from './workload.ts';

/** Time to the answer of a PUT and to the first byte of a GET, milliseconds: medians, as in the S3 double of the tests. */
export const PUT_FIRST_MS = 100;
export const GET_FIRST_MS = 30;
/** What one connection carries after that. */
export const STREAM_BYTES_PER_SECOND = 90 * MIB;
/** Latencies spread by this share around their median. */
const SPREAD = 0.4;
const LIST_PAGE = 1_000;

export function putMs(bytes: number, prng: Prng, streams = 1): number {
  return spread(PUT_FIRST_MS, prng) + (bytes / (STREAM_BYTES_PER_SECOND * streams)) * 1_000;
}

export function getMs(bytes: number, prng: Prng): number {
  return spread(GET_FIRST_MS, prng) + (bytes / STREAM_BYTES_PER_SECOND) * 1_000;
}

const spread = (ms: number, prng: Prng) => ms * (1 + SPREAD * (prng.next() - 0.5));

export type Operation = 'put' | 'get' | 'list' | 'delete';

/** Requests and bytes of one purpose and operation. */
export interface Tally {
  requests: number;
  bytes: number;
}

/** Requests since the start, by `<purpose> <operation>`. */
export type Tallies = Map<string, Tally>;

export interface SimulatedStoreOptions {
  readonly clock: Clock;
  readonly prng: Prng;
  readonly partBytes: number;
}

/** Large enough for every read and write; nothing is ever written into it. */
const ZEROS = new Uint8Array(512 * MIB);

/** A body of so many bytes that takes no memory. */
export const bodyOf = (bytes: number): Uint8Array => ZEROS.subarray(0, bytes);

export class SimulatedStore implements ObjectStore {
  readonly uri = 's3://month/floe';
  readonly tallies: Tallies;
  readonly #options: SimulatedStoreOptions;
  readonly #purpose: Purpose;
  /** Sizes by key, as they were put; views by purpose share them. */
  readonly #objects: Map<string, number>;
  readonly #stored: { bytes: number };
  /** What follows the first part of a body in parts: a stream object's footer. */
  readonly #footers: Map<string, { readonly position: number; readonly bytes: Uint8Array }>;
  readonly #views: Map<Purpose, SimulatedStore>;

  constructor(options: SimulatedStoreOptions, parent?: SimulatedStore, purpose: Purpose = 'other') {
    this.#options = options;
    this.#purpose = purpose;
    this.tallies = parent?.tallies ?? new Map();
    this.#objects = parent?.objects ?? new Map();
    this.#stored = parent === undefined ? { bytes: 0 } : parent.#stored;
    this.#footers = parent === undefined ? new Map() : parent.#footers;
    this.#views = parent === undefined ? new Map() : parent.#views;
  }

  get objects(): Map<string, number> {
    return this.#objects;
  }

  get storedBytes(): number {
    return this.#stored.bytes;
  }

  for(purpose: Purpose): SimulatedStore {
    let view = this.#views.get(purpose);
    if (view === undefined) {
      view = new SimulatedStore(this.#options, this, purpose);
      this.#views.set(purpose, view);
    }
    return view;
  }

  /** Counts requests that are made elsewhere (the flush stage has a clock of its own). */
  count(operation: Operation, requests: number, bytes: number): void {
    const key = `${this.#purpose} ${operation}`;
    const tally = this.tallies.get(key) ?? { requests: 0, bytes: 0 };
    tally.requests += requests;
    tally.bytes += bytes;
    this.tallies.set(key, tally);
  }

  /** Notes an object without taking time for it. */
  place(key: string, bytes: number): void {
    if (this.#objects.has(key)) throw new FloeError('conflict', `${key} exists`);
    this.#objects.set(key, bytes);
    this.#stored.bytes += bytes;
    this.count('put', putRequests(bytes, this.#options.partBytes), bytes);
  }

  async put(key: string, body: Uint8Array | readonly Uint8Array[]): Promise<void> {
    const { clock, prng, partBytes } = this.#options;
    const bytes =
      body instanceof Uint8Array ? body.length : body.reduce((n, part) => n + part.length, 0);
    const requests = putRequests(bytes, partBytes);
    const streams = Math.min(requests, PARALLEL_PARTS);
    // In parts: one request begins, the parts go side by side, one completes.
    const rounds = requests === 1 ? 1 : 3;
    await clock.sleep(putMs(bytes, prng, streams) + (rounds - 1) * spread(GET_FIRST_MS, prng));
    this.place(key, bytes);
    if (body instanceof Uint8Array || body.length < 2) return;
    this.#footers.set(key, { position: body[0]!.length, bytes: body[1]! });
  }

  async get(key: string, { start = 0, length, into }: GetOptions = {}): Promise<Uint8Array> {
    const { clock, prng } = this.#options;
    const size = this.#objects.get(key);
    const wanted = Math.max(0, Math.min(length ?? into?.length ?? Infinity, (size ?? 0) - start));
    this.count('get', 1, wanted);
    await clock.sleep(getMs(wanted, prng));
    if (size === undefined || !this.#objects.has(key))
      throw new FloeError('not-found', `${key} is not there`);
    const footer = this.#footer(key, start, wanted);
    if (into === undefined) return footer ?? bodyOf(wanted);
    if (footer !== undefined) into.set(footer);
    return into.subarray(0, wanted);
  }

  #footer(key: string, start: number, length: number): Uint8Array | undefined {
    const footer = this.#footers.get(key);
    if (footer === undefined || start < footer.position) return undefined;
    const from = start - footer.position;
    return footer.bytes.subarray(from, from + length);
  }

  async head(): Promise<ObjectInfo | undefined> {
    throw new FloeError('unsupported', 'nothing in the month asks for this');
  }

  async *list(prefix: string, { after = '' } = {}): AsyncIterable<ObjectInfo> {
    let found = 0;
    // Keys are placed in ascending order of their times, give or take a request under way.
    for (const [key, size] of this.#objects) {
      if (key <= after || !key.startsWith(prefix)) continue;
      if (found % LIST_PAGE === 0) this.count('list', 1, 0);
      found += 1;
      yield { key, size, modifiedMs: 0 };
    }
    if (found === 0) this.count('list', 1, 0);
  }

  async delete(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) this.count('delete', Math.ceil(keys.length / LIST_PAGE), 0);
    for (const key of keys) {
      this.#stored.bytes -= this.#objects.get(key) ?? 0;
      this.#objects.delete(key);
      this.#footers.delete(key);
    }
  }
}
