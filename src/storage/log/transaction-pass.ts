// Transactions as a pass through a partition meets them, in order of offsets: which batches were aborted, and which
// markers have nothing left that they could be about. Rules as Kafka's CleanedTransactionMetadata: a marker may only go
// once a whole pass has met no record of its transaction, so a pass that removes records leaves their marker alone.
// Not for: when a marker goes then (batch-cleaner.ts).
import type { AbortedTransaction } from '../../metadata/log.ts';

export class TransactionPass {
  /** By first offset; those before `#next` have begun. */
  readonly #aborted: readonly AbortedTransaction[];
  #next = 0;
  /** Aborted transactions under way, and whether a record of theirs was met. */
  readonly #open = new Map<number, boolean>();
  /** Producers with records of a committed transaction whose marker is yet to come. */
  readonly #committed = new Set<number>();

  /** `aborted` are those that overlap the pass, in any order. */
  constructor(aborted: readonly AbortedTransaction[]) {
    this.#aborted = aborted.toSorted((a, b) => a.firstOffset - b.firstOffset);
  }

  /** A batch of a transaction, at `offset`. @returns true when it was aborted. */
  batch(producerId: number, offset: number): boolean {
    this.#advance(offset);
    if (!this.#open.has(producerId)) {
      this.#committed.add(producerId);
      return false;
    }
    this.#open.set(producerId, true);
    return true;
  }

  /** A marker at `offset`. @returns true when no record of its transaction was met. */
  marker(producerId: number, offset: number, committed: boolean): boolean {
    this.#advance(offset);
    if (committed) return !this.#committed.delete(producerId);
    const met = this.#open.get(producerId) === true;
    this.#open.delete(producerId);
    return !met;
  }

  #advance(offset: number): void {
    for (; this.#next < this.#aborted.length; this.#next += 1) {
      const { firstOffset, producerId } = this.#aborted[this.#next]!;
      if (firstOffset > offset) return;
      this.#open.set(producerId, false);
    }
  }
}
