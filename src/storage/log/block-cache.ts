// Bytes of objects in shared memory, so that every thread can read them without a copy: bounded, least recently
// used dropped first, one load for all who want the same bytes. A block is what one read call brought.
// Blocks are raw and never change. Two caches exist, hot for consumers and cold for tables and maintenance, so that
// a scan never evicts what consumers read. Not for: slabs (the newest bytes), and what the bytes mean (reader.ts).
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import { type Area, Arena, MIN_AREA_BYTES } from './arena.ts';

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

/**
 * For whom a block is loaded: a read that can't go without it, a read that can return less, or somebody who may read
 * it soon. The last never takes the memory of what was loaded for the same reason and waits to be read.
 */
export type LoadReason = 'must' | 'read' | 'ahead';

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
  /** Read to their end, in that order: nobody may want them again. */
  readonly #spent = new Set<Held>();
  /** Loaded and not read to their end: somebody is about to want them. In order of loading. */
  readonly #unread = new Set<Held>();
  /** By object, ascending position. */
  readonly #byObject = new Map<number, Held[]>();
  #hits = 0;
  #loads = 0;
  #evictions = 0;

  /** `bytes` is cut down to whole pages. */
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
    return held;
  }

  /** Notes that a reader is through with a block: from now on it is the last resort of others, and goes first. */
  spent(block: Block): void {
    const held = block as Held;
    if (held.dropped) return;
    this.#unread.delete(held);
    this.#spent.delete(held);
    this.#spent.add(held);
  }

  /** Like {@link find}, without pinning or counting as a use. */
  peek(objectId: number, from: number, to: number): Block | undefined {
    return this.#covering(objectId, from, to);
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
   * Makes room for a range and loads it, once; the block is pinned. `load` fills its bytes; it gets room up to the
   * end of a page, for sources that read whole pages.
   * Undefined when the range would need more memory than can be freed (readers hold the rest), unless it
   * must: then it gets memory of its own, which ends with the block.
   */
  load(
    range: { readonly objectId: number; readonly position: number; readonly length: number },
    load: (bytes: Uint8Array) => Promise<void>,
    why: LoadReason = 'read',
  ): Block | undefined {
    const area = this.#room(range.length, why);
    if (area === undefined && why !== 'must') return undefined;
    const room = Math.ceil(range.length / MIN_AREA_BYTES) * MIN_AREA_BYTES;
    const whole =
      area === undefined
        ? new Uint8Array(new SharedArrayBuffer(room))
        : this.#arena.view(area, room);
    const bytes = whole.subarray(0, range.length);
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
    held.ready = this.#fill(held, () => load(whole));
    // Whoever waits gets the rejection; a prefetch that nobody waits for must not end the process.
    held.ready.catch(() => {});
    return held;
  }

  async #fill(held: Held, load: () => Promise<void>): Promise<void> {
    try {
      await load();
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

  #room(length: number, why: LoadReason): Area | undefined {
    for (;;) {
      const area = this.#arena.take(length);
      if (area !== undefined) return area;
      if (!this.#evictOne(why)) return undefined;
    }
  }

  #evictOne(why: LoadReason): boolean {
    for (const blocks of why === 'ahead' ? [this.#spent] : [this.#spent, this.#unread])
      for (const held of blocks) {
        if (held.pins > 0) continue;
        this.#evictions += 1;
        this.#drop(held);
        return true;
      }
    return false;
  }

  #insert(held: Held): void {
    this.#unread.add(held);
    const blocks = this.#byObject.get(held.objectId);
    if (blocks === undefined) this.#byObject.set(held.objectId, [held]);
    else blocks.splice(upperBound(blocks, held.position), 0, held);
  }

  #drop(held: Held): void {
    if (held.dropped) return;
    held.dropped = true;
    this.#spent.delete(held);
    this.#unread.delete(held);
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
