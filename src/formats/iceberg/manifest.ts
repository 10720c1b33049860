// Manifests: files and their state, read (v1, v2, v3) and written (v2, v3). Entries come back with sequence numbers
// and row ids inherited. Source: Iceberg table spec, "Manifests" and "Sequence Number Inheritance".
import { assert } from '../../base/assert.ts';
import { FloeError } from '../../base/error.ts';
import { openContainer, writeContainer } from '../avro/container.ts';
import type { AvroField } from '../avro/value-codec.ts';
import { stringifyIcebergJson } from './json.ts';
import type { ManifestFile } from './manifest-list.ts';
import { MANIFEST_FIELD_NAMES, manifestAvroSchema } from './manifest-schema.ts';
import {
  avroName,
  type BoundPartitionSpec,
  FIRST_PARTITION_FIELD_ID,
  partitionAvroSchema,
  partitionValueFromAvro,
  partitionValueToAvro,
} from './partition.ts';
import { summarisePartitions } from './partition-summary.ts';
import type { DataFile, FileMetrics, Schema } from './types.ts';

export const STATUS_EXISTING = 0;
export const STATUS_ADDED = 1;
export const STATUS_DELETED = 2;

/** One file's state in a snapshot. */
export interface ManifestEntry {
  readonly status: 0 | 1 | 2;
  /** The snapshot that added the file, or deleted it (status 2). */
  readonly snapshotId: bigint;
  /** Data sequence number: what deletes are compared by. Undefined in an added entry still to be committed. */
  readonly sequenceNumber: number | undefined;
  readonly fileSequenceNumber: number | undefined;
  readonly file: DataFile;
}

type Raw = Readonly<Record<string, unknown>>;

/** Names columns by field id; those of partition tuples, which are the table's own, `p<id>`. */
function columnKey(field: AvroField): string | undefined {
  const id = field['field-id'];
  if (typeof id !== 'number') return field.name;
  if (id >= FIRST_PARTITION_FIELD_ID) return `p${id}`;
  return MANIFEST_FIELD_NAMES.get(id) ?? mapPart(field);
}

const mapPart = ({ name }: AvroField) => (name === 'key' || name === 'value' ? name : undefined);

/**
 * Reads a manifest that `manifest` of the list describes.
 * @throws FloeError `corrupt`.
 */
export function readManifest(
  bytes: Uint8Array,
  manifest: ManifestFile,
  spec: BoundPartitionSpec,
): ManifestEntry[] {
  assert(spec.specId === manifest.partitionSpecId, 'a manifest is read with its own spec');
  const raw = openContainer(bytes).records({ key: columnKey }) as Raw[];
  let nextRowId = manifest.firstRowId;
  return raw.map((entry) => {
    const read = toEntry(entry, manifest, spec);
    const inherits =
      manifest.content === 0 && read.status !== STATUS_DELETED && nextRowId !== undefined;
    if (!inherits || read.file.firstRowId !== undefined) return read;
    const firstRowId = nextRowId;
    nextRowId = firstRowId! + read.file.recordCount;
    return { ...read, file: { ...read.file, firstRowId: firstRowId! } };
  });
}

function toEntry(entry: Raw, manifest: ManifestFile, spec: BoundPartitionSpec): ManifestEntry {
  const status = entry['status'];
  if (status !== 0 && status !== 1 && status !== 2) {
    throw new FloeError(
      'corrupt',
      `manifest ${manifest.manifestPath}: status ${String(status)} of an entry`,
    );
  }
  const snapshotId = entry['snapshot_id'];
  return {
    status,
    snapshotId: BigInt((snapshotId ?? manifest.addedSnapshotId) as bigint),
    sequenceNumber: Number(entry['sequence_number'] ?? manifest.sequenceNumber),
    fileSequenceNumber: Number(entry['file_sequence_number'] ?? manifest.sequenceNumber),
    file: toDataFile(entry['data_file'] as Raw, spec),
  };
}

function toDataFile(raw: Raw, spec: BoundPartitionSpec): DataFile {
  const tuple = (raw['partition'] ?? {}) as Raw;
  return {
    content: (raw['content'] ?? 0) as DataFile['content'],
    filePath: raw['file_path'] as string,
    fileFormat: String(raw['file_format']).toUpperCase() as DataFile['fileFormat'],
    specId: spec.specId,
    partition: spec.fields.map(({ field, resultType }) =>
      partitionValueFromAvro(resultType, tuple[`p${field['field-id']}`]),
    ),
    recordCount: Number(raw['record_count']),
    fileSizeInBytes: Number(raw['file_size_in_bytes']),
    metrics: toMetrics(raw),
    ...present('splitOffsets', numbers(raw['split_offsets'])),
    ...present('equalityIds', numbers(raw['equality_ids'])),
    ...present('sortOrderId', number(raw['sort_order_id'])),
    ...present('firstRowId', number(raw['first_row_id'])),
    ...present('referencedDataFile', (raw['referenced_data_file'] ?? undefined) as string),
    ...present('contentOffset', number(raw['content_offset'])),
    ...present('contentSizeInBytes', number(raw['content_size_in_bytes'])),
    ...present('keyMetadata', (raw['key_metadata'] ?? undefined) as Uint8Array),
  };
}

/** `{key: value}` only when there is a value: absent stays absent. */
function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [P in K]?: V });
}

const number = (value: unknown) =>
  value === undefined || value === null ? undefined : Number(value);
const numbers = (value: unknown) =>
  Array.isArray(value) && value.length > 0 ? value.map(Number) : undefined;

function toMetrics(raw: Raw): FileMetrics {
  return {
    columnSizes: countMap(raw['column_sizes']),
    valueCounts: countMap(raw['value_counts']),
    nullValueCounts: countMap(raw['null_value_counts']),
    nanValueCounts: countMap(raw['nan_value_counts']),
    lowerBounds: byteMap(raw['lower_bounds']),
    upperBounds: byteMap(raw['upper_bounds']),
  };
}

type Pairs = readonly { readonly key: number; readonly value: unknown }[];

function countMap(pairs: unknown): ReadonlyMap<number, number> {
  return new Map(((pairs ?? []) as Pairs).map(({ key, value }) => [key, Number(value)]));
}

function byteMap(pairs: unknown): ReadonlyMap<number, Uint8Array> {
  return new Map(((pairs ?? []) as Pairs).map(({ key, value }) => [key, value as Uint8Array]));
}

export interface WriteManifestOptions {
  readonly path: string;
  readonly formatVersion: number;
  readonly schema: Schema;
  readonly spec: BoundPartitionSpec;
  /** 0: data files, 1: delete files. */
  readonly content: 0 | 1;
  readonly snapshotId: bigint;
  /** Of the snapshot being made: what entries without a sequence number will inherit. */
  readonly sequenceNumber: number;
  readonly entries: readonly ManifestEntry[];
}

export interface WrittenManifest {
  readonly bytes: Uint8Array;
  readonly manifest: ManifestFile;
}

/** Writes one manifest and describes it for the manifest list. */
export function writeManifest(options: WriteManifestOptions): WrittenManifest {
  const { spec, entries, formatVersion, schema, content } = options;
  assert(formatVersion >= 2, 'manifests are written in format v2 or v3');
  for (const entry of entries) {
    assert(entry.file.specId === spec.specId, 'T8: a manifest holds files of one spec');
    assert(
      (entry.file.content === 0) === (content === 0),
      'a manifest holds data or deletes, not both',
    );
  }
  const fields = spec.fields.map(({ field }) => field);
  const names = fields.map((field) => avroName(field.name));
  const bytes = writeContainer(
    entries.map((entry) => toRecord(entry, toTuple(entry.file, spec, names))),
    {
      schema: manifestAvroSchema(partitionAvroSchema(spec), formatVersion),
      metadata: {
        schema: stringifyIcebergJson(schema),
        'schema-id': String(schema['schema-id']),
        'partition-spec': stringifyIcebergJson(fields),
        'partition-spec-id': String(spec.specId),
        'format-version': String(formatVersion),
        content: content === 0 ? 'data' : 'deletes',
      },
      sync: syncMarker(options.path),
    },
  );
  return { bytes, manifest: describe(options, bytes.length) };
}

function describe(options: WriteManifestOptions, length: number): ManifestFile {
  const { entries } = options;
  const live = entries.filter((entry) => entry.status !== STATUS_DELETED);
  const files = (status: number) => entries.filter((entry) => entry.status === status);
  const rows = (status: number) =>
    files(status).reduce((sum, entry) => sum + entry.file.recordCount, 0);
  return {
    manifestPath: options.path,
    manifestLength: length,
    partitionSpecId: options.spec.specId,
    content: options.content,
    sequenceNumber: options.sequenceNumber,
    minSequenceNumber: live.reduce(
      (least, entry) => Math.min(least, entry.sequenceNumber ?? options.sequenceNumber),
      options.sequenceNumber,
    ),
    addedSnapshotId: options.snapshotId,
    addedFilesCount: files(STATUS_ADDED).length,
    existingFilesCount: files(STATUS_EXISTING).length,
    deletedFilesCount: files(STATUS_DELETED).length,
    addedRowsCount: rows(STATUS_ADDED),
    existingRowsCount: rows(STATUS_EXISTING),
    deletedRowsCount: rows(STATUS_DELETED),
    partitions: summarisePartitions(
      options.spec,
      entries.map((entry) => entry.file.partition),
    ),
  };
}

/** 16 bytes that depend on the file's name only: the same commit makes the same bytes. */
export function syncMarker(path: string): Uint8Array {
  const marker = new Uint8Array(16);
  for (let index = 0; index < path.length; index += 1) {
    const at = index % 16;
    marker[at] = (marker[at]! * 31 + path.charCodeAt(index)) & 0xff;
  }
  return marker;
}

function toRecord(entry: ManifestEntry, partition: unknown): unknown {
  const { file } = entry;
  const { metrics } = file;
  return {
    status: entry.status,
    snapshot_id: entry.snapshotId,
    sequence_number: entry.sequenceNumber,
    file_sequence_number: entry.fileSequenceNumber,
    data_file: {
      content: file.content,
      file_path: file.filePath,
      file_format: file.fileFormat,
      partition,
      record_count: file.recordCount,
      file_size_in_bytes: file.fileSizeInBytes,
      column_sizes: pairs(metrics.columnSizes),
      value_counts: pairs(metrics.valueCounts),
      null_value_counts: pairs(metrics.nullValueCounts),
      nan_value_counts: pairs(metrics.nanValueCounts),
      lower_bounds: pairs(metrics.lowerBounds),
      upper_bounds: pairs(metrics.upperBounds),
      key_metadata: file.keyMetadata,
      split_offsets: file.splitOffsets,
      equality_ids: file.equalityIds,
      sort_order_id: file.sortOrderId,
      first_row_id: file.firstRowId,
      referenced_data_file: file.referencedDataFile,
      content_offset: file.contentOffset,
      content_size_in_bytes: file.contentSizeInBytes,
    },
  };
}

function toTuple(file: DataFile, spec: BoundPartitionSpec, names: readonly string[]): unknown {
  assert(
    file.partition.length === spec.fields.length,
    `a file of spec ${spec.specId} has ${spec.fields.length} partition values`,
  );
  return Object.fromEntries(
    spec.fields.map(({ resultType }, index) => [
      names[index]!,
      partitionValueToAvro(resultType, file.partition[index] ?? null),
    ]),
  );
}

/** Map → array of pairs; nothing at all when empty, which readers take for "no metrics". */
function pairs<V>(map: ReadonlyMap<number, V>): unknown {
  return map.size === 0 ? undefined : Array.from(map, ([key, value]) => ({ key, value }));
}
