// Bytes of objects in shared memory, so that every thread can read them without a copy: bounded, least recently
// used dropped first, one load for all who want the same bytes. A block is what one read call brought.
// Blocks are raw and never change. Two caches exist, hot for consumers and cold for tables and maintenance, so that
// a scan never evicts what consumers read. Not for: slabs (the newest bytes), and what the bytes mean (reader.ts).
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import { type Area, Arena } from './arena.ts';

/** Bytes `[position, position + length)` of an object, pinned while somebody holds them. */
export interface Block {
  readonly objectId: number;
  readonly position: number;
  readonly length: number;
  /** Backed by shared memory. Valid while pinned, and complete once `ready` has resolved. */
  readonly bytes: Uint8Array;
  /** Rejects when the load failed; the block is then gone from the cache. */
  readonly ready: Promise<void>;
  /** Whether the bytes have been loaded and checked. */
  readonly loaded: boolean;
}

interface Held extends Block {
  ready: Promise<void>;
  loaded: boolean;
  readonly area: Area | undefined;
  pins: number;
  /** No longer found; freed at the last unpin. */
  dropped: boolean;
}

export interface BlockStats {
  readonly hits: number;
  readonly loads: number;
  readonly evictions: number;
  /** Bytes of the arena in use. */
  readonly usedBytes: number;
}

/** Blocks looked at for one that covers a range; overlaps are few. */
const MAX_OVERLAPPING = 16;

export class BlockCache {
  readonly #arena: Arena;
  /** Insertion order is order of use. */
  readonly #blocks = new Set<Held>();
  /** By object, ascending position. */
  readonly #byObject = new Map<number, Held[]>();
  #hits = 0;
  #loads = 0;
  #evictions = 0;

  /** `bytes` is cut down to a power of two. */
  constructor(bytes: number) {
    this.#arena = new Arena(bytes);
  }

  /** The shared memory behind all blocks, to be handed to reader threads once. */
  get memory(): SharedArrayBuffer {
    return this.#arena.memory;
  }

  get stats(): BlockStats {
    return {
      hits: this.#hits,
      loads: this.#loads,
      evictions: this.#evictions,
      usedBytes: this.#arena.used,
    };
  }

  /** A block that covers `[from, to)` of the object, pinned, loaded or still loading; undefined when there is none. */
  find(objectId: number, from: number, to: number): Block | undefined {
    const held = this.#covering(objectId, from, to);
    if (held === undefined) return undefined;
    this.#hits += 1;
    held.pins += 1;
    this.#touch(held);
    return held;
  }

  /** Like {@link find}, without pinning or counting as a use. */
  has(objectId: number, from: number, to: number): boolean {
    return this.#covering(objectId, from, to) !== undefined;
  }

  #covering(objectId: number, from: number, to: number): Held | undefined {
    const blocks = this.#byObject.get(objectId);
    if (blocks === undefined) return undefined;
    // Blocks may overlap: a small one may begin between the entry and the large one that holds it.
    const last = upperBound(blocks, from) - 1;
    for (let n = last; n >= 0 && n > last - MAX_OVERLAPPING; n -= 1) {
      const held = blocks[n]!;
      if (to <= held.position + held.length) return held;
    }
    return undefined;
  }

  /**
   * Makes room for a range and loads it, once; the block is pinned. `load` fills and checks its bytes.
   * Undefined when the range would need more memory than can be freed (readers hold the rest), unless `must`:
   * then it gets memory of its own, which ends with the block.
   */
  load(
    range: { readonly objectId: number; readonly position: number; readonly length: number },
    load: (bytes: Uint8Array) => Promise<void>,
    must = false,
  ): Block | undefined {
    const area = this.#room(range.length);
    if (area === undefined && !must) return undefined;
    const bytes =
      area === undefined
        ? new Uint8Array(new SharedArrayBuffer(range.length))
        : this.#arena.view(area, range.length);
    this.#loads += 1;
    const held: Held = {
      ...range,
      bytes,
      area,
      pins: 1,
      loaded: false,
      dropped: false,
      ready: Promise.resolve(),
    };
    // Memory of its own isn't kept: it would escape the bound.
    if (area === undefined) held.dropped = true;
    else this.#insert(held);
    held.pins += 1;
    held.ready = this.#fill(held, load);
    // Whoever waits gets the rejection; a prefetch that nobody waits for must not end the process.
    held.ready.catch(() => {});
    return held;
  }

  async #fill(held: Held, load: (bytes: Uint8Array) => Promise<void>): Promise<void> {
    try {
      await load(held.bytes);
      held.loaded = true;
    } catch (caught) {
      this.#drop(held);
      throw FloeError.from(caught);
    } finally {
      this.unpin(held);
    }
  }

  /** Ends one hold of a block got from {@link find} or {@link load}. */
  unpin(block: Block): void {
    const held = block as Held;
    assert(held.pins > 0, 'a block is unpinned as often as pinned');
    held.pins -= 1;
    if (held.pins === 0 && held.dropped) this.#free(held);
  }

  /** Forgets an object's blocks: it is gone, or was found to hold something else. */
  forget(objectId: number): void {
    for (const held of [...(this.#byObject.get(objectId) ?? [])]) this.#drop(held);
  }

  #room(length: number): Area | undefined {
    for (;;) {
      const area = this.#arena.take(length);
      if (area !== undefined) return area;
      if (!this.#evictOne()) return undefined;
    }
  }

  #evictOne(): boolean {
    for (const held of this.#blocks) {
      if (held.pins > 0) continue;
      this.#evictions += 1;
      this.#drop(held);
      return true;
    }
    return false;
  }

  #insert(held: Held): void {
    this.#blocks.add(held);
    const blocks = this.#byObject.get(held.objectId);
    if (blocks === undefined) this.#byObject.set(held.objectId, [held]);
    else blocks.splice(upperBound(blocks, held.position), 0, held);
  }

  #touch(held: Held): void {
    this.#blocks.delete(held);
    this.#blocks.add(held);
  }

  #drop(held: Held): void {
    if (held.dropped) return;
    held.dropped = true;
    this.#blocks.delete(held);
    const blocks = this.#byObject.get(held.objectId)!;
    blocks.splice(blocks.indexOf(held), 1);
    if (blocks.length === 0) this.#byObject.delete(held.objectId);
    if (held.pins === 0) this.#free(held);
  }

  #free(held: Held): void {
    if (held.area !== undefined) this.#arena.give(held.area);
  }
}

/** First element that begins after `position`. */
function upperBound(blocks: readonly Block[], position: number): number {
  let low = 0;
  let high = blocks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (blocks[middle]!.position > position) high = middle;
    else low = middle + 1;
  }
  return low;
}
