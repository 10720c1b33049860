// Slabs: a fixed pool of shared memory that batches are copied into once and from which they are written to the
// WAL, sent to consumers and read by workers of other threads. Reference counts are Atomics, so any thread may
// let go of a slab. Why a pool: touching a fresh 8 MiB buffer per flush costs 6.8 ms and lets memory peak.
import { assert } from '../../base/assert.ts';

export interface Slab {
  readonly number: number;
  readonly bytes: Buffer;
}

/** What another thread needs to see the same slabs. */
export interface SharedSlabs {
  readonly counts: SharedArrayBuffer;
  readonly memory: readonly SharedArrayBuffer[];
}

export class SlabPool {
  readonly slabBytes: number;
  readonly shared: SharedSlabs;
  readonly #counts: Int32Array;
  readonly #slabs: readonly Slab[];

  private constructor(shared: SharedSlabs) {
    this.shared = shared;
    this.slabBytes = shared.memory[0]!.byteLength;
    this.#counts = new Int32Array(shared.counts);
    this.#slabs = shared.memory.map((memory, number) => ({ number, bytes: Buffer.from(memory) }));
  }

  /** A pool of `count` slabs. Memory becomes resident as it is first written. */
  static create(slabBytes: number, count: number): SlabPool {
    return new SlabPool({
      counts: new SharedArrayBuffer(4 * count),
      memory: Array.from({ length: count }, () => new SharedArrayBuffer(slabBytes)),
    });
  }

  /** The pool of another thread. */
  static attach(shared: SharedSlabs): SlabPool {
    return new SlabPool(shared);
  }

  get count(): number {
    return this.#slabs.length;
  }

  slab(number: number): Slab {
    const slab = this.#slabs[number];
    assert(slab !== undefined, `slab ${number} exists`);
    return slab;
  }

  /** A free slab with one reference, the lowest number first (warm memory), or undefined. */
  acquire(): Slab | undefined {
    for (const slab of this.#slabs) {
      if (Atomics.compareExchange(this.#counts, slab.number, 0, 1) === 0) return slab;
    }
    return undefined;
  }

  retain(number: number): void {
    const before = Atomics.add(this.#counts, number, 1);
    assert(before > 0, 'a slab is retained only by a holder');
  }

  release(number: number): void {
    const before = Atomics.sub(this.#counts, number, 1);
    assert(before > 0, 'a slab is released as often as it was retained');
  }

  references(number: number): number {
    return Atomics.load(this.#counts, number);
  }

  /** Slabs that nobody holds. */
  get free(): number {
    return this.#slabs.reduce((sum, slab) => sum + (this.references(slab.number) === 0 ? 1 : 0), 0);
  }
}
