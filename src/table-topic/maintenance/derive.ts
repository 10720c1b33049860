// Prepares the commit of a rewrite against the table as it is now (rule T4): the inputs must still be live; deletes that
// arrived since they were read are moved onto the new files; delete files that nothing needs any more leave with them.
//
// New data files carry the sequence number of the snapshot that was read: equality deletes of other writers that came
// later still apply to them, those of before were applied. Position deletes name their rows, so they are renamed.
// Source: Iceberg table spec, "Scan Planning", "Delete Formats".
import { assert } from '../../base/assert.ts';
import { fileKey, type PreparedObject, prepareCommit } from '../../formats/iceberg/commit.ts';
import { STATUS_DELETED } from '../../formats/iceberg/manifest.ts';
import { partitionKey } from '../../formats/iceberg/partition.ts';
import { writePositionDeletes } from '../../formats/iceberg/position-deletes.ts';
import { writeVectors } from '../../formats/iceberg/puffin.ts';
import {
  type ManifestSource,
  manifestSource,
  planScan,
  type ScanDelete,
  type ScanFile,
} from '../../formats/iceberg/scan.ts';
import type { FileReader } from '../../formats/iceberg/table-files.ts';
import type { DataFile, TableMetadata } from '../../formats/iceberg/types.ts';
import { DeleteFiles } from './deletes.ts';
import type { RowPlaces } from './rewrite.ts';
import type { Derived, DeriveTask, RewriteGroup } from './task.ts';

/** What a rewrite left behind until its commit is certain. */
export interface RewriteState {
  readonly group: RewriteGroup;
  /** Of the snapshot that was read. */
  readonly startSequence: number;
  readonly files: readonly DataFile[];
  readonly places: readonly RowPlaces[];
  readonly dataFolder: string;
}

/** A snapshot's live files, and every live delete file whether anything still needs it. */
export interface LiveFiles {
  readonly scans: ReadonlyMap<string, ScanFile>;
  readonly deletes: readonly ScanDelete[];
}

export async function liveFiles(metadata: TableMetadata, io: FileReader): Promise<LiveFiles> {
  const deletes: ScanDelete[] = [];
  const inner = manifestSource(io);
  const source: ManifestSource = {
    list: (snapshot) => inner.list(snapshot),
    entries: async (manifest, spec) => {
      const entries = await inner.entries(manifest, spec);
      if (manifest.content === 1) {
        for (const { status, file, sequenceNumber } of entries)
          if (status !== STATUS_DELETED)
            deletes.push({ file, sequenceNumber: sequenceNumber ?? 0 });
      }
      return entries;
    },
  };
  const { files } = await planScan({ metadata, source });
  return { scans: new Map(files.map((scan) => [scan.file.filePath, scan])), deletes };
}

export async function deriveCommit(
  state: RewriteState,
  task: DeriveTask,
  io: FileReader,
): Promise<Derived> {
  const live = await liveFiles(task.metadata, io);
  return state.group.kind === 'data'
    ? new DataDerivation(state, task, io).derive(live)
    : deriveDeletes(state, task, { io, live });
}

type Prepared = Omit<Extract<Derived, { kind: 'ready' }>, 'kind'>;

interface Change {
  readonly added: readonly DataFile[];
  readonly removed: readonly Pick<DataFile, 'filePath' | 'contentOffset'>[];
  /** Files of this attempt beside its manifests. */
  readonly objects: readonly PreparedObject[];
  readonly startSequence?: number;
  readonly remappedRows: number;
}

async function ready(task: DeriveTask, change: Change, io: FileReader): Promise<Derived> {
  const { metadata, snapshotId, commitUuid, nowMs, summary } = task;
  const { added, removed, startSequence, objects, remappedRows } = change;
  const prepared = await prepareCommit({
    metadata,
    io,
    snapshotId,
    commitUuid,
    nowMs,
    added,
    removed,
    operation: 'replace',
    summary,
    ...(startSequence === undefined ? {} : { dataSequenceNumber: startSequence }),
  });
  const result: Prepared = {
    prepared: { ...prepared, objects: [...objects, ...prepared.objects] },
    removedFiles: removed.length,
    addedFiles: added.length,
    remappedRows,
  };
  return { kind: 'ready', ...result };
}

const deleteKey = (one: ScanDelete) => fileKey(one.file);

class DataDerivation {
  readonly #state: RewriteState;
  readonly #task: DeriveTask;
  readonly #io: FileReader;

  constructor(state: RewriteState, task: DeriveTask, io: FileReader) {
    this.#state = state;
    this.#task = task;
    this.#io = io;
  }

  async derive(live: LiveFiles): Promise<Derived> {
    const { group, files, startSequence } = this.#state;
    const inputs = new Set(group.inputs.map(({ file }) => file.filePath));
    for (const path of inputs)
      if (!live.scans.has(path))
        return { kind: 'lost', reason: `${path} is no longer in the table` };
    const deleted = await this.#deletedMeanwhile(live);
    const moved = await this.#moved(deleted);
    const removed = [
      ...group.inputs.map(({ file }) => ({ filePath: file.filePath })),
      ...needless(live, { inputs, startSequence, files }),
    ];
    return ready(
      this.#task,
      {
        added: [...files, ...moved.files],
        removed,
        objects: moved.objects,
        startSequence,
        remappedRows: deleted.length,
      },
      this.#io,
    );
  }

  /** Rows of the new files, by their number among all, that were deleted since their old files were read. */
  async #deletedMeanwhile(live: LiveFiles): Promise<Float64Array> {
    const deletes = new DeleteFiles(this.#io);
    const rows = new Set<number>();
    for (const [index, before] of this.#state.group.inputs.entries()) {
      const known = new Set(before.positionDeletes.map(deleteKey));
      const now = live.scans.get(before.file.filePath)!;
      const fresh = now.positionDeletes.filter((one) => !known.has(deleteKey(one)));
      const places = this.#state.places[index]!;
      for (const list of await deletes.positions(before.file, fresh)) {
        for (const position of list) {
          const row = places[position] ?? -1;
          if (row >= 0) rows.add(row);
        }
      }
    }
    return Float64Array.from(rows).sort();
  }

  /** Delete files about the new data files: vectors on v3, position delete files before. */
  async #moved(
    deleted: Float64Array,
  ): Promise<{ readonly files: readonly DataFile[]; readonly objects: readonly PreparedObject[] }> {
    if (deleted.length === 0) return { files: [], objects: [] };
    const rows = this.#byFile(deleted);
    const { commitUuid, metadata } = this.#task;
    const prefix = `${this.#state.dataFolder}/${commitUuid}-deletes`;
    const { specId, partition } = this.#state.group.inputs[0]!.file;
    if (metadata['format-version'] >= 3) {
      const path = `${prefix}.puffin`;
      const { files, bytes } = await writeVectors(
        path,
        rows.map((one) => ({ ...one, data: { specId, partition } })),
      );
      return { files, objects: [{ path, bytes }] };
    }
    const path = `${prefix}.parquet`;
    const { file, parts } = writePositionDeletes({ path, specId, partition, rows });
    return { files: [file], objects: [{ path, bytes: joined(parts) }] };
  }

  #byFile(deleted: Float64Array): { filePath: string; positions: Float64Array }[] {
    const found: { filePath: string; positions: Float64Array }[] = [];
    let first = 0;
    let at = 0;
    for (const { filePath, recordCount } of this.#state.files) {
      const from = at;
      while (at < deleted.length && deleted[at]! < first + recordCount) at += 1;
      if (at > from) {
        const start = first;
        const positions = deleted.slice(from, at).map((row) => row - start);
        found.push({ filePath, positions });
      }
      first += recordCount;
    }
    assert(at === deleted.length, 'M1: every moved delete has a row of the new files');
    return found;
  }
}

/** Delete files that no data file needs once `inputs` are gone and `files` are there. */
function needless(
  live: LiveFiles,
  {
    inputs,
    startSequence,
    files,
  }: {
    readonly inputs: ReadonlySet<string>;
    readonly startSequence: number;
    readonly files: readonly DataFile[];
  },
): Pick<DataFile, 'filePath' | 'contentOffset'>[] {
  const needed = new Set<string>();
  for (const [path, { positionDeletes, equalityDeletes }] of live.scans) {
    if (inputs.has(path)) continue;
    for (const one of [...positionDeletes, ...equalityDeletes]) needed.add(deleteKey(one));
  }
  const partitions = new Set(files.map((file) => partitionKey(file.specId, file.partition)));
  const appliesToNew = ({ file, sequenceNumber }: ScanDelete) =>
    file.content === 2 &&
    sequenceNumber > startSequence &&
    (file.partition.length === 0 || partitions.has(partitionKey(file.specId, file.partition)));
  return live.deletes
    .filter((one) => !needed.has(deleteKey(one)) && !appliesToNew(one))
    .map(({ file }) => ({
      filePath: file.filePath,
      ...(file.contentOffset === undefined ? {} : { contentOffset: file.contentOffset }),
    }));
}

/** Small position delete files become one, without the rows of data files that are gone. */
async function deriveDeletes(
  { group, dataFolder }: RewriteState,
  task: DeriveTask,
  { io, live }: { readonly io: FileReader; readonly live: LiveFiles },
): Promise<Derived> {
  const present = new Set(live.deletes.map(deleteKey));
  const gone = group.deleteFiles.find((file) => !present.has(fileKey(file)));
  if (gone !== undefined)
    return { kind: 'lost', reason: `${gone.filePath} is no longer in the table` };
  const read = new DeleteFiles(io);
  const byFile = new Map<string, Set<number>>();
  for (const file of group.deleteFiles) {
    for (const [path, positions] of await read.byFile(file)) {
      const scan = live.scans.get(path);
      // A vector has taken over what older delete files said of its data file (K5).
      if (
        scan === undefined ||
        !scan.positionDeletes.some((one) => one.file.filePath === file.filePath)
      )
        continue;
      const rows = byFile.get(path) ?? new Set();
      byFile.set(path, rows);
      for (const position of positions) rows.add(position);
    }
  }
  const rows = [...byFile].map(([filePath, found]) => ({
    filePath,
    positions: Float64Array.from(found).sort(),
  }));
  const { specId, partition } = group.deleteFiles[0]!;
  const removed = group.deleteFiles.map(({ filePath }) => ({ filePath }));
  if (rows.length === 0)
    return ready(task, { added: [], removed, objects: [], remappedRows: 0 }, io);
  const path = `${dataFolder}/${task.commitUuid}-deletes.parquet`;
  const { file, parts } = writePositionDeletes({ path, specId, partition, rows });
  const objects = [{ path, bytes: joined(parts) }];
  return ready(task, { added: [file], removed, objects, remappedRows: 0 }, io);
}

const joined = (parts: readonly Uint8Array[]) => new Uint8Array(Buffer.concat(parts));
