// Shared memory for blocks, touched once and used for ever: fresh memory costs most of what reading into it does.
// A buddy allocator: areas are powers of two, so freed neighbours join again and nothing fragments for good.
// Not for: whose bytes are dropped when it is full (block-cache.ts).
import { assert } from '../../base/assert.ts';

/** Smallest area: a page. */
export const MIN_AREA_BYTES = 4 * 1024;

/** A power-of-two area of the arena. */
export interface Area {
  readonly offset: number;
  /** Bytes, a power of two ≥ {@link MIN_AREA_BYTES}. */
  readonly size: number;
}

/** Bytes that an area for `length` takes. */
function areaBytes(length: number): number {
  let size = MIN_AREA_BYTES;
  while (size < length) size *= 2;
  return size;
}

export class Arena {
  readonly memory: SharedArrayBuffer;
  /** Free areas by order: `#free[k]` holds offsets of areas of MIN_AREA_BYTES · 2^k. */
  readonly #free: Set<number>[] = [];
  #used = 0;

  /** `bytes` is cut down to a power of two. */
  constructor(bytes: number) {
    assert(bytes >= MIN_AREA_BYTES, 'an arena holds at least one area');
    let size = MIN_AREA_BYTES;
    this.#free.push(new Set());
    while (size * 2 <= bytes) {
      size *= 2;
      this.#free.push(new Set());
    }
    this.memory = new SharedArrayBuffer(size);
    this.#free.at(-1)!.add(0);
  }

  /** Bytes in areas that are taken. */
  get used(): number {
    return this.#used;
  }

  /** An area of at least `length` bytes, or undefined when there is none. */
  take(length: number): Area | undefined {
    const size = areaBytes(length);
    const order = orderOf(size);
    let from = order;
    while (from < this.#free.length && this.#free[from]!.size === 0) from += 1;
    if (from >= this.#free.length) return undefined;
    const offset = first(this.#free[from]!);
    this.#free[from]!.delete(offset);
    // The upper halves of what is cut go back.
    for (; from > order; from -= 1)
      this.#free[from - 1]!.add(offset + MIN_AREA_BYTES * 2 ** (from - 1));
    this.#used += size;
    return { offset, size };
  }

  /** Gives an area back, joined with its free neighbours. */
  give({ offset, size }: Area): void {
    this.#used -= size;
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
