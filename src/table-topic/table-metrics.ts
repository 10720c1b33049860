// The counters that one table's work moves. Not for: gauges over all tables (table-topics.ts).
import type { Metrics } from '../base/metrics.ts';
import type { Committed } from './commit.ts';
import type { JobStaged } from './job.ts';

/** A stage entered. */
export function countStaged(
  metrics: Metrics,
  result: Pick<JobStaged, 'rows' | 'deadLetters' | 'skipped' | 'ranges'>,
): void {
  metrics.count('floe_table_rows_total', 'Rows staged', {}, result.rows);
  metrics.count('floe_table_dead_letters_total', 'Dead letters staged', {}, result.deadLetters);
  metrics.count('floe_table_skipped_total', 'Records skipped', {}, result.skipped);
  const lost = lostOffsets(result);
  if (lost === 0) return;
  // M3: one to be woken by.
  metrics.count('floe_table_lost_offsets_total', 'Offsets retention took before a table', {}, lost);
}

function lostOffsets({ ranges }: Pick<JobStaged, 'ranges'>): number {
  let lost = 0;
  for (const { gaps } of ranges) {
    for (const gap of gaps) if (gap.reason === 'retention') lost += gap.to - gap.from;
  }
  return lost;
}

/** The table took a commit. */
export function countCommit(metrics: Metrics, outcome: Committed): void {
  metrics.count('floe_table_files_total', 'Data files committed', {}, outcome.files);
  if (outcome.snapshotId !== undefined) {
    metrics.count('floe_table_commits_total', 'Snapshots committed');
  }
}

/** All rounds of one turn, from the first look to the last answer. */
export function countCommitTime(metrics: Metrics, seconds: number): void {
  metrics.seconds('floe_table_commit_seconds', 'Time to commit what was staged', seconds);
}

/** A table was suspended. */
export function countTrouble(metrics: Metrics, code: string): void {
  metrics.count('floe_table_troubles_total', 'Times a table ran into trouble', { code });
}
