// Deletes the files of a dropped table: everything its metadata reaches, and the rest of its folder when that folder
// is its alone. Best effort in a fixed order: data first, metadata last, so that a purge cut short can be repeated.

import { FloeError } from '../base/error.ts';
import type { Logger } from '../base/log.ts';
import { manifestsOf, readManifests, type TableMetadata } from '../formats/iceberg/index.ts';
import type { StoredMetadata } from './metadata-files.ts';
import { uuidSuffix } from './names.ts';
import { isMissing, type Warehouse } from './warehouse.ts';

/** Deletes all files of the table. What can't be read is logged and passed over. */
export async function purgeTable(
  warehouse: Warehouse,
  stored: StoredMetadata,
  logger: Logger,
): Promise<void> {
  const { metadata } = stored;
  const data = new Set<string>();
  const meta = new Set<string>([stored.location]);
  for (const entry of metadata['metadata-log'] ?? []) meta.add(entry['metadata-file']);
  for (const kind of ['statistics', 'partition-statistics'] as const)
    for (const one of metadata[kind] ?? [])
      meta.add((one as { 'statistics-path': string })['statistics-path']);
  for (const snapshot of metadata.snapshots ?? []) {
    meta.add(snapshot['manifest-list']);
    try {
      const manifests = await manifestsOf(warehouse, snapshot);
      const fresh = manifests.filter((manifest) => !meta.has(manifest.manifestPath));
      for (const entries of await readManifests(warehouse, metadata, fresh))
        for (const entry of entries) data.add(entry.file.filePath);
      for (const manifest of manifests) meta.add(manifest.manifestPath);
    } catch (caught) {
      if (!isMissing(caught)) logger.warn(facts(metadata, caught), 'purge: snapshot not readable');
    }
  }
  await warehouse.delete(data);
  if (isOwnFolder(metadata) && warehouse.holds(metadata.location)) {
    const rest: string[] = [];
    for await (const { uri } of warehouse.list(`${metadata.location}/`)) rest.push(uri);
    await warehouse.delete(rest.filter((uri) => !meta.has(uri)));
  }
  await warehouse.delete(meta);
}

/** Locations that the catalog chose end with the table's uuid: nobody else's files lie there. */
const isOwnFolder = (metadata: TableMetadata) =>
  metadata.location.endsWith(`-${uuidSuffix(metadata['table-uuid'])}`);

const facts = (metadata: TableMetadata, caught: unknown) => ({
  table: metadata['table-uuid'],
  error: FloeError.from(caught).message,
});
