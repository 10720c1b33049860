// Manifest lists: which manifests make a snapshot. Read v1 to v3, written v2 and v3.
// Source: Iceberg table spec, "Manifest Lists".
import { openContainer, writeContainer } from '../avro/container.ts';
import type { AvroField } from '../avro/value-codec.ts';
import { MANIFEST_LIST_FIELD_NAMES, manifestListAvroSchema } from './manifest-schema.ts';
import type { PartitionFieldSummary } from './partition-summary.ts';

/** A manifest as its list describes it (manifest_file). */
export interface ManifestFile {
  readonly manifestPath: string;
  readonly manifestLength: number;
  readonly partitionSpecId: number;
  /** 0: data files, 1: delete files. */
  readonly content: 0 | 1;
  readonly sequenceNumber: number;
  readonly minSequenceNumber: number;
  readonly addedSnapshotId: bigint;
  /** Counts are undefined where a v1 writer left them out. */
  readonly addedFilesCount: number | undefined;
  readonly existingFilesCount: number | undefined;
  readonly deletedFilesCount: number | undefined;
  readonly addedRowsCount: number | undefined;
  readonly existingRowsCount: number | undefined;
  readonly deletedRowsCount: number | undefined;
  readonly partitions: readonly PartitionFieldSummary[] | undefined;
  readonly keyMetadata?: Uint8Array;
  readonly firstRowId?: number;
}

type Raw = Readonly<Record<string, unknown>>;

const columnKey = (field: AvroField) => {
  const id = field['field-id'];
  return typeof id === 'number' ? MANIFEST_LIST_FIELD_NAMES.get(id) : field.name;
};

/** @throws FloeError `corrupt`. */
export function readManifestList(bytes: Uint8Array): ManifestFile[] {
  return (openContainer(bytes).records({ key: columnKey }) as Raw[]).map(toManifestFile);
}

function toManifestFile(raw: Raw): ManifestFile {
  const partitions = raw['partitions'] as readonly Raw[] | null | undefined;
  const keyMetadata = raw['key_metadata'];
  const firstRowId = count(raw['first_row_id']);
  return {
    manifestPath: raw['manifest_path'] as string,
    manifestLength: Number(raw['manifest_length']),
    partitionSpecId: Number(raw['partition_spec_id'] ?? 0),
    content: raw['content'] === 1 ? 1 : 0,
    sequenceNumber: Number(raw['sequence_number'] ?? 0),
    minSequenceNumber: Number(raw['min_sequence_number'] ?? 0),
    addedSnapshotId: BigInt((raw['added_snapshot_id'] ?? 0) as bigint),
    addedFilesCount: count(raw['added_files_count']),
    existingFilesCount: count(raw['existing_files_count']),
    deletedFilesCount: count(raw['deleted_files_count']),
    addedRowsCount: count(raw['added_rows_count']),
    existingRowsCount: count(raw['existing_rows_count']),
    deletedRowsCount: count(raw['deleted_rows_count']),
    partitions: partitions?.map(toSummary),
    ...(keyMetadata instanceof Uint8Array ? { keyMetadata } : {}),
    ...(firstRowId === undefined ? {} : { firstRowId }),
  };
}

const count = (value: unknown) =>
  value === undefined || value === null ? undefined : Number(value);

function toSummary(raw: Raw): PartitionFieldSummary {
  return {
    containsNull: raw['contains_null'] === true,
    containsNan: (raw['contains_nan'] ?? undefined) as boolean | undefined,
    lowerBound: (raw['lower_bound'] ?? undefined) as Uint8Array | undefined,
    upperBound: (raw['upper_bound'] ?? undefined) as Uint8Array | undefined,
  };
}

export interface WriteManifestListOptions {
  readonly formatVersion: number;
  readonly snapshotId: bigint;
  readonly parentSnapshotId: bigint | undefined;
  readonly sequenceNumber: number;
  readonly manifests: readonly ManifestFile[];
  readonly sync: Uint8Array;
  /** v3: the first row id this snapshot assigns. */
  readonly firstRowId?: number;
}

/** Counts that a v1 writer left out become 0, since v2 requires them. */
export function writeManifestList(options: WriteManifestListOptions): Uint8Array {
  const { formatVersion, parentSnapshotId, firstRowId } = options;
  return writeContainer(options.manifests.map(toRecord), {
    schema: manifestListAvroSchema(formatVersion),
    metadata: {
      'snapshot-id': String(options.snapshotId),
      'parent-snapshot-id': parentSnapshotId === undefined ? 'null' : String(parentSnapshotId),
      'sequence-number': String(options.sequenceNumber),
      'format-version': String(formatVersion),
      ...(firstRowId === undefined ? {} : { 'first-row-id': String(firstRowId) }),
    },
    sync: options.sync,
  });
}

function toRecord(manifest: ManifestFile): unknown {
  return {
    manifest_path: manifest.manifestPath,
    manifest_length: manifest.manifestLength,
    partition_spec_id: manifest.partitionSpecId,
    content: manifest.content,
    sequence_number: manifest.sequenceNumber,
    min_sequence_number: manifest.minSequenceNumber,
    added_snapshot_id: manifest.addedSnapshotId,
    added_files_count: manifest.addedFilesCount ?? 0,
    existing_files_count: manifest.existingFilesCount ?? 0,
    deleted_files_count: manifest.deletedFilesCount ?? 0,
    added_rows_count: manifest.addedRowsCount ?? 0,
    existing_rows_count: manifest.existingRowsCount ?? 0,
    deleted_rows_count: manifest.deletedRowsCount ?? 0,
    partitions: manifest.partitions?.map((summary) => ({
      contains_null: summary.containsNull,
      contains_nan: summary.containsNan,
      lower_bound: summary.lowerBound,
      upper_bound: summary.upperBound,
    })),
    key_metadata: manifest.keyMetadata,
    first_row_id: manifest.firstRowId,
  };
}
