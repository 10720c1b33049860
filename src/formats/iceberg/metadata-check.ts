// What must hold for table metadata that was read from outside, before anything builds on it.
// Not for: changes (metadata-update.ts checks those as it applies them).
import { FloeError } from '../../base/error.ts';
import type { TableMetadata } from './types.ts';

/** Format versions that are read. */
export const MAX_FORMAT_VERSION = 3;

const NUMBERS = [
  'last-sequence-number',
  'last-updated-ms',
  'last-column-id',
  'current-schema-id',
  'default-spec-id',
  'last-partition-id',
  'default-sort-order-id',
] as const;
const LISTS = ['schemas', 'partition-specs', 'sort-orders'] as const;

/** @throws FloeError `corrupt` naming the field; `unsupported` for a later format version. */
export function checkMetadata(metadata: TableMetadata): void {
  const version = metadata['format-version'];
  if (!Number.isInteger(version) || version < 1) throw bad('format-version', version);
  if (version > MAX_FORMAT_VERSION) {
    throw new FloeError(
      'unsupported',
      `Iceberg format version ${version} is newer than ${MAX_FORMAT_VERSION}, the newest this version reads`,
    );
  }
  for (const key of ['table-uuid', 'location'] as const) {
    if (typeof metadata[key] !== 'string') throw bad(key, metadata[key]);
  }
  for (const key of NUMBERS) if (!Number.isInteger(metadata[key])) throw bad(key, metadata[key]);
  for (const key of LISTS) if (!Array.isArray(metadata[key])) throw bad(key, metadata[key]);
  checkReferences(metadata);
}

function checkReferences(metadata: TableMetadata): void {
  const schemaId = metadata['current-schema-id'];
  if (!metadata.schemas.some((schema) => schema['schema-id'] === schemaId))
    throw bad('current-schema-id', schemaId);
  const specId = metadata['default-spec-id'];
  if (!metadata['partition-specs'].some((spec) => spec['spec-id'] === specId))
    throw bad('default-spec-id', specId);
  const orderId = metadata['default-sort-order-id'];
  if (!metadata['sort-orders'].some((order) => order['order-id'] === orderId))
    throw bad('default-sort-order-id', orderId);
  const current = metadata['current-snapshot-id'];
  const snapshots = metadata.snapshots ?? [];
  if (current !== undefined && !snapshots.some((snapshot) => snapshot['snapshot-id'] === current)) {
    throw bad('current-snapshot-id', current);
  }
}

function bad(key: string, value: unknown): FloeError {
  return new FloeError(
    'corrupt',
    `table metadata: "${key}" is ${value === undefined ? 'missing' : `${String(value)}, which is not possible`}`,
  );
}
