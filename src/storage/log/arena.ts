// Shared memory for blocks, touched once and used for ever: fresh memory costs most of what reading into it does.
// Free memory is kept as runs of pages; the smallest run that is long enough is cut, at its lower end, and what is given
// back joins its neighbours. Blocks of one size a little above a power of two are what readers mostly load: powers of two
// would hold half as many of them. Not for: whose bytes are dropped when it is full (block-cache.ts).
import { assert } from '../../base/assert.ts';

/** Smallest area: a page. */
export const MIN_AREA_BYTES = 4 * 1024;

/** Bytes `[offset, offset + size)` of the arena, whole pages. */
export interface Area {
  readonly offset: number;
  readonly size: number;
}

/** As much of WebAssembly's interface as we use; Node's types leave it to the browser's. */
declare const WebAssembly: {
  readonly Memory: new (size: {
    initial: number;
    maximum: number;
    shared: true;
  }) => { readonly buffer: SharedArrayBuffer };
};

const WASM_PAGE_BYTES = 64 * 1024;
const WASM_MAX_BYTES = 4 * 1024 * 1024 * 1024;

/** Shared memory that begins at a page, where it can be had: files past the page cache are then read straight into it. */
function alignedMemory(bytes: number): SharedArrayBuffer {
  if (bytes % WASM_PAGE_BYTES !== 0 || bytes > WASM_MAX_BYTES) return new SharedArrayBuffer(bytes);
  const pages = bytes / WASM_PAGE_BYTES;
  return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }).buffer;
}

/** `length` in whole pages. */
const pagesOf = (length: number): number => Math.ceil(length / MIN_AREA_BYTES) * MIN_AREA_BYTES;

/** Free runs of one class have at least so many bytes, and less than twice as many. */
const classOf = (size: number): number => Math.floor(Math.log2(size / MIN_AREA_BYTES));

export class Arena {
  readonly memory: SharedArrayBuffer;
  /** Offset of every free run to its size, and the end of every one to its offset. */
  readonly #sizeAt = new Map<number, number>();
  readonly #startBefore = new Map<number, number>();
  /** Offsets of free runs by class. */
  readonly #classes: Set<number>[] = [];
  #used = 0;

  /** `bytes` is cut down to whole pages. */
  constructor(bytes: number) {
    assert(bytes >= MIN_AREA_BYTES, 'an arena holds at least one area');
    const size = Math.floor(bytes / MIN_AREA_BYTES) * MIN_AREA_BYTES;
    for (let n = 0; n <= classOf(size); n += 1) this.#classes.push(new Set());
    this.memory = alignedMemory(size);
    this.#add(0, size);
  }

  /** Bytes in areas that are taken. */
  get used(): number {
    return this.#used;
  }

  /** An area of at least `length` bytes, or undefined when no free run is as long. */
  take(length: number): Area | undefined {
    const size = pagesOf(Math.max(length, 1));
    const offset = this.#bestFit(size);
    if (offset === undefined) return undefined;
    const free = this.#sizeAt.get(offset)!;
    this.#remove(offset, free);
    if (free > size) this.#add(offset + size, free - size);
    this.#used += size;
    return { offset, size };
  }

  /** Gives an area back, joined with its free neighbours. */
  give({ offset, size }: Area): void {
    assert(!this.#sizeAt.has(offset), 'an area is given back once');
    this.#used -= size;
    const end = offset + size;
    const after = this.#sizeAt.get(end);
    if (after !== undefined) this.#remove(end, after);
    const before = this.#startBefore.get(offset);
    if (before !== undefined) this.#remove(before, offset - before);
    this.#add(before ?? offset, end + (after ?? 0) - (before ?? offset));
  }

  /** Offset of the smallest free run of at least `size` bytes, the lowest of several. */
  #bestFit(size: number): number | undefined {
    for (let n = classOf(size); n < this.#classes.length; n += 1) {
      let best: number | undefined;
      let bestSize = Number.POSITIVE_INFINITY;
      for (const offset of this.#classes[n]!) {
        const free = this.#sizeAt.get(offset)!;
        if (free < size || free > bestSize || (free === bestSize && offset > best!)) continue;
        best = offset;
        bestSize = free;
      }
      if (best !== undefined) return best;
    }
    return undefined;
  }

  #add(offset: number, size: number): void {
    this.#sizeAt.set(offset, size);
    this.#startBefore.set(offset + size, offset);
    this.#classes[classOf(size)]!.add(offset);
  }

  #remove(offset: number, size: number): void {
    this.#sizeAt.delete(offset);
    this.#startBefore.delete(offset + size);
    this.#classes[classOf(size)]!.delete(offset);
  }

  /** The bytes of an area, cut to `length`. */
  view(area: Area, length: number): Uint8Array {
    return new Uint8Array(this.memory, area.offset, length);
  }
}
