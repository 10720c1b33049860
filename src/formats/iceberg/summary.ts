// Snapshot summaries: what a commit added and removed, and the table's totals after it.
// Source: Iceberg table spec, appendix F "Optional snapshot summary fields".
import { partitionKey } from './partition.ts';
import type { DataFile } from './types.ts';

export type Summary = Readonly<Record<string, string>>;

export type Operation = 'append' | 'replace' | 'overwrite' | 'delete';

/** A deletion vector's bytes are its blob's, not those of the file it lies in. */
export const bytesOf = (file: DataFile) => file.contentSizeInBytes ?? file.fileSizeInBytes;

/** The totals of a summary, by their names there. */
export type Totals = Readonly<Record<(typeof TOTALS)[number], number>>;

const TOTALS = [
  'total-records',
  'total-files-size',
  'total-data-files',
  'total-delete-files',
  'total-position-deletes',
  'total-equality-deletes',
] as const;

interface Tally {
  dataFiles: number;
  records: number;
  size: number;
  deleteFiles: number;
  positionDeleteFiles: number;
  positionDeletes: number;
  equalityDeleteFiles: number;
  equalityDeletes: number;
  vectors: number;
}

function tally(files: readonly DataFile[]): Tally {
  const sum: Tally = {
    dataFiles: 0,
    records: 0,
    size: 0,
    deleteFiles: 0,
    positionDeleteFiles: 0,
    positionDeletes: 0,
    equalityDeleteFiles: 0,
    equalityDeletes: 0,
    vectors: 0,
  };
  for (const file of files) {
    sum.size += bytesOf(file);
    if (file.content === 0) {
      sum.dataFiles += 1;
      sum.records += file.recordCount;
      continue;
    }
    sum.deleteFiles += 1;
    if (file.content === 2) {
      sum.equalityDeleteFiles += 1;
      sum.equalityDeletes += file.recordCount;
    } else {
      sum.positionDeletes += file.recordCount;
      if (file.fileFormat === 'PUFFIN') sum.vectors += 1;
      else sum.positionDeleteFiles += 1;
    }
  }
  return sum;
}

/** The totals of a table that consists of `files`. */
export function totalsOf(files: readonly DataFile[]): Totals {
  const sum = tally(files);
  return {
    'total-records': sum.records,
    'total-files-size': sum.size,
    'total-data-files': sum.dataFiles,
    'total-delete-files': sum.deleteFiles,
    'total-position-deletes': sum.positionDeletes,
    'total-equality-deletes': sum.equalityDeletes,
  };
}

/** The totals that a summary states; undefined when it leaves one out (they are optional). */
export function totalsFromSummary(summary: Summary | undefined): Totals | undefined {
  const values = TOTALS.map((key) => [key, Number(summary?.[key] ?? Number.NaN)] as const);
  if (values.some(([, value]) => !Number.isSafeInteger(value) || value < 0)) return undefined;
  return Object.fromEntries(values) as Totals;
}

export interface SummaryInput {
  readonly operation: Operation;
  readonly before: Totals;
  readonly added: readonly DataFile[];
  readonly removed: readonly DataFile[];
  /** Own entries; they never replace a computed one. */
  readonly extra: Summary;
}

/** The summary of a commit; entries that are zero are left out, totals never are. */
export function buildSummary({ operation, before, added, removed, extra }: SummaryInput): Summary {
  const plus = tally(added);
  const minus = tally(removed);
  const after = totalsOf(added);
  const gone = totalsOf(removed);
  const partitions = new Set(
    [...added, ...removed].map((file) => partitionKey(file.specId, file.partition)),
  );
  return {
    ...extra,
    operation,
    ...nonZero({
      'added-data-files': plus.dataFiles,
      'added-records': plus.records,
      'added-files-size': plus.size,
      'added-delete-files': plus.deleteFiles,
      'added-position-delete-files': plus.positionDeleteFiles,
      'added-position-deletes': plus.positionDeletes,
      'added-equality-delete-files': plus.equalityDeleteFiles,
      'added-equality-deletes': plus.equalityDeletes,
      'added-dvs': plus.vectors,
      'deleted-data-files': minus.dataFiles,
      'deleted-records': minus.records,
      'removed-files-size': minus.size,
      'removed-delete-files': minus.deleteFiles,
      'removed-position-delete-files': minus.positionDeleteFiles,
      'removed-position-deletes': minus.positionDeletes,
      'removed-equality-delete-files': minus.equalityDeleteFiles,
      'removed-equality-deletes': minus.equalityDeletes,
      'removed-dvs': minus.vectors,
    }),
    'changed-partition-count': String(partitions.size),
    ...Object.fromEntries(
      TOTALS.map((key) => [key, String(before[key] + after[key] - gone[key])] as const),
    ),
  };
}

function nonZero(counts: Readonly<Record<string, number>>): Summary {
  return Object.fromEntries(
    Object.entries(counts)
      .filter(([, count]) => count !== 0)
      .map(([key, count]) => [key, String(count)] as const),
  );
}
