// The newest commits in memory, for fronts that follow them over one SQLite (simulation, tests). Asked for by an option,
// so that an embedded node keeps none. Not for: nodes of a cluster, which follow rows of PostgreSQL.
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import type { FollowedCommit } from '../log.ts';

export class RecentCommits {
  readonly #capacity: number;
  /** In commit order, without a gap. */
  #rows: FollowedCommit[] = [];

  /** Keeps the newest `capacity` commits, and up to as many more between two tidyings. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Takes a commit in, after it has happened. */
  add(row: FollowedCommit): void {
    const newest = this.#rows.at(-1);
    assert(
      newest === undefined || newest.commitNumber + 1 === row.commitNumber,
      'L2: commits are numbered without a gap',
    );
    this.#rows.push(row);
    if (this.#rows.length >= 2 * this.#capacity) this.#rows = this.#rows.slice(-this.#capacity);
  }

  /** Rows after a commit. @throws FloeError `not-found` when they are no longer, or not, all here. */
  after(
    afterCommit: number,
    { lastCommit, limit }: { readonly lastCommit: number; readonly limit: number },
  ): readonly FollowedCommit[] {
    if (afterCommit === lastCommit) return [];
    const from = afterCommit + 1 - (this.#rows[0]?.commitNumber ?? Infinity);
    if (from < 0 || afterCommit > lastCommit)
      throw new FloeError(
        'not-found',
        `what follows commit ${afterCommit} isn't kept, the newest is ${lastCommit}: start over`,
      );
    return this.#rows.slice(from, from + limit);
  }
}
