// What maintenance says of a table, for `floe tables status` and HTTP. Plain data.
import type { TableFigures } from './task.ts';

export type UpkeepState =
  | 'idle'
  | 'waiting'
  | 'planning'
  | 'compacting'
  | 'merging'
  | 'expiring'
  | 'sweeping';

export interface UpkeepTotals {
  /** Rewrites that the table took, and those that came to nothing because somebody else was first. */
  readonly rewrites: number;
  readonly lost: number;
  readonly filesRemoved: number;
  readonly filesAdded: number;
  readonly bytesRead: number;
  /** Of the rows as columns, before compression. */
  readonly plainBytes: number;
  readonly bytesWritten: number;
  /** Processor time of rewrites. */
  readonly workerSeconds: number;
  /** Deletes that arrived while their rows were being rewritten and were moved along. */
  readonly deletesMoved: number;
  readonly manifestMerges: number;
  readonly snapshotsExpired: number;
  readonly filesDeleted: number;
  readonly orphansDeleted: number;
}

export interface UpkeepStatus {
  readonly state: UpkeepState;
  /** Wall time; 0 before the first look. */
  readonly lastRunMs: number;
  /** Wall time of the next look; 0 when none is planned. */
  readonly nextRunMs: number;
  /** As of the last look; undefined before. */
  readonly files: TableFigures | undefined;
  /** Since the process started. */
  readonly totals: UpkeepTotals;
  /** Files that can't be rewritten exactly, and so stay. */
  readonly leftAlone: number;
  /** What went wrong last; empty when the last run went well. */
  readonly error: string;
}

export const NO_TOTALS: UpkeepTotals = {
  rewrites: 0,
  lost: 0,
  filesRemoved: 0,
  filesAdded: 0,
  bytesRead: 0,
  plainBytes: 0,
  bytesWritten: 0,
  workerSeconds: 0,
  deletesMoved: 0,
  manifestMerges: 0,
  snapshotsExpired: 0,
  filesDeleted: 0,
  orphansDeleted: 0,
};
