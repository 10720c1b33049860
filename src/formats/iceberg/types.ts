// The shapes of Iceberg table metadata (format v2, with room for v3), as plain data.
// Field names are the specification's JSON names; 64-bit ids are bigint (formats/iceberg/json.ts reads and writes them).
// Source: Iceberg table spec, appendix C.

export type PrimitiveTypeName =
  | 'boolean'
  | 'int'
  | 'long'
  | 'float'
  | 'double'
  | 'date'
  | 'time'
  | 'timestamp'
  | 'timestamptz'
  | 'timestamp_ns'
  | 'timestamptz_ns'
  | 'string'
  | 'uuid'
  | 'binary'
  | 'unknown'
  | 'variant'
  | `decimal(${number},${number})`
  | `decimal(${number}, ${number})`
  | `fixed[${number}]`;

export type IcebergType = PrimitiveTypeName | StructType | ListType | MapType;

export interface StructType {
  readonly type: 'struct';
  readonly fields: readonly NestedField[];
}

export interface NestedField {
  readonly id: number;
  readonly name: string;
  readonly required: boolean;
  readonly type: IcebergType;
  readonly doc?: string;
  readonly 'initial-default'?: unknown;
  readonly 'write-default'?: unknown;
}

export interface ListType {
  readonly type: 'list';
  readonly 'element-id': number;
  readonly 'element-required': boolean;
  readonly element: IcebergType;
}

export interface MapType {
  readonly type: 'map';
  readonly 'key-id': number;
  readonly key: IcebergType;
  readonly 'value-id': number;
  readonly 'value-required': boolean;
  readonly value: IcebergType;
}

export interface Schema extends StructType {
  readonly 'schema-id': number;
  readonly 'identifier-field-ids'?: readonly number[];
}

export interface PartitionField {
  readonly 'source-id': number;
  readonly 'field-id': number;
  readonly name: string;
  /** `identity`, `bucket[16]`, `truncate[8]`, `year`, `month`, `day`, `hour`, `void`. */
  readonly transform: string;
}

export interface PartitionSpec {
  readonly 'spec-id': number;
  readonly fields: readonly PartitionField[];
}

export interface SortField {
  readonly transform: string;
  readonly 'source-id': number;
  readonly direction: 'asc' | 'desc';
  readonly 'null-order': 'nulls-first' | 'nulls-last';
}

export interface SortOrder {
  readonly 'order-id': number;
  readonly fields: readonly SortField[];
}

export interface Snapshot {
  readonly 'snapshot-id': bigint;
  readonly 'parent-snapshot-id'?: bigint;
  readonly 'sequence-number'?: number;
  readonly 'timestamp-ms': number;
  readonly 'manifest-list': string;
  readonly summary?: Readonly<Record<string, string>>;
  readonly 'schema-id'?: number;
  /** v3, row lineage: the first row id of this snapshot's added rows, and how many ids it assigned. */
  readonly 'first-row-id'?: number;
  readonly 'added-rows'?: number;
  readonly 'key-id'?: string;
}

export interface SnapshotRef {
  readonly 'snapshot-id': bigint;
  readonly type: 'branch' | 'tag';
  readonly 'min-snapshots-to-keep'?: number;
  readonly 'max-snapshot-age-ms'?: number;
  readonly 'max-ref-age-ms'?: number;
}

export interface TableMetadata {
  readonly 'format-version': number;
  readonly 'table-uuid': string;
  readonly location: string;
  readonly 'last-sequence-number': number;
  readonly 'last-updated-ms': number;
  readonly 'last-column-id': number;
  readonly schemas: readonly Schema[];
  readonly 'current-schema-id': number;
  readonly 'partition-specs': readonly PartitionSpec[];
  readonly 'default-spec-id': number;
  readonly 'last-partition-id': number;
  readonly properties?: Readonly<Record<string, string>>;
  readonly 'current-snapshot-id'?: bigint;
  readonly snapshots?: readonly Snapshot[];
  readonly 'snapshot-log'?: readonly {
    readonly 'timestamp-ms': number;
    readonly 'snapshot-id': bigint;
  }[];
  readonly 'metadata-log'?: readonly {
    readonly 'timestamp-ms': number;
    readonly 'metadata-file': string;
  }[];
  readonly 'sort-orders': readonly SortOrder[];
  readonly 'default-sort-order-id': number;
  readonly refs?: Readonly<Record<string, SnapshotRef>>;
  readonly statistics?: readonly unknown[];
  readonly 'partition-statistics'?: readonly unknown[];
  readonly 'next-row-id'?: number;
  readonly 'encryption-keys'?: readonly unknown[];
}

/**
 * One value in its Iceberg form: boolean; int, date (days), float, double → number; long, time, timestamps
 * (microseconds, `_ns` nanoseconds), decimal (unscaled) → bigint; string; uuid (16 bytes), fixed, binary → bytes.
 */
export type PartitionValue = string | number | bigint | boolean | Uint8Array | null;

/** A data or delete file as a manifest describes it. Spec: "Manifests", data_file. */
export interface DataFile {
  /** 0 data, 1 position deletes, 2 equality deletes. */
  readonly content: 0 | 1 | 2;
  readonly filePath: string;
  readonly fileFormat: 'PARQUET' | 'AVRO' | 'ORC' | 'PUFFIN';
  readonly specId: number;
  /** In the order of the spec's fields. */
  readonly partition: readonly PartitionValue[];
  readonly recordCount: number;
  readonly fileSizeInBytes: number;
  readonly metrics: FileMetrics;
  readonly splitOffsets?: readonly number[];
  readonly equalityIds?: readonly number[];
  readonly sortOrderId?: number;
  readonly referencedDataFile?: string;
  readonly contentOffset?: number;
  readonly contentSizeInBytes?: number;
  /** v3, row lineage: the row id of the file's first row; inherited from the manifest when absent. */
  readonly firstRowId?: number;
  readonly keyMetadata?: Uint8Array;
}

/** Column metrics by field id; bounds are in Iceberg's single-value binary serialisation (appendix D). */
export interface FileMetrics {
  readonly columnSizes: ReadonlyMap<number, number>;
  readonly valueCounts: ReadonlyMap<number, number>;
  readonly nullValueCounts: ReadonlyMap<number, number>;
  readonly nanValueCounts: ReadonlyMap<number, number>;
  readonly lowerBounds: ReadonlyMap<number, Uint8Array>;
  readonly upperBounds: ReadonlyMap<number, Uint8Array>;
}
