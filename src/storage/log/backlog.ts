// Batches that were admitted while no slab could be had: copies, in order of admission, until one can. What comes while
// batches wait here waits behind them. The log is congested meanwhile, so connections that produce are not read, and no
// more than what their requests under way hold comes here. Not for: when slabs are free again (front-log.ts).
import type { AppendItem } from './log.ts';
import type { AppendRequest } from './open-flush.ts';

export interface WaitingBatch {
  readonly item: AppendItem;
  readonly request: AppendRequest;
  /** The item's place in its request. */
  readonly n: number;
}

export class Backlog {
  #waiting: WaitingBatch[] = [];
  #bytes = 0;

  get empty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Bytes of the copies. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Keeps a copy: the request's memory is used anew once `append` has returned. */
  add({ item, request, n }: WaitingBatch): void {
    this.#waiting.push({ item: { ...item, bytes: new Uint8Array(item.bytes) }, request, n });
    this.#bytes += item.bytes.length;
  }

  /** Offers what waits, in order, until `take` refuses. */
  drain(take: (batch: WaitingBatch) => boolean): void {
    let taken = 0;
    for (const batch of this.#waiting) {
      if (!take(batch)) break;
      taken += 1;
      this.#bytes -= batch.item.bytes.length;
    }
    if (taken > 0) this.#waiting = this.#waiting.slice(taken);
  }
}
