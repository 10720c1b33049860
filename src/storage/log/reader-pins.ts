// How much of the pool readers may hold. A reply that is sent slowly holds the slabs it points into, and a slab that is
// held can't be filled: so only so many may be held at once, whoever holds them, and further reads get copies, of which
// there are only so many bytes. Producers thus always find slabs, however many consumers stop reading.
// Not for: reads from storage (block-cache.ts has a bound of its own).
import { assert } from '../../base/assert.ts';
import type { ReadRun } from './log.ts';
import type { SlabPool } from './slab.ts';
import type { TailCache, TailRead } from './tail.ts';

export interface ReaderPinsOptions {
  readonly slabs: SlabPool;
  /** Slabs that readers hold at most. */
  readonly maxSlabs: number;
  /** Bytes of copies that readers hold at most; beyond it a read returns one batch. */
  readonly maxCopyBytes: number;
}

/** What a read from the tail holds, until released. */
export interface HeldRead {
  readonly runs: readonly ReadRun[];
  readonly bytes: number;
  release(): void;
}

export class ReaderPins {
  readonly #options: ReaderPinsOptions;
  /** Reads by slab that they hold. */
  readonly #held = new Map<number, number>();
  #copyBytes = 0;

  constructor(options: ReaderPinsOptions) {
    this.#options = options;
  }

  /** Slabs that readers hold now. */
  get slabs(): number {
    return this.#held.size;
  }

  /** Bytes of copies that readers hold now. */
  get copyBytes(): number {
    return this.#copyBytes;
  }

  /** Reads from the tail as {@link TailCache.read} does, in slabs where there may be more held, else in a copy. */
  read(
    tail: TailCache,
    partitionId: number,
    offset: number,
    limits: { readonly endOffset: number; readonly maxBytes: number },
  ): HeldRead | undefined {
    const found = tail.read(partitionId, offset, limits);
    if (found === undefined) return undefined;
    if (this.#mayHold(found.slabs)) return this.#hold(found);
    const { endOffset } = limits;
    const room = this.#options.maxCopyBytes - this.#copyBytes;
    if (found.bytes <= room) return this.#copy(found);
    this.#letGo(found.slabs);
    // At least one batch, whatever the bound: a reader that gets nothing would ask again at once.
    const maxBytes = Math.max(1, Math.min(limits.maxBytes, room));
    const less = tail.read(partitionId, offset, { endOffset, maxBytes });
    return less && this.#copy(less);
  }

  #mayHold(slabs: readonly number[]): boolean {
    let more = 0;
    for (const number of slabs) if (!this.#held.has(number)) more += 1;
    return this.#held.size + more <= this.#options.maxSlabs;
  }

  #hold({ runs, bytes, slabs }: TailRead): HeldRead {
    for (const number of slabs) this.#held.set(number, (this.#held.get(number) ?? 0) + 1);
    return {
      runs,
      bytes,
      release: () => {
        for (const number of slabs) {
          const left = this.#held.get(number)! - 1;
          assert(left >= 0, 'a read lets go of its slabs once');
          if (left === 0) this.#held.delete(number);
          else this.#held.set(number, left);
        }
        this.#letGo(slabs);
      },
    };
  }

  #copy({ runs, bytes, slabs }: TailRead): HeldRead {
    const copies = runs.map((run) => ({ ...run, bytes: Buffer.from(run.bytes) }));
    this.#letGo(slabs);
    this.#copyBytes += bytes;
    return {
      runs: copies,
      bytes,
      release: () => {
        this.#copyBytes -= bytes;
      },
    };
  }

  #letGo(slabs: readonly number[]): void {
    for (const number of slabs) this.#options.slabs.release(number);
  }
}
