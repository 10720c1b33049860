// Shared memory for blocks, touched once and used for ever: fresh memory costs most of what reading into it does.
// A buddy allocator: areas are powers of two, so freed neighbours join again and nothing fragments for good.
// Not for: whose bytes are dropped when it is full (block-cache.ts).
import { assert } from '../../base/assert.ts';

/** Smallest area: a page. */
export const MIN_AREA_BYTES = 4 * 1024;

/** An area of the arena: a power of two, less what its end didn't need. */
export interface Area {
  readonly offset: number;
  /** Bytes, a multiple of {@link MIN_AREA_BYTES}. */
  readonly size: number;
}

/** Bytes that an area for `length` takes. */
function areaBytes(length: number): number {
  let size = MIN_AREA_BYTES;
  while (size < length) size *= 2;
  return size;
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

export class Arena {
  readonly memory: SharedArrayBuffer;
  /** Free areas by order: `#free[k]` holds offsets of areas of MIN_AREA_BYTES · 2^k. */
  readonly #free: Set<number>[] = [];
  #used = 0;

  /** `bytes` is cut down to whole pages. */
  constructor(bytes: number) {
    assert(bytes >= MIN_AREA_BYTES, 'an arena holds at least one area');
    const size = Math.floor(bytes / MIN_AREA_BYTES) * MIN_AREA_BYTES;
    for (let order = 0; MIN_AREA_BYTES * 2 ** order <= size; order += 1) this.#free.push(new Set());
    this.memory = alignedMemory(size);
    this.#giveParts(0, size);
  }

  /** Bytes in areas that are taken. */
  get used(): number {
    return this.#used;
  }

  /** An area of at least `length` bytes, or undefined when there is none. */
  take(length: number): Area | undefined {
    const whole = areaBytes(length);
    const size = Math.ceil(length / MIN_AREA_BYTES) * MIN_AREA_BYTES;
    const order = orderOf(whole);
    let from = order;
    while (from < this.#free.length && this.#free[from]!.size === 0) from += 1;
    if (from >= this.#free.length) return undefined;
    const offset = first(this.#free[from]!);
    this.#free[from]!.delete(offset);
    // The upper halves of what is cut go back.
    for (; from > order; from -= 1)
      this.#free[from - 1]!.add(offset + MIN_AREA_BYTES * 2 ** (from - 1));
    this.#used += size;
    this.#giveParts(offset + size, offset + whole);
    return { offset, size };
  }

  /** Gives an area back, joined with its free neighbours. */
  give({ offset, size }: Area): void {
    this.#used -= size;
    this.#giveParts(offset, offset + size);
  }

  /** Gives `[from, to)` back as the powers of two it is made of. */
  #giveParts(from: number, to: number): void {
    while (from < to) {
      let size = MIN_AREA_BYTES;
      while (from % (size * 2) === 0 && from + size * 2 <= to) size *= 2;
      this.#givePart(from, size);
      from += size;
    }
  }

  #givePart(offset: number, size: number): void {
    let order = orderOf(size);
    for (; order < this.#free.length - 1; order += 1) {
      const buddy = offset ^ (MIN_AREA_BYTES * 2 ** order);
      if (!this.#free[order]!.delete(buddy)) break;
      offset = Math.min(offset, buddy);
    }
    assert(!this.#free[order]!.has(offset), 'an area is given back once');
    this.#free[order]!.add(offset);
  }

  /** The bytes of an area, cut to `length`. */
  view(area: Area, length: number): Uint8Array {
    return new Uint8Array(this.memory, area.offset, length);
  }
}

const orderOf = (size: number): number => Math.log2(size / MIN_AREA_BYTES);

function first(offsets: Set<number>): number {
  for (const offset of offsets) return offset;
  throw new RangeError('an empty set has no first element');
}
