// Objects of single flushes in chunks as large as a GET is worth: each chunk is asked of the store once, whoever of this
// node's partitions, table workers and peers of the zone wants a piece of it. A flush holds a little of many partitions;
// without this each of them would be a request of its own. Bounded, least recently used dropped first. Objects never
// change, so nothing here is ever stale. Not for: blocks (block-cache.ts) and what has been compacted, which lies in
// large pieces already.
import { FloeError } from '../../base/error.ts';
import { SingleFlight } from '../../base/queue.ts';

export interface ChunkCacheOptions {
  readonly chunkBytes: number;
  readonly maxBytes: number;
  /** Bytes `[start, start + length)` of an object, fewer where it ends before. */
  readonly fetch: (key: string, start: number, length: number) => Promise<Uint8Array>;
}

export interface ChunkStats {
  readonly hits: number;
  /** Chunks asked of the store. */
  readonly fetches: number;
  readonly bytes: number;
}

/** What an empty chunk counts for: its entry. */
const ENTRY_BYTES = 256;

export class ChunkCache {
  readonly #options: ChunkCacheOptions;
  /** By key and number, the least recently used first. */
  readonly #chunks = new Map<string, Uint8Array>();
  readonly #loading = new SingleFlight<string, Uint8Array>();
  #bytes = 0;
  #hits = 0;
  #fetches = 0;

  constructor(options: ChunkCacheOptions) {
    this.#options = options;
  }

  get stats(): ChunkStats {
    return { hits: this.#hits, fetches: this.#fetches, bytes: this.#bytes };
  }

  /**
   * Bytes from `start` on into `into`, as far as the object goes. @returns how many. @throws FloeError of the store.
   */
  async read(key: string, start: number, into: Uint8Array): Promise<number> {
    const { chunkBytes } = this.#options;
    const first = Math.floor(start / chunkBytes);
    const last = Math.floor((start + Math.max(into.length, 1) - 1) / chunkBytes);
    const chunks = await Promise.all(
      Array.from({ length: last - first + 1 }, (_, n) => this.#chunk(key, first + n)),
    );
    let filled = 0;
    for (const [n, chunk] of chunks.entries()) {
      const from = start + filled - (first + n) * chunkBytes;
      const piece = chunk.subarray(from, from + into.length - filled);
      into.set(piece, filled);
      filled += piece.length;
      if (chunk.length < chunkBytes) break;
    }
    return filled;
  }

  /** Lets go of an object that is gone. */
  forget(keys: readonly string[]): void {
    const gone = new Set(keys);
    for (const id of this.#chunks.keys())
      if (gone.has(id.slice(id.indexOf(':') + 1))) this.#drop(id);
  }

  async #chunk(key: string, number: number): Promise<Uint8Array> {
    const id = `${number}:${key}`;
    const kept = this.#chunks.get(id);
    if (kept !== undefined) {
      this.#hits += 1;
      this.#chunks.delete(id);
      this.#chunks.set(id, kept);
      return kept;
    }
    return this.#loading.run(id, () => this.#fetch(id, key, number));
  }

  async #fetch(id: string, key: string, number: number): Promise<Uint8Array> {
    const { chunkBytes, fetch } = this.#options;
    this.#fetches += 1;
    const chunk = await fetch(key, number * chunkBytes, chunkBytes);
    if (chunk.length > chunkBytes)
      throw new FloeError(
        'corrupt',
        `${key}: ${chunk.length} bytes where ${chunkBytes} were asked`,
      );
    this.#chunks.set(id, chunk);
    this.#bytes += chunk.length + ENTRY_BYTES;
    for (const oldest of this.#chunks.keys()) {
      if (this.#bytes <= this.#options.maxBytes || oldest === id) break;
      this.#drop(oldest);
    }
    return chunk;
  }

  #drop(id: string): void {
    const chunk = this.#chunks.get(id);
    if (chunk === undefined) return;
    this.#chunks.delete(id);
    this.#bytes -= chunk.length + ENTRY_BYTES;
  }
}
