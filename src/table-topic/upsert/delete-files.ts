// Deleted rows → what a commit adds and removes (rule K5): position delete files on v2, one for each partition and spec;
// deletion vectors on v3, one for each data file, which take in its old vector and all position deletes of before.
// A data file that has lost its last row leaves the table itself.
// Not for: which rows are deleted (resolve.ts).
import { FloeError } from '../../base/error.ts';
import { readDeletionVector } from '../../formats/iceberg/deletion-vector.ts';
import { partitionKey } from '../../formats/iceberg/partition.ts';
import { type DeletedRows, writePositionDeletes } from '../../formats/iceberg/position-deletes.ts';
import { vectorBlob, writeVectors } from '../../formats/iceberg/puffin.ts';
import type { DataFile } from '../../formats/iceberg/types.ts';
import type { IndexedDelete, IndexedFile } from './key-store.ts';
import { readPositionDeletes } from './read-deletes.ts';

/** Most rows one vector may name: a data file's rows are far fewer. */
const MAX_VECTOR_ROWS = 100_000_000;

export interface DeleteRequest {
  readonly formatVersion: number;
  /** By file number. */
  readonly deleted: ReadonlyMap<number, Float64Array>;
  /** Every data file that `deleted` names. */
  readonly fileOf: (id: number) => IndexedFile;
  /** Data files of the table that aren't of this commit, by path. */
  readonly fileByPath: (path: string) => IndexedFile | undefined;
  /** Live delete files of the table. */
  readonly deletes: ReadonlyMap<string, IndexedDelete>;
  /** Beginning of the names of new files, in the table's data folder. */
  readonly prefix: string;
  readonly read: (uri: string) => Promise<Uint8Array>;
}

export interface WrittenDeletes {
  /** Delete files and vectors, in the form of manifests. */
  readonly added: readonly DataFile[];
  /** Vectors, position delete files and dead data files that leave. */
  readonly removed: readonly DataFile[];
  readonly objects: readonly { readonly path: string; readonly bytes: Uint8Array }[];
  /** Numbers of data files all of whose rows are deleted. */
  readonly dead: readonly number[];
  /** Rows that deletes took of each data file that stays, all of them counted. */
  readonly counts: ReadonlyMap<number, number>;
}

export async function writeDeletes(request: DeleteRequest): Promise<WrittenDeletes> {
  const dead: number[] = [];
  const removed: DataFile[] = [];
  const touched: { readonly indexed: IndexedFile; readonly positions: Float64Array }[] = [];
  const counts = new Map<number, number>();
  for (const [id, positions] of request.deleted) {
    const indexed = request.fileOf(id);
    const count = indexed.deleted + positions.length;
    if (count >= indexed.file.recordCount) {
      dead.push(id);
      removed.push(indexed.file, ...vectorsOf(request, indexed.file.filePath));
      continue;
    }
    counts.set(id, count);
    touched.push({ indexed, positions });
  }
  const written =
    request.formatVersion >= 3
      ? await vectors(request, touched)
      : { ...positionDeletes(request, touched), removed: [] };
  return { ...written, dead, counts, removed: [...removed, ...written.removed] };
}

function vectorsOf({ deletes }: DeleteRequest, path: string): DataFile[] {
  const found: DataFile[] = [];
  for (const { file } of deletes.values()) {
    if (file.fileFormat === 'PUFFIN' && file.referencedDataFile === path) found.push(file);
  }
  return found;
}

type Touched = readonly { readonly indexed: IndexedFile; readonly positions: Float64Array }[];

function positionDeletes(request: DeleteRequest, touched: Touched) {
  const groups = new Map<string, { readonly file: DataFile; readonly rows: DeletedRows[] }>();
  for (const { indexed, positions } of touched) {
    const { file } = indexed;
    const key = partitionKey(file.specId, file.partition);
    const group = groups.get(key) ?? { file, rows: [] };
    group.rows.push({ filePath: file.filePath, positions });
    groups.set(key, group);
  }
  const added: DataFile[] = [];
  const objects: { readonly path: string; readonly bytes: Uint8Array }[] = [];
  for (const { file, rows } of groups.values()) {
    const path = `${request.prefix}-${objects.length}-deletes.parquet`;
    const { specId, partition } = file;
    const written = writePositionDeletes({ path, specId, partition, rows });
    added.push(written.file);
    objects.push({ path, bytes: new Uint8Array(Buffer.concat(written.parts)) });
  }
  return { added, objects };
}

async function vectors(request: DeleteRequest, touched: Touched) {
  if (touched.length === 0) return { added: [], removed: [], objects: [] };
  const all = new Map(touched.map((one) => [one.indexed.file.filePath, one]));
  const old = await positionDeletesOf(request, all);
  const vectorByPath = new Map(
    [...request.deletes.values()]
      .filter(({ file }) => file.fileFormat === 'PUFFIN')
      .map(({ file }) => [file.referencedDataFile!, file] as const),
  );
  const removed: DataFile[] = [...old.files];
  const inputs: { filePath: string; positions: Float64Array; data: DataFile }[] = [];
  for (const { indexed, positions } of all.values()) {
    const { filePath } = indexed.file;
    const parts = [positions, ...(old.positions.get(filePath) ?? [])];
    const vector = vectorByPath.get(filePath);
    if (vector !== undefined) {
      removed.push(vector);
      const blob = vectorBlob(await request.read(vector.filePath), vector);
      parts.push(await readDeletionVector(blob, MAX_VECTOR_ROWS));
    }
    inputs.push({ filePath, positions: union(parts), data: indexed.file });
  }
  const path = `${request.prefix}-deletes.puffin`;
  const { files, bytes } = await writeVectors(path, inputs);
  return { added: files, removed, objects: [{ path, bytes }] };
}

/**
 * The v2 position delete files that a vector must take in. Such a file may be about more data files than this commit
 * touches: they get vectors too, so that it can leave, and so on until nothing more joins.
 */
async function positionDeletesOf(
  request: DeleteRequest,
  all: Map<string, { readonly indexed: IndexedFile; readonly positions: Float64Array }>,
) {
  const left = new Map(
    [...request.deletes].filter(
      ([, { file }]) => file.content === 1 && file.fileFormat !== 'PUFFIN',
    ),
  );
  const files: DataFile[] = [];
  const positions = new Map<string, Float64Array[]>();
  if (left.size === 0) return { files, positions };
  for (let grown = true; grown; ) {
    grown = false;
    for (const [key, { file, sequenceNumber }] of left) {
      if (!mayConcern(file, all)) continue;
      const rows = await readPositionDeletes(await request.read(file.filePath), file.filePath);
      const live = [...rows].filter(([path]) => {
        const indexed = request.fileByPath(path);
        return indexed !== undefined && indexed.sequenceNumber <= sequenceNumber;
      });
      if (!live.some(([path]) => all.has(path))) continue;
      left.delete(key);
      files.push(file);
      grown = true;
      for (const [path, list] of live) {
        positions.set(path, [...(positions.get(path) ?? []), list]);
        const indexed = request.fileByPath(path)!;
        if (!all.has(path)) all.set(path, { indexed, positions: new Float64Array(0) });
      }
    }
  }
  return { files, positions };
}

function mayConcern(
  file: DataFile,
  all: ReadonlyMap<string, { readonly indexed: IndexedFile }>,
): boolean {
  if (file.referencedDataFile !== undefined) return all.has(file.referencedDataFile);
  const key = partitionKey(file.specId, file.partition);
  for (const { indexed } of all.values())
    if (partitionKey(indexed.file.specId, indexed.file.partition) === key) return true;
  return false;
}

function union(parts: readonly Float64Array[]): Float64Array {
  const sorted = Float64Array.from(parts.flatMap((part) => [...part])).sort();
  const kept = sorted.filter((position, n) => n === 0 || position !== sorted[n - 1]);
  if (kept.length === 0) throw new FloeError('internal', 'K5: a vector without rows');
  return kept;
}
