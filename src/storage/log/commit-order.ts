// What commits do in order: a front applies every commit of the cluster by the order of their numbers, which have no
// gap, however it learns of them — replies to flushes of its own, ends of transactions told by its sequencer, commits of
// other nodes that it follows (follower.ts). Own flushes are also taken in the order of sending: while the reply of one
// is awaited, its successors wait, or their records would be visible behind a hole (L3, L4).
// A commit that comes by two ways is applied once: a row of an own flush says nothing that its reply will not say.
// Not for: what applying a commit does (front-log.ts), how many flushes may be on their way (admission.ts).
import { assert } from '../../base/assert.ts';
import type { FlushRow } from '../../metadata/log.ts';

/** An own flush on its way. */
interface Flight {
  readonly flushId: Uint8Array;
  outcome: (() => void) | undefined;
  /** Of a flush that was committed. */
  commitNumber: number | undefined;
}

export interface CommitOrderOptions<Row extends FlushRow> {
  /** Number of the newest commit that is applied already. */
  readonly applied: number;
  /** Makes a commit that is not a flush of ours visible. */
  readonly apply: (row: Row) => void;
  /** Somebody waits for this commit, and one of those before it (or itself) isn't here: it must be asked for. */
  readonly onMissing: (commitNumber: number) => void;
  /** Called whenever something was applied or given up. */
  readonly onLanded: () => void;
}

interface Waiter {
  readonly commitNumber: number;
  readonly resolve: () => void;
}

export class CommitOrder<Row extends FlushRow = FlushRow> {
  readonly #options: CommitOrderOptions<Row>;
  /** Number of the newest commit that is visible here; there is no gap before it. */
  #applied: number;
  /** Sent flushes in order, until their outcomes are taken. */
  readonly #flights: Flight[] = [];
  /** Other commits by number, until it is their turn. */
  readonly #rows = new Map<number, Row>();
  #waiters: Waiter[] = [];
  #landing = false;

  constructor(options: CommitOrderOptions<Row>) {
    this.#options = options;
    this.#applied = options.applied;
  }

  get applied(): number {
    return this.#applied;
  }

  /** Commits that are here and wait for others before them. */
  get waitingRows(): number {
    return this.#rows.size;
  }

  /** True while somebody waits for a commit to be applied. */
  get awaited(): boolean {
    return this.#waiters.length > 0;
  }

  /**
   * A flush has been sent. Call the result once its outcome is known: with the commit's number, or without when it is
   * not committed and never will be. `outcome` runs in its turn.
   */
  sent(flushId: Uint8Array): (outcome: () => void, commitNumber?: number) => void {
    const flight: Flight = { flushId, outcome: undefined, commitNumber: undefined };
    this.#flights.push(flight);
    return (outcome, commitNumber) => {
      assert(
        (commitNumber ?? Infinity) > this.#applied,
        'L2: a commit of ours is applied once, by its reply',
      );
      flight.outcome = outcome;
      flight.commitNumber = commitNumber;
      this.#land();
    };
  }

  /** Commits that aren't replies to flushes of ours, in any order; what is known already is passed over. */
  take(rows: readonly Row[]): void {
    for (const row of rows)
      if (row.commitNumber > this.#applied) this.#rows.set(row.commitNumber, row);
    this.#land();
  }

  /** Resolves once the commit is visible here. */
  whenApplied(commitNumber: number): Promise<void> {
    if (this.#applied >= commitNumber) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.push({ commitNumber, resolve });
      if (!this.#rows.has(this.#applied + 1)) this.#options.onMissing(commitNumber);
    });
  }

  #land(): void {
    // Applying may bring the next commit about; it is then taken by the loop below, not within it.
    if (this.#landing) return;
    this.#landing = true;
    try {
      while (this.#step());
    } finally {
      this.#landing = false;
    }
    this.#tell();
    this.#options.onLanded();
    const first = this.#flights[0]?.commitNumber ?? 0;
    const next = this.#applied + 1;
    if (first > next && !this.#rows.has(next)) this.#options.onMissing(first - 1);
  }

  /** Applies what is next, if it is here. */
  #step(): boolean {
    const next = this.#applied + 1;
    const first = this.#flights[0];
    if (first?.outcome !== undefined && (first.commitNumber ?? next) === next) {
      this.#flights.shift();
      this.#rows.delete(first.commitNumber ?? -1);
      this.#applied = first.commitNumber ?? this.#applied;
      first.outcome();
      return true;
    }
    const row = this.#rows.get(next);
    if (row === undefined || this.#isOwn(row)) return false;
    this.#rows.delete(next);
    this.#applied = next;
    this.#options.apply(row);
    return true;
  }

  /** True for the commit of a flush whose reply is still to come. */
  #isOwn({ flushId }: Row): boolean {
    return this.#flights.some((flight) => Buffer.compare(flight.flushId, flushId) === 0);
  }

  #tell(): void {
    if (this.#waiters.length === 0) return;
    const waiting: Waiter[] = [];
    for (const waiter of this.#waiters.splice(0)) {
      if (waiter.commitNumber > this.#applied) waiting.push(waiter);
      else waiter.resolve();
    }
    this.#waiters = [...waiting, ...this.#waiters];
  }

  /** Lets go of whoever waits: nothing will be applied any more. */
  stop(): void {
    for (const { resolve } of this.#waiters.splice(0)) resolve();
  }
}
