// What the files of a table are reached from: which only expiring snapshots need, and which in its folder nobody does.
// Order matters for safety: what is kept is read completely before anything is called unreachable, and a manifest that
// can't be read makes the whole answer fail.
import { currentSnapshot } from '../../formats/iceberg/history.ts';
import { STATUS_DELETED } from '../../formats/iceberg/manifest.ts';
import type { ManifestFile } from '../../formats/iceberg/manifest-list.ts';
import type { FileReader } from '../../formats/iceberg/table-files.ts';
import { manifestsOf, readManifests } from '../../formats/iceberg/table-files.ts';
import type { Snapshot, TableMetadata } from '../../formats/iceberg/types.ts';

/** Manifests whose entries are in memory at once. */
const MANIFESTS_AT_ONCE = 64;

/** Files that the expiring snapshots have and no other does, manifests and lists included. */
export async function unreachableFiles(
  metadata: TableMetadata,
  expiring: ReadonlySet<bigint>,
  io: FileReader,
): Promise<string[]> {
  const snapshots = metadata.snapshots ?? [];
  const going = snapshots.filter((one) => expiring.has(one['snapshot-id']));
  const staying = snapshots.filter((one) => !expiring.has(one['snapshot-id']));
  const kept = await manifestsBy(staying, io);
  const left = await manifestsBy(going, io);
  for (const path of kept.keys()) left.delete(path);
  const files = new Set<string>();
  await eachEntry(metadata, [...left.values()], io, (path) => files.add(path));
  // Without data files that may go there is nothing to look for in what stays.
  if (files.size > 0)
    await eachEntry(metadata, [...kept.values()], io, (path, live) => {
      if (live) files.delete(path);
    });
  const lists = new Set(staying.map((one) => one['manifest-list']));
  return [
    ...files,
    ...left.keys(),
    ...going.map((one) => one['manifest-list']).filter((path) => !lists.has(path)),
    ...statisticsOf(metadata, (id) => expiring.has(id)),
  ].filter((path) => path !== undefined);
}

async function manifestsBy(
  snapshots: readonly Snapshot[],
  io: FileReader,
): Promise<Map<string, ManifestFile>> {
  const found = new Map<string, ManifestFile>();
  for (const snapshot of snapshots)
    for (const manifest of await manifestsOf(io, snapshot))
      found.set(manifest.manifestPath, manifest);
  return found;
}

async function eachEntry(
  metadata: TableMetadata,
  manifests: readonly ManifestFile[],
  io: FileReader,
  visit: (path: string, live: boolean) => void,
): Promise<void> {
  for (let from = 0; from < manifests.length; from += MANIFESTS_AT_ONCE) {
    const some = manifests.slice(from, from + MANIFESTS_AT_ONCE);
    for (const entries of await readManifests(io, metadata, some))
      for (const { file, status } of entries) visit(file.filePath, status !== STATUS_DELETED);
  }
}

function statisticsOf(metadata: TableMetadata, wanted: (id: bigint) => boolean): string[] {
  return (['statistics', 'partition-statistics'] as const).flatMap((kind) =>
    ((metadata[kind] ?? []) as { 'snapshot-id': bigint; 'statistics-path': string }[])
      .filter((one) => wanted(one['snapshot-id']))
      .map((one) => one['statistics-path']),
  );
}

/**
 * Each file that a retained snapshot names, some more than once: lists, manifests, what is in them, statistics. `live` is
 * false of an entry that says that its file was deleted: it needs it no more than one that isn't there.
 */
export async function visitFiles(
  metadata: TableMetadata,
  io: FileReader,
  visit: (path: string, live: boolean) => void,
): Promise<void> {
  const snapshots = metadata.snapshots ?? [];
  const manifests = await manifestsBy(snapshots, io);
  for (const { 'manifest-list': list } of snapshots) if (list !== undefined) visit(list, true);
  for (const path of manifests.keys()) visit(path, true);
  for (const path of statisticsOf(metadata, () => true)) visit(path, true);
  await eachEntry(metadata, [...manifests.values()], io, visit);
}

/** Everything that the table's metadata reaches. */
export async function reachableFiles(
  metadata: TableMetadata,
  metadataLocation: string,
  io: FileReader,
): Promise<Set<string>> {
  const files = new Set<string>([
    metadataLocation,
    ...(metadata['metadata-log'] ?? []).map((entry) => entry['metadata-file']),
  ]);
  await visitFiles(metadata, io, (path) => files.add(path));
  return files;
}

/** Manifests of the current snapshot. */
export const currentManifests = (metadata: TableMetadata, io: FileReader) =>
  manifestsOf(io, currentSnapshot(metadata));
