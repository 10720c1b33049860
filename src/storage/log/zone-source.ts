// Reads of stored objects for a node whose brothers in the zone read the same: an object of a flush has an owner among
// them (by rendezvous), who asks the store for it once and serves the others; whoever gets no answer from the owner in
// time asks the store itself, so a dead owner costs a moment and a request. Compacted objects are read straight from the
// store: they lie by partition, and a partition is read by one node of a zone.
// Not for: how peers reach each other (cli/zone.ts), who owns what (cluster.chosen).
import type { Clock } from '../../base/clock.ts';
import type { Metrics } from '../../base/metrics.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { storeFor } from '../objects/purposes.ts';
import { isWalKey } from '../paths.ts';
import { type ByteRead, type ByteSource, objectSource, tooShort } from './byte-source.ts';
import { ChunkCache, type ChunkStats } from './chunk-cache.ts';
import type { ObjectRef } from './entries.ts';

/** Another node of the zone. */
export interface ZonePeer {
  /** Bytes `[start, start + length)` of an object, fewer where it ends before. @throws FloeError `not-found`, `unavailable`. */
  read(key: string, range: ZoneRange, signal: AbortSignal): Promise<Uint8Array>;
}

export interface ZoneRange {
  readonly start: number;
  readonly length: number;
}

export interface ZoneSourceOptions {
  readonly store: ObjectStore;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly settings: {
    readonly 'log.read.chunk.bytes': number;
    readonly 'log.read.chunk.cache.bytes': number;
    readonly 'log.zone.deadline.ms': number;
  };
}

/** The source, and what it does for peers. */
export interface ZoneSource extends ByteSource {
  /** Who of the zone asks the store for this object; undefined: this node. Until it is set, this node for all. */
  setOwners(ownerOf: (key: string) => ZonePeer | undefined): void;
  /** For peers: from the chunks of this node, which is the owner in their eyes. @throws FloeError as the store does. */
  serve(key: string, range: ZoneRange): Promise<Uint8Array>;
  readonly stats: ChunkStats;
}

/** A peer that failed is left alone for so long. */
const REST_MS = 2_000;

/** Damage on the way is rare: of more objects than this the oldest are trusted again. */
const MAX_DISTRUSTED = 1_000;

export function zoneSource(options: ZoneSourceOptions): ZoneSource {
  return new Zone(options);
}

class Zone implements ZoneSource {
  readonly #options: ZoneSourceOptions;
  readonly #straight: ByteSource;
  readonly #chunks: ChunkCache;
  /** Until when a peer isn't asked, by the monotonic clock. */
  readonly #resting = new WeakMap<ZonePeer, number>();
  #ownerOf: (key: string) => ZonePeer | undefined = () => undefined;
  /** Objects that aren't asked of peers, who may have kept what was damaged. The latest last. */
  readonly #distrusted = new Set<string>();

  constructor(options: ZoneSourceOptions) {
    const { store, settings, metrics } = options;
    this.#options = options;
    this.#straight = objectSource(store);
    const tail = storeFor(store, 'tail');
    this.#chunks = new ChunkCache({
      chunkBytes: settings['log.read.chunk.bytes'],
      maxBytes: settings['log.read.chunk.cache.bytes'],
      fetch: (key, start, length) => tail.get(key, { start, length }),
    });
    metrics.observeGauge(
      'floe_log_chunk_cache_bytes',
      'Bytes of flushes in the chunk cache.',
      () => this.stats.bytes,
    );
    metrics.observeGauge(
      'floe_log_chunk_fetches',
      'Chunks asked of the store.',
      () => this.stats.fetches,
    );
    metrics.observeGauge(
      'floe_log_chunk_hits',
      'Pieces found in the chunk cache.',
      () => this.stats.hits,
    );
  }

  get stats(): ChunkStats {
    return this.#chunks.stats;
  }

  setOwners(ownerOf: (key: string) => ZonePeer | undefined): void {
    this.#ownerOf = ownerOf;
  }

  forget(keys: readonly string[]): void {
    this.#chunks.forget(keys);
    for (const key of keys) this.#distrusted.delete(key);
  }

  distrust(key: string): void {
    this.#chunks.forget([key]);
    this.#distrusted.delete(key);
    this.#distrusted.add(key);
    if (this.#distrusted.size > MAX_DISTRUSTED)
      this.#distrusted.delete(this.#distrusted.values().next().value!);
  }

  async read(
    object: ObjectRef,
    reads: readonly ByteRead[],
    how: Parameters<ByteSource['read']>[2],
  ): Promise<void> {
    // Compaction reads each object once, and whole.
    if (!isWalKey(object.key) || how.purpose === 'maintenance')
      return this.#straight.read(object, reads, how);
    await Promise.all(reads.map((read) => this.#readOne(object.key, read, how.signal)));
  }

  async #readOne(
    key: string,
    { position, into, need = into.length }: ByteRead,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const filled =
      (await this.#fromPeer(key, position, into)) ?? (await this.#chunks.read(key, position, into));
    signal?.throwIfAborted();
    if (filled < need) throw tooShort(key, position, need);
  }

  /** Undefined when there is no owner but this node, it didn't answer, or what it gave was damaged. */
  async #fromPeer(key: string, start: number, into: Uint8Array): Promise<number | undefined> {
    if (this.#distrusted.has(key)) return undefined;
    const peer = this.#ownerOf(key);
    const { clock, settings, metrics } = this.#options;
    if (peer === undefined || (this.#resting.get(peer) ?? -Infinity) > clock.monotonic())
      return undefined;
    const late = new AbortController();
    const timer = clock.setTimer(settings['log.zone.deadline.ms'], () => late.abort());
    try {
      const found = await peer.read(key, { start, length: into.length }, late.signal);
      into.set(found.subarray(0, into.length));
      metrics.count('floe_log_zone_reads_total', 'Reads from peers of the zone.', {
        outcome: 'ok',
      });
      return Math.min(found.length, into.length);
    } catch {
      // Whatever it was, the store knows better.
      this.#resting.set(peer, clock.monotonic() + REST_MS);
      metrics.count('floe_log_zone_reads_total', 'Reads from peers of the zone.', {
        outcome: 'failed',
      });
      return undefined;
    } finally {
      timer.cancel();
    }
  }

  async serve(key: string, { start, length }: ZoneRange): Promise<Uint8Array> {
    const into = new Uint8Array(length);
    return into.subarray(0, await this.#chunks.read(key, start, into));
  }
}
