// Reading a snapshot's manifests through whatever holds the files.
// Not for: deciding which files a query needs (scan.ts).
import { FloeError } from '../../base/error.ts';
import { type ManifestEntry, readManifest } from './manifest.ts';
import { type ManifestFile, readManifestList } from './manifest-list.ts';
import { bindTableSpec } from './partition.ts';
import type { Snapshot, TableMetadata } from './types.ts';

/** Reads a whole file by its absolute URI. Errors: `not-found`, `unavailable`, `invalid` (outside the warehouse). */
export interface FileReader {
  read(uri: string): Promise<Uint8Array>;
}

/** Manifests read at once: enough to hide a store's latency, few enough to bound memory. */
const CONCURRENT_READS = 8;

/** The manifests of a snapshot; none for an empty table. */
export async function manifestsOf(
  io: FileReader,
  snapshot: Snapshot | undefined,
): Promise<ManifestFile[]> {
  if (snapshot === undefined) return [];
  const location: string | undefined = snapshot['manifest-list'];
  if (location === undefined) return inlineManifests(snapshot);
  return readManifestList(await io.read(location));
}

/** Early v1 writers listed manifest paths in the snapshot itself; what a list would tell is not known then. */
function inlineManifests(snapshot: Snapshot): ManifestFile[] {
  const { manifests } = snapshot as unknown as { readonly manifests?: unknown };
  if (!Array.isArray(manifests)) {
    const id = snapshot['snapshot-id'];
    throw new FloeError('corrupt', `snapshot ${id} has neither a manifest list nor manifests`);
  }
  return manifests.map((path) => ({
    manifestPath: String(path),
    manifestLength: 0,
    partitionSpecId: 0,
    content: 0,
    sequenceNumber: 0,
    minSequenceNumber: 0,
    addedSnapshotId: snapshot['snapshot-id'],
    addedFilesCount: undefined,
    existingFilesCount: undefined,
    deletedFilesCount: undefined,
    addedRowsCount: undefined,
    existingRowsCount: undefined,
    deletedRowsCount: undefined,
    partitions: undefined,
  }));
}

/** The entries of each manifest, in the same order. */
export async function readManifests(
  io: FileReader,
  metadata: TableMetadata,
  manifests: readonly ManifestFile[],
): Promise<ManifestEntry[][]> {
  const results: ManifestEntry[][] = new Array(manifests.length);
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < manifests.length; index = next++) {
      const manifest = manifests[index]!;
      const bytes = await io.read(manifest.manifestPath);
      results[index] = readManifest(
        bytes,
        manifest,
        bindTableSpec(metadata, manifest.partitionSpecId),
      );
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_READS }, worker));
  return results;
}
