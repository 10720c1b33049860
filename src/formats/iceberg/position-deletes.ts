// Position delete files (format v2): which rows of which data files are deleted, sorted by (file, position) as the
// specification asks. Written with our own Parquet writer, read by hyparquet for whoever must know what they name.
// Not for: deletion vectors (deletion-vector.ts, puffin.ts). Source: Iceberg table spec, "Position Delete Files".
import { assert } from '../../base/assert.ts';
import type { BytesColumn } from '../arrow/byte-columns.ts';
import type { Int64Column } from '../arrow/scalar-columns.ts';
import { TableColumns } from '../arrow/table-columns.ts';
import { type ParquetFile, ParquetWriter } from '../parquet/writer.ts';
import type { DataFile, FileMetrics, PartitionValue, Schema } from './types.ts';

/** Reserved field ids of the two columns. */
export const DELETE_FILE_PATH_ID = 2147483546;
export const DELETE_POSITION_ID = 2147483545;

const SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: DELETE_FILE_PATH_ID, name: 'file_path', required: true, type: 'string' },
    { id: DELETE_POSITION_ID, name: 'pos', required: true, type: 'long' },
  ],
};

/** Rows of one row group: what a reader that joins deletes holds at a time. */
const ROW_GROUP_ROWS = 1_000_000;

/** Deleted rows of one data file, ascending and each once. */
export interface DeletedRows {
  /** The data file's full URI, as manifests have it. */
  readonly filePath: string;
  readonly positions: Float64Array;
}

export interface PositionDeleteOptions {
  /** Absolute URI of the file to be written. */
  readonly path: string;
  /** Spec and tuple of the data files, all the same (rule K5). */
  readonly specId: number;
  readonly partition: readonly PartitionValue[];
  /** In any order; at least one row altogether. */
  readonly rows: readonly DeletedRows[];
}

/** Encodes one position delete file and describes it for the manifest. */
export function writePositionDeletes(options: PositionDeleteOptions): {
  readonly file: DataFile;
  readonly parts: readonly Uint8Array[];
} {
  const sorted = options.rows
    .filter((one) => one.positions.length > 0)
    .toSorted((a, b) => Buffer.compare(Buffer.from(a.filePath), Buffer.from(b.filePath)));
  assert(sorted.length > 0, 'a position delete file names at least one row');
  const written = encode(sorted);
  const lower = new TextEncoder().encode(sorted[0]!.filePath);
  const upper = new TextEncoder().encode(sorted.at(-1)!.filePath);
  return {
    parts: written.parts,
    file: {
      content: 1,
      filePath: options.path,
      fileFormat: 'PARQUET',
      specId: options.specId,
      partition: options.partition,
      recordCount: written.recordCount,
      fileSizeInBytes: written.byteLength,
      splitOffsets: written.splitOffsets,
      metrics: wholePaths(written.metrics, lower, upper),
      ...(sorted.length === 1 ? { referencedDataFile: sorted[0]!.filePath } : {}),
    },
  };
}

function encode(sorted: readonly DeletedRows[]): ParquetFile {
  const columns = new TableColumns(SCHEMA);
  const [paths, places] = columns.columns as readonly [BytesColumn, Int64Column];
  const writer = new ParquetWriter({ schema: SCHEMA });
  for (const { filePath, positions } of sorted) {
    const path = new TextEncoder().encode(filePath);
    for (const position of positions) {
      paths.append(path, 0, path.length);
      places.append(position);
      columns.endRow();
      if (columns.rowCount < ROW_GROUP_ROWS) continue;
      writer.writeRowGroup(columns);
      columns.clear();
    }
  }
  writer.writeRowGroup(columns);
  return writer.finish();
}

/** Bounds of paths are given whole: equal ones tell a reader that the file is about one data file only. */
function wholePaths(metrics: FileMetrics, lower: Uint8Array, upper: Uint8Array): FileMetrics {
  return {
    ...metrics,
    lowerBounds: new Map(metrics.lowerBounds).set(DELETE_FILE_PATH_ID, lower),
    upperBounds: new Map(metrics.upperBounds).set(DELETE_FILE_PATH_ID, upper),
  };
}
