// Rows of data files that are to go → what a commit adds and removes: whole files where all their rows go, position deletes
// (v2) or deletion vectors (v3) in the others (rule K5: with the data file's own spec and partition).
// Not for: upsert tables' own commits (../upsert/delete-files.ts), which know all deletes from their index.
import { dataFolder } from '../../formats/iceberg/index.ts';
import { partitionKey } from '../../formats/iceberg/partition.ts';
import { type DeletedRows, writePositionDeletes } from '../../formats/iceberg/position-deletes.ts';
import { type VectorInput, writeVectors } from '../../formats/iceberg/puffin.ts';
import type { ScanFile } from '../../formats/iceberg/scan.ts';
import type { DataFile, TableMetadata } from '../../formats/iceberg/types.ts';

/** Rows of one file that go. */
export interface RowHit {
  readonly scan: ScanFile;
  /** Live ones that go, ascending. */
  readonly positions: Float64Array;
  /** Those that deletes had taken before. */
  readonly gone: ReadonlySet<number>;
}

export interface RowDeletes {
  readonly added: readonly DataFile[];
  readonly removed: readonly DataFile[];
  /** The delete files' bytes, to be written before the commit. */
  readonly objects: readonly { readonly path: string; readonly parts: readonly Uint8Array[] }[];
  /** Rows taken out. */
  readonly rows: number;
}

/** `prefix`: how the names of the delete files begin in the table's data folder. */
export async function deleteRows(
  metadata: TableMetadata,
  hits: readonly RowHit[],
  prefix: string,
): Promise<RowDeletes> {
  const isWhole = ({ scan, positions, gone }: RowHit) =>
    positions.length + gone.size >= scan.file.recordCount;
  const whole = hits.filter(isWhole);
  const cut = hits.filter((hit) => !isWhole(hit));
  const deletes = await deletesFor(metadata, cut, prefix);
  return {
    ...deletes,
    removed: [...whole.flatMap(({ scan }) => withOwnDeletes(scan)), ...deletes.removed],
    rows: hits.reduce((sum, { positions }) => sum + positions.length, 0),
  };
}

/** The file, and the deletes that are about it alone. */
export function withOwnDeletes({ file, positionDeletes }: ScanFile): DataFile[] {
  const own = positionDeletes
    .map((one) => one.file)
    .filter((one) => isVector(one) || one.referencedDataFile === file.filePath);
  return [file, ...own];
}

const isVector = ({ fileFormat }: DataFile) => fileFormat === 'PUFFIN';

/** A vector is the union of all that was deleted of its file. */
async function deletesFor(
  metadata: TableMetadata,
  cut: readonly RowHit[],
  prefix: string,
): Promise<Omit<RowDeletes, 'rows'>> {
  if (cut.length === 0) return { added: [], removed: [], objects: [] };
  const folder = dataFolder(metadata);
  if (metadata['format-version'] < 3) return positionDeletes(cut, `${folder}/${prefix}`);
  const removed: DataFile[] = [];
  const inputs: VectorInput[] = [];
  for (const { scan, positions, gone } of cut) {
    removed.push(...scan.positionDeletes.map((one) => one.file).filter(isVector));
    const data = { specId: scan.file.specId, partition: scan.file.partition };
    const sorted = Float64Array.from([...gone, ...positions]).sort();
    inputs.push({ filePath: scan.file.filePath, positions: sorted, data });
  }
  const path = `${folder}/${prefix}-deletes.puffin`;
  const { files, bytes } = await writeVectors(path, inputs);
  return { added: files, removed, objects: [{ path, parts: [bytes] }] };
}

function positionDeletes(cut: readonly RowHit[], prefix: string): Omit<RowDeletes, 'rows'> {
  const groups = new Map<string, { readonly of: DataFile; readonly rows: DeletedRows[] }>();
  for (const { scan, positions } of cut) {
    const { file } = scan;
    const key = partitionKey(file.specId, file.partition);
    const group = groups.get(key) ?? { of: file, rows: [] };
    group.rows.push({ filePath: file.filePath, positions });
    groups.set(key, group);
  }
  const written = [...groups.values()].map(({ of, rows }, n) => {
    const path = `${prefix}-deletes-${n}.parquet`;
    const options = { path, specId: of.specId, partition: of.partition, rows };
    return { path, ...writePositionDeletes(options) };
  });
  return {
    added: written.map(({ file }) => file),
    removed: [],
    objects: written.map(({ path, parts }) => ({ path, parts })),
  };
}
