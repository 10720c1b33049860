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
  const location = snapshot['manifest-list'];
  if (location === undefined) {
    throw new FloeError(
      'unsupported',
      `snapshot ${snapshot['snapshot-id']} lists its manifests inline, as early v1 tables did`,
    );
  }
  return readManifestList(await io.read(location));
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
