// The files of a stage as text: what the metadata store keeps between a worker's job and its commit.
// Field ids key the metrics; bounds are base64; 64-bit partition values carry their kind.
// Not for: offsets and counts, which the store understands itself (metadata/tables.ts).
import { FloeError } from '../base/error.ts';
import type { DataFile, FileMetrics, PartitionValue } from '../formats/iceberg/types.ts';
import type { SidecarRef } from './upsert/sidecar.ts';

/** Data files of the table and of its dead-letter table, made by one job. */
export interface StagedFiles {
  readonly data: readonly DataFile[];
  readonly deadLetters: readonly DataFile[];
  /** Of an upsert table: what the rows do by their keys (K4). */
  readonly sidecar?: SidecarRef;
}

/** A partition value as JSON. */
export type ValueJson =
  | string
  | number
  | boolean
  | null
  | { readonly n: string }
  | { readonly b: string }
  | { readonly f: string };
type NumberPairs = readonly (readonly [number, number])[];
type BytesPairs = readonly (readonly [number, string])[];

interface MetricsJson {
  readonly sizes: NumberPairs;
  readonly values: NumberPairs;
  readonly nulls: NumberPairs;
  readonly nans: NumberPairs;
  readonly lower: BytesPairs;
  readonly upper: BytesPairs;
}

interface FileJson {
  readonly path: string;
  readonly spec: number;
  readonly partition: readonly ValueJson[];
  readonly records: number;
  readonly bytes: number;
  readonly splits?: readonly number[];
  readonly sort?: number;
  readonly metrics: MetricsJson;
}

export function formatStagedFiles(files: StagedFiles): string {
  return JSON.stringify({
    data: files.data.map(fileToJson),
    deadLetters: files.deadLetters.map(fileToJson),
    sidecar: files.sidecar,
  });
}

/** @throws FloeError `corrupt` when the text isn't one of {@link formatStagedFiles}. */
export function parseStagedFiles(payload: string): StagedFiles {
  try {
    const parsed = JSON.parse(payload) as {
      data: FileJson[];
      deadLetters: FileJson[];
      sidecar?: SidecarRef;
    };
    return {
      data: parsed.data.map(fileFromJson),
      deadLetters: parsed.deadLetters.map(fileFromJson),
      ...(parsed.sidecar === undefined ? {} : { sidecar: parsed.sidecar }),
    };
  } catch (caught) {
    throw new FloeError('corrupt', 'a staged range has unreadable files', { cause: caught });
  }
}

function fileToJson(file: DataFile): FileJson {
  return {
    path: file.filePath,
    spec: file.specId,
    partition: file.partition.map(valueToJson),
    records: file.recordCount,
    bytes: file.fileSizeInBytes,
    ...(file.splitOffsets === undefined ? {} : { splits: file.splitOffsets }),
    ...(file.sortOrderId === undefined ? {} : { sort: file.sortOrderId }),
    metrics: metricsToJson(file.metrics),
  };
}

function fileFromJson(file: FileJson): DataFile {
  return {
    content: 0,
    filePath: file.path,
    fileFormat: 'PARQUET',
    specId: file.spec,
    partition: file.partition.map(valueFromJson),
    recordCount: file.records,
    fileSizeInBytes: file.bytes,
    ...(file.splits === undefined ? {} : { splitOffsets: file.splits }),
    ...(file.sort === undefined ? {} : { sortOrderId: file.sort }),
    metrics: metricsFromJson(file.metrics),
  };
}

export function valueToJson(value: PartitionValue): ValueJson {
  if (typeof value === 'bigint') return { n: String(value) };
  if (value instanceof Uint8Array) return { b: Buffer.from(value).toString('base64') };
  // JSON knows neither NaN nor the infinities nor −0: as text they survive.
  if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0))) {
    return { f: Object.is(value, -0) ? '-0' : String(value) };
  }
  return value;
}

export function valueFromJson(value: ValueJson): PartitionValue {
  if (value === null || typeof value !== 'object') return value;
  if ('n' in value) return BigInt(value.n);
  if ('f' in value) return Number(value.f);
  return new Uint8Array(Buffer.from(value.b, 'base64'));
}

const bytesPairs = (map: ReadonlyMap<number, Uint8Array>): BytesPairs =>
  [...map].map(([id, bytes]) => [id, Buffer.from(bytes).toString('base64')] as const);

const bytesMap = (pairs: BytesPairs) =>
  new Map(pairs.map(([id, text]) => [id, new Uint8Array(Buffer.from(text, 'base64'))] as const));

function metricsToJson(metrics: FileMetrics): MetricsJson {
  return {
    sizes: [...metrics.columnSizes],
    values: [...metrics.valueCounts],
    nulls: [...metrics.nullValueCounts],
    nans: [...metrics.nanValueCounts],
    lower: bytesPairs(metrics.lowerBounds),
    upper: bytesPairs(metrics.upperBounds),
  };
}

function metricsFromJson(metrics: MetricsJson): FileMetrics {
  return {
    columnSizes: new Map(metrics.sizes),
    valueCounts: new Map(metrics.values),
    nullValueCounts: new Map(metrics.nulls),
    nanValueCounts: new Map(metrics.nans),
    lowerBounds: bytesMap(metrics.lower),
    upperBounds: bytesMap(metrics.upper),
  };
}
