// What goes to the maintenance worker and what comes back: plain data that crosses a thread border. Everything that
// reads manifests or data files happens on the worker's side, so that the thread that commits only talks to the
// catalog. Not for: when (upkeep.ts), which files (choose.ts).

import type { PreparedCommit } from '../../formats/iceberg/index.ts';
import type { ScanFile } from '../../formats/iceberg/scan.ts';
import type { DataFile, Schema, SortOrder, TableMetadata } from '../../formats/iceberg/types.ts';
import type { FileLayout } from '../../formats/parquet/layout.ts';
import type { Expired, ExpiredTask } from './expired-rows.ts';

/** What decides which files are rewritten. */
export interface CompactPolicy {
  readonly minInputFiles: number;
  readonly targetFileBytes: number;
  readonly deletePercent: number;
  /** By order of an operator: two small files are enough. */
  readonly force: boolean;
}

export interface PlanTask {
  readonly metadata: TableMetadata;
  readonly policy: CompactPolicy;
  /** Groups at most; the rest is found again. */
  readonly maxGroups: number;
  /** Files that couldn't be read exactly: left alone. */
  readonly leftAlone: ReadonlySet<string>;
}

/** Data files of one partition and spec that become fewer; or delete files of it that do. */
export interface RewriteGroup {
  readonly kind: 'data' | 'deletes';
  /** In the order in which their rows came. For `deletes`: none. */
  readonly inputs: readonly ScanFile[];
  /** Small position delete files that become one. For `data`: none. */
  readonly deleteFiles: readonly DataFile[];
  readonly bytes: number;
}

export interface TableFigures {
  readonly dataFiles: number;
  readonly deleteFiles: number;
  readonly bytes: number;
  readonly manifests: number;
}

export interface PlanResult {
  readonly groups: readonly RewriteGroup[];
  /** More was worth rewriting than `maxGroups`. */
  readonly more: boolean;
  readonly figures: TableFigures;
}

export interface RewriteTask {
  /** Names the files and, until {@link MaintenanceTasks.forget}, what was made of them. */
  readonly jobId: string;
  readonly group: RewriteGroup;
  readonly metadata: TableMetadata;
  readonly schema: Schema;
  readonly sortOrder: SortOrder;
  readonly layout: FileLayout;
  /** Absolute URI without trailing slash. */
  readonly dataFolder: string;
  readonly targetFileBytes: number;
  /** Bytes of column buffers at most, about. */
  readonly memoryBytes: number;
}

export interface RewriteResult {
  readonly files: readonly DataFile[];
  readonly rowsIn: number;
  readonly rowsOut: number;
  /** Of the input files. */
  readonly bytesIn: number;
  /** Of the rows as columns, before compression. */
  readonly plainBytes: number;
  readonly bytesOut: number;
  /** Processor time of the worker's thread. */
  readonly cpuSeconds: number;
}

export interface DeriveTask {
  readonly jobId: string;
  /** As just loaded (T4). */
  readonly metadata: TableMetadata;
  readonly snapshotId: bigint;
  readonly commitUuid: string;
  readonly nowMs: number;
  readonly summary: Readonly<Record<string, string>>;
}

/** A file that was derived for this attempt and is to be written with it: deletes that were moved to new files. */
export type Derived =
  | {
      readonly kind: 'ready';
      readonly prepared: PreparedCommit;
      readonly removedFiles: number;
      readonly addedFiles: number;
      /** Deletes that arrived meanwhile and were moved onto the new files. */
      readonly remappedRows: number;
    }
  /** Somebody else rewrote or removed what was read: what was made of it is worth nothing. */
  | { readonly kind: 'lost'; readonly reason: string };

export interface MergeTask extends Omit<DeriveTask, 'jobId'> {
  /** Manifests of a kind from which on they are merged. */
  readonly minCount: number;
}

export interface UnreachableTask {
  readonly metadata: TableMetadata;
  readonly expiring: readonly bigint[];
}

export interface OrphansTask {
  readonly metadata: TableMetadata;
  readonly metadataLocation: string;
  readonly olderThanMs: number;
  /** Beginnings of names that are in use though no snapshot has them: staged files, files under way. */
  readonly inUse: readonly string[];
  readonly limit: number;
}

/** What the worker does; in this thread or another. All may throw FloeError. */
export interface MaintenanceTasks {
  plan(task: PlanTask): Promise<PlanResult>;
  /** Writes the new files. @throws FloeError `unsupported` with details.file: a file that must be left alone. */
  rewrite(task: RewriteTask): Promise<RewriteResult>;
  /** Prepares the commit of a rewrite against the table as it is now. */
  derive(task: DeriveTask): Promise<Derived>;
  forget(jobId: string): Promise<void>;
  /** Undefined when there is nothing to merge. */
  merge(task: MergeTask): Promise<PreparedCommit | undefined>;
  /** Files that no snapshot but the expiring ones needs. */
  unreachable(task: UnreachableTask): Promise<readonly string[]>;
  /** Rows past their time, and what takes them out. */
  expired(task: ExpiredTask): Promise<Expired>;
  orphans(task: OrphansTask): Promise<readonly string[]>;
}
