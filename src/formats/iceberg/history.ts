// Snapshots of a table and how they descend from one another. Source: Iceberg table spec, "Snapshots".

import { FloeError } from '../../base/error.ts';
import type { IdSource } from '../../base/prng.ts';
import { uuidToBytes } from '../../base/prng.ts';
import { schemaById } from './schema.ts';
import type { Schema, Snapshot, TableMetadata } from './types.ts';

export const MAIN_BRANCH = 'main';

export function snapshotById(
  metadata: TableMetadata,
  snapshotId: bigint | undefined,
): Snapshot | undefined {
  if (snapshotId === undefined) return undefined;
  return metadata.snapshots?.find((snapshot) => snapshot['snapshot-id'] === snapshotId);
}

/** The snapshot that `main` names; undefined for an empty table. */
export function currentSnapshot(metadata: TableMetadata): Snapshot | undefined {
  return snapshotById(metadata, metadata['current-snapshot-id']);
}

/** A snapshot and its ancestors, newest first, as far as they are retained. */
export function ancestorsOf(metadata: TableMetadata, snapshotId: bigint | undefined): Snapshot[] {
  const byId = new Map(metadata.snapshots?.map((one) => [one['snapshot-id'], one]));
  const found: Snapshot[] = [];
  let next = snapshotId === undefined ? undefined : byId.get(snapshotId);
  while (next !== undefined) {
    found.push(next);
    // Taken out as it is met: a ring in damaged metadata ends here.
    byId.delete(next['snapshot-id']);
    const parent = next['parent-snapshot-id'];
    next = parent === undefined ? undefined : byId.get(parent);
  }
  return found;
}

/** The schema that new rows are written with. */
export function currentSchema(metadata: TableMetadata): Schema {
  return schemaById(metadata.schemas, metadata['current-schema-id']);
}

/** A positive 63-bit id that is new to the table. */
export function newSnapshotId(ids: IdSource, metadata?: TableMetadata): bigint {
  for (let attempt = 0; attempt < 16; attempt += 1) {
    const bytes = uuidToBytes(ids.uuid());
    const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
    const id = (view.getBigUint64(0) ^ view.getBigUint64(8)) & 0x7fff_ffff_ffff_ffffn;
    if (id !== 0n && (metadata === undefined || snapshotById(metadata, id) === undefined))
      return id;
  }
  throw new FloeError(
    'internal',
    'no new snapshot id in 16 attempts: the id source repeats itself',
  );
}
