// Commits of one table until nothing is left, and what a refusal means for its life.
// Not for: when (coordinator.ts), one round over both tables (table-commits.ts), one commit (commit.ts).
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import type { Metrics } from '../base/metrics.ts';
import type { Topic } from '../metadata/topics.ts';
import { movedTrouble, type TableProgress } from './progress.ts';
import { type Refused, TableCommits, type TableCommitsDeps } from './table-commits.ts';
import { countCommit, countCommitTime } from './table-metrics.ts';
import type { TableSession } from './table-session.ts';
import type { TableState } from './table-state.ts';
import { trouble } from './trouble.ts';

export interface CommitRoundsDeps extends TableCommitsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** How a run of commits ended. */
export type RoundsEnd =
  | { readonly kind: 'done' }
  /** Staged ranges didn't fit: they are read again. */
  | { readonly kind: 'rewound' }
  | { readonly kind: 'fenced'; readonly reason: string };

export interface CommitRoundsTable {
  readonly topic: Topic;
  readonly session: TableSession;
  readonly progress: TableProgress;
  readonly signal: AbortSignal;
  readonly state: () => TableState;
  /** The table's state allows commits. */
  readonly mayCommit: () => boolean;
}

export class CommitRounds {
  readonly #deps: CommitRoundsDeps;
  readonly #table: CommitRoundsTable;
  readonly #commits: TableCommits;

  constructor(deps: CommitRoundsDeps, table: CommitRoundsTable) {
    this.#deps = deps;
    this.#table = table;
    this.#commits = new TableCommits(deps, table.topic);
  }

  /** The table was looked up anew: it may be another one. */
  forget(): void {
    this.#commits.forget();
  }

  /** @throws FloeError: the trouble that keeps the table from its commits. */
  async run(): Promise<RoundsEnd> {
    const { clock, metrics } = this.#deps;
    const started = clock.monotonic();
    try {
      while (this.#table.mayCommit()) {
        const end = await this.#once();
        if (end !== 'more') return end;
      }
      return { kind: 'done' };
    } finally {
      countCommitTime(metrics, (clock.monotonic() - started) / 1_000);
    }
  }

  async #once(): Promise<RoundsEnd | 'more'> {
    const { session, progress, signal, state } = this.#table;
    await session.noteUuid(state());
    const { binding } = session;
    if (binding === undefined) return { kind: 'done' };
    const round = await this.#commits.round({ binding, epoch: session.epoch, signal });
    if (round.kind === 'idle') return { kind: 'done' };
    if (round.kind === 'refused') return this.#refused(round.outcome);
    progress.committed(round.outcome.offsets, round.bytes);
    countCommit(this.#deps.metrics, round.outcome);
    // More was staged than one snapshot takes.
    return round.more ? 'more' : { kind: 'done' };
  }

  async #refused(outcome: Refused): Promise<RoundsEnd> {
    switch (outcome.kind) {
      case 'fenced': {
        const reason = `T6: the table has a commit of coordinator epoch ${outcome.epoch}`;
        return { kind: 'fenced', reason };
      }
      case 'moved':
        throw movedTrouble();
      case 'replaced':
        throw trouble(
          `the table was replaced by another of the same name (uuid ${outcome.tableUuid}): resume with policy "restart" to fill that one`,
        );
      case 'discard':
        this.#deps.logger.warn({ reason: outcome.reason }, 'staged ranges are read again');
        await this.#table.session.rewindToTable();
        return { kind: 'rewound' };
    }
  }
}
