// Plans a scan: the data files of a snapshot that may hold matching rows, each with the deletes that apply to it.
// Plain data comes out; reading files is somebody else's. Source: Iceberg table spec, "Scan Planning".

import { currentSchema, currentSnapshot } from './history.ts';
import type { ManifestEntry } from './manifest.ts';
import { readManifest, STATUS_DELETED } from './manifest.ts';
import type { ManifestFile } from './manifest-list.ts';
import { type BoundPartitionSpec, bindTableSpec, partitionKey } from './partition.ts';
import { fileMayMatch, manifestMayMatch, type Predicate } from './predicate.ts';
import { schemaById } from './schema.ts';
import { type FileReader, manifestsOf } from './table-files.ts';
import type { DataFile, Schema, Snapshot, TableMetadata } from './types.ts';

/** A delete file that applies to a data file. */
export interface ScanDelete {
  readonly file: DataFile;
  readonly sequenceNumber: number;
}

export interface ScanFile {
  readonly file: DataFile;
  readonly sequenceNumber: number;
  /** Position deletes and deletion vectors. */
  readonly positionDeletes: readonly ScanDelete[];
  readonly equalityDeletes: readonly ScanDelete[];
}

export interface ScanPlan {
  /** Undefined for a table without rows. */
  readonly snapshot: Snapshot | undefined;
  readonly schema: Schema;
  readonly files: readonly ScanFile[];
  /** What pruning saved, and what it had to choose from. */
  readonly manifestsSkipped: number;
  readonly filesSkipped: number;
}

/** Where manifests come from: straight from files ({@link manifestSource}) or through somebody's cache. */
export interface ManifestSource {
  list(snapshot: Snapshot | undefined): Promise<readonly ManifestFile[]>;
  entries(manifest: ManifestFile, spec: BoundPartitionSpec): Promise<readonly ManifestEntry[]>;
}

/** Reads every manifest anew. */
export function manifestSource(io: FileReader): ManifestSource {
  return {
    list: (snapshot) => manifestsOf(io, snapshot),
    entries: async (manifest, spec) =>
      readManifest(await io.read(manifest.manifestPath), manifest, spec),
  };
}

export interface ScanOptions {
  readonly metadata: TableMetadata;
  readonly source: ManifestSource;
  /** By default the current one. */
  readonly snapshot?: Snapshot;
  readonly filter?: Predicate;
}

/** Manifests read at once. */
const CONCURRENT_READS = 8;

export async function planScan(options: ScanOptions): Promise<ScanPlan> {
  const { metadata, source, filter } = options;
  const snapshot = options.snapshot ?? currentSnapshot(metadata);
  const schema = schemaOf(metadata, options.snapshot);
  const manifests = await source.list(snapshot);
  const specs = new Map<number, BoundPartitionSpec>();
  for (const { partitionSpecId } of manifests)
    if (!specs.has(partitionSpecId))
      specs.set(partitionSpecId, bindTableSpec(metadata, partitionSpecId));
  // Delete manifests are not pruned by the filter: their bounds are those of the deletes, and they are few.
  const chosen = manifests.filter((manifest) => {
    const spec = specs.get(manifest.partitionSpecId)!;
    if (manifest.addedFilesCount === 0 && manifest.existingFilesCount === 0) return false;
    return (
      manifest.content === 1 ||
      filter === undefined ||
      manifestMayMatch(filter, spec, manifest.partitions)
    );
  });
  const entries = await readAll(chosen, (manifest) =>
    source.entries(manifest, specs.get(manifest.partitionSpecId)!),
  );
  const deletes = new DeleteIndex();
  const live: ManifestEntry[] = [];
  for (const entry of entries) {
    if (entry.status === STATUS_DELETED) continue;
    if (entry.file.content === 0) live.push(entry);
    else deletes.add(entry);
  }
  const matching =
    filter === undefined
      ? live
      : live.filter(({ file }) =>
          fileMayMatch(filter, file, { spec: specs.get(file.specId)!, schema }),
        );
  return {
    snapshot,
    schema,
    files: matching.map((entry) => deletes.scanFile(entry)),
    manifestsSkipped: manifests.length - chosen.length,
    filesSkipped: live.length - matching.length,
  };
}

/** The current table is read with the current schema, an older snapshot with the one it was made with. */
function schemaOf(metadata: TableMetadata, asked: Snapshot | undefined): Schema {
  const id = asked?.['schema-id'];
  return id === undefined ? currentSchema(metadata) : schemaById(metadata.schemas, id);
}

async function readAll<T, R>(
  items: readonly T[],
  read: (item: T) => Promise<readonly R[]>,
): Promise<R[]> {
  const results: (readonly R[])[] = new Array(items.length);
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < items.length; index = next++)
      results[index] = await read(items[index]!);
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENT_READS, items.length) }, worker));
  return results.flat();
}

/** Delete files by what they can apply to. */
class DeleteIndex {
  readonly #byDataFile = new Map<string, ScanDelete[]>();
  readonly #positionByPartition = new Map<string, ScanDelete[]>();
  readonly #equalityByPartition = new Map<string, ScanDelete[]>();
  /** Equality deletes of an unpartitioned spec apply to the whole table. */
  readonly #equalityGlobal: ScanDelete[] = [];

  add(entry: ManifestEntry): void {
    const { file } = entry;
    const found = { file, sequenceNumber: entry.sequenceNumber ?? 0 };
    const key = partitionKey(file.specId, file.partition);
    const referenced = referencedFile(file);
    if (file.content === 2) {
      if (file.partition.length === 0) this.#equalityGlobal.push(found);
      else push(this.#equalityByPartition, key, found);
    } else if (referenced !== undefined) push(this.#byDataFile, referenced, found);
    else push(this.#positionByPartition, key, found);
  }

  scanFile({ file, sequenceNumber: sequence = 0 }: ManifestEntry): ScanFile {
    const key = partitionKey(file.specId, file.partition);
    const named = this.#byDataFile.get(file.filePath) ?? [];
    // A deletion vector holds all deletes of its file: position delete files no longer count.
    const vector = named.filter((one) => one.file.fileFormat === 'PUFFIN');
    const positions = [...named, ...(this.#positionByPartition.get(key) ?? [])];
    const equality = [...(this.#equalityByPartition.get(key) ?? []), ...this.#equalityGlobal];
    return {
      file,
      sequenceNumber: sequence,
      positionDeletes:
        vector.length > 0 ? vector : positions.filter((one) => one.sequenceNumber >= sequence),
      equalityDeletes: equality.filter((one) => one.sequenceNumber > sequence),
    };
  }
}

/** Metadata column `file_path` of position delete files (spec, reserved field ids). */
const DELETE_FILE_PATH_ID = 2147483546;

/** The one data file that a position delete file is about: by its field, or because both bounds of its paths are equal. */
function referencedFile(file: DataFile): string | undefined {
  if (file.content !== 1) return undefined;
  if (file.referencedDataFile !== undefined) return file.referencedDataFile;
  const lower = file.metrics.lowerBounds.get(DELETE_FILE_PATH_ID);
  const upper = file.metrics.upperBounds.get(DELETE_FILE_PATH_ID);
  if (lower === undefined || upper === undefined || Buffer.compare(lower, upper) !== 0)
    return undefined;
  const path = new TextDecoder().decode(lower);
  // A truncated lower bound equals the upper one only by accident of length; a real path has a name at its end.
  return /\.[a-z0-9]+$/i.test(path) ? path : undefined;
}

function push(index: Map<string, ScanDelete[]>, key: string, value: ScanDelete): void {
  const found = index.get(key);
  if (found === undefined) index.set(key, [value]);
  else found.push(value);
}
