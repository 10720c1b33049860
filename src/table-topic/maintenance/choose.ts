// Which files of a table are worth rewriting: small ones that are many, much-deleted ones, small delete files that are
// many. Pure: the files of a snapshot in, groups as plain data out.
//
// Rewriting comes to rest: a group takes the smallest files first and only as far as its largest file is no larger
// than all the others together, so that a row is rewritten about as often as its file can double on its way to the target.
import { partitionKey } from '../../formats/iceberg/partition.ts';
import type { ScanDelete, ScanFile } from '../../formats/iceberg/scan.ts';
import { bytesOf } from '../../formats/iceberg/summary.ts';
import type { DataFile } from '../../formats/iceberg/types.ts';
import type { CompactPolicy, RewriteGroup } from './task.ts';

/** Of the target: a file of at least so much is left alone. */
const LARGE_ENOUGH = 0.75;

/** Rows of a group at most: their new places are held, 4 bytes each, until the commit is certain. */
const MAX_GROUP_ROWS = 32_000_000;

/** Files of a group at most. */
const MAX_GROUP_FILES = 2_000;

/** Position delete files up to this size are joined: more are read in full for every scan. */
const SMALL_DELETE_BYTES = 8 * 2 ** 20;

interface Candidate {
  readonly scan: ScanFile;
  readonly bytes: number;
  /** Part of its rows that is deleted, in percent; of deletes that name several files, its share by rows. */
  readonly deletedPercent: number;
}

export interface Chosen {
  readonly groups: readonly RewriteGroup[];
  readonly more: boolean;
}

/** The groups most worth rewriting, at most `maxGroups`. */
export function chooseGroups(
  files: readonly ScanFile[],
  policy: CompactPolicy,
  limits: {
    readonly maxGroups: number;
    readonly leftAlone: ReadonlySet<string>;
    /** Every delete file of the snapshot. */
    readonly deletes: readonly ScanDelete[];
  },
): Chosen {
  const groups: RewriteGroup[] = [];
  for (const partition of byPartition(files).values()) {
    const candidates = withDeletes(partition).filter(({ scan }) =>
      isRewritable(scan, limits.leftAlone),
    );
    const small = smallGroup(candidates, policy);
    if (small.length > 0) groups.push(dataGroup(small));
    const taken = new Set(small);
    for (const heavy of heavyGroups(
      candidates.filter((one) => !taken.has(one)),
      policy,
    ))
      groups.push(dataGroup(heavy));
    const deletes = deleteGroup(partition, policy);
    if (deletes !== undefined) groups.push(deletes);
  }
  // A rewrite of data takes them out by the way.
  const dangling = groups.some(({ kind }) => kind === 'data')
    ? undefined
    : danglingGroup(files, limits.deletes, policy);
  if (dangling !== undefined) groups.push(dangling);
  const sizeOf = ({ inputs, deleteFiles }: RewriteGroup) => inputs.length + deleteFiles.length;
  groups.sort((a, b) => sizeOf(b) - sizeOf(a));
  return {
    groups: groups.slice(0, limits.maxGroups),
    more: groups.length > limits.maxGroups,
  };
}

function byPartition(files: readonly ScanFile[]): Map<string, ScanFile[]> {
  const partitions = new Map<string, ScanFile[]>();
  for (const scan of files) {
    const key = partitionKey(scan.file.specId, scan.file.partition);
    const found = partitions.get(key);
    if (found === undefined) partitions.set(key, [scan]);
    else found.push(scan);
  }
  return partitions;
}

/** Other formats, encrypted files and such as were refused before stay as they are. */
function isRewritable(
  { file, equalityDeletes, positionDeletes }: ScanFile,
  leftAlone: ReadonlySet<string>,
) {
  const readable = (one: DataFile) =>
    (one.fileFormat === 'PARQUET' || one.fileFormat === 'PUFFIN') && one.keyMetadata === undefined;
  return (
    readable(file) &&
    !leftAlone.has(file.filePath) &&
    [...equalityDeletes, ...positionDeletes].every(
      (one) => readable(one.file) && !leftAlone.has(one.file.filePath),
    )
  );
}

function withDeletes(files: readonly ScanFile[]): Candidate[] {
  const rowsUnder = new Map<ScanDelete, number>();
  for (const { file, positionDeletes, equalityDeletes } of files)
    for (const one of [...positionDeletes, ...equalityDeletes])
      rowsUnder.set(one, (rowsUnder.get(one) ?? 0) + file.recordCount);
  return files.map((scan) => {
    const { file, positionDeletes, equalityDeletes } = scan;
    const deleted = [...positionDeletes, ...equalityDeletes].reduce(
      (sum, one) =>
        sum + (one.file.recordCount * file.recordCount) / Math.max(1, rowsUnder.get(one)!),
      0,
    );
    return {
      scan,
      bytes: file.fileSizeInBytes,
      deletedPercent: file.recordCount === 0 ? 100 : (100 * deleted) / file.recordCount,
    };
  });
}

/** The small files of a partition that become one, or none. */
function smallGroup(candidates: readonly Candidate[], policy: CompactPolicy): Candidate[] {
  const { targetFileBytes, minInputFiles, force } = policy;
  const small = candidates
    .filter(({ bytes }) => bytes < targetFileBytes * LARGE_ENOUGH)
    .toSorted((a, b) => a.bytes - b.bytes);
  let bytes = 0;
  let rows = 0;
  let best = 0;
  for (const [index, one] of small.entries()) {
    const count = index + 1;
    const before = bytes;
    bytes += one.bytes;
    rows += one.scan.file.recordCount;
    if (count > MAX_GROUP_FILES || rows > MAX_GROUP_ROWS) break;
    if (bytes > targetFileBytes && count > minInputFiles) break;
    const worthIt = force ? count >= 2 : count >= minInputFiles && one.bytes <= before;
    if (worthIt) best = count;
    if (bytes > targetFileBytes) break;
  }
  return small.slice(0, best);
}

/** Much-deleted files, joined up to the target. */
function heavyGroups(candidates: readonly Candidate[], policy: CompactPolicy): Candidate[][] {
  const { targetFileBytes, deletePercent, minInputFiles, force } = policy;
  const heavy = candidates.filter(
    ({ deletedPercent, scan }) =>
      deletedPercent >= deletePercent || scan.equalityDeletes.length >= (force ? 1 : minInputFiles),
  );
  const groups: Candidate[][] = [];
  let group: Candidate[] = [];
  let bytes = 0;
  let rows = 0;
  for (const one of heavy) {
    const full =
      bytes + one.bytes > targetFileBytes || rows + one.scan.file.recordCount > MAX_GROUP_ROWS;
    if (full && group.length > 0) {
      groups.push(group);
      group = [];
      bytes = 0;
      rows = 0;
    }
    group.push(one);
    bytes += one.bytes;
    rows += one.scan.file.recordCount;
  }
  if (group.length > 0) groups.push(group);
  return groups;
}

function dataGroup(candidates: readonly Candidate[]): RewriteGroup {
  const inputs = candidates
    .map(({ scan }) => scan)
    .toSorted(
      (a, b) => a.sequenceNumber - b.sequenceNumber || (a.file.filePath < b.file.filePath ? -1 : 1),
    );
  return {
    kind: 'data',
    inputs,
    deleteFiles: [],
    bytes: inputs.reduce((sum, { file }) => sum + file.fileSizeInBytes, 0),
  };
}

/** Position delete files of a partition that become one: every scan of it reads all of them. */
function deleteGroup(files: readonly ScanFile[], policy: CompactPolicy): RewriteGroup | undefined {
  const found = new Map<string, DataFile>();
  const { specId, partition } = files[0]!.file;
  const key = partitionKey(specId, partition);
  for (const { positionDeletes } of files) {
    for (const { file } of positionDeletes) {
      const joinable =
        isJoinable(file) &&
        bytesOf(file) < SMALL_DELETE_BYTES &&
        partitionKey(file.specId, file.partition) === key;
      if (joinable) found.set(file.filePath, file);
    }
  }
  const enough = policy.force ? 2 : policy.minInputFiles;
  return found.size < enough ? undefined : joining([...found.values()]);
}

/** Position delete files whose data files have all left: nothing else would take them out where no data is rewritten. */
function danglingGroup(
  files: readonly ScanFile[],
  deletes: readonly ScanDelete[],
  policy: CompactPolicy,
): RewriteGroup | undefined {
  const used = new Set(
    files.flatMap(({ positionDeletes }) => positionDeletes.map(({ file }) => file.filePath)),
  );
  const dangling = deletes
    .map(({ file }) => file)
    .filter((file) => file.content === 1 && isJoinable(file) && !used.has(file.filePath));
  const enough = policy.force ? 1 : policy.minInputFiles;
  return dangling.length < enough ? undefined : joining(dangling);
}

/** Vectors are exchanged one by one (K5); what is encrypted stays as it is. */
const isJoinable = ({ fileFormat, keyMetadata }: DataFile) =>
  fileFormat === 'PARQUET' && keyMetadata === undefined;

function joining(found: readonly DataFile[]): RewriteGroup {
  const deleteFiles = found.slice(0, MAX_GROUP_FILES);
  return {
    kind: 'deletes',
    inputs: [],
    deleteFiles,
    bytes: deleteFiles.reduce((sum, file) => sum + file.fileSizeInBytes, 0),
  };
}
