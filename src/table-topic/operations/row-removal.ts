// Which files and rows of a table came from given offsets, and what takes them out of it. Reads two columns of the files
// concerned.
// Not for: committing it (rewind.ts).
import { FloeError } from '../../base/error.ts';
import type { Warehouse } from '../../catalog/index.ts';
import type { Int32Column, Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import {
  currentSchema,
  manifestSource,
  planScan,
  projectionOf,
} from '../../formats/iceberg/index.ts';
import { findField } from '../../formats/iceberg/schema.ts';
import type { DataFile, Schema, TableMetadata } from '../../formats/iceberg/types.ts';
import { decodeSingleValue } from '../../formats/iceberg/value.ts';
import { ParquetReader } from '../../formats/parquet/read/reader.ts';
import { fieldMapOf } from '../field-map.ts';
import { deleteRows, type RowDeletes, type RowHit } from '../maintenance/delete-rows.ts';
import { DeleteFiles } from '../maintenance/deletes.ts';
import { SYSTEM_PREFIX, systemPath } from '../system-columns.ts';
import type { Offsets } from '../watermark.ts';

export interface RemovalRequest {
  readonly from: Offsets;
  /** How the names of the new delete files begin. */
  readonly prefix: string;
  /** Where the table says whose a row is, only this topic's rows go. */
  readonly topicName: string;
}

/**
 * What takes out the rows at or above `from`, by partition; partitions that aren't named keep theirs.
 * @throws FloeError `unsupported` when the table lacks the columns that say where a row came from.
 */
export async function removalOf(
  metadata: TableMetadata,
  io: Warehouse,
  { from, prefix, topicName }: RemovalRequest,
): Promise<RowDeletes> {
  const plan = await planScan({ metadata, source: manifestSource(io) });
  if (plan.files.length === 0 || from.size === 0) {
    return { added: [], removed: [], objects: [], rows: 0 };
  }
  const places = placeColumns(metadata);
  const lowest = Math.min(...from.values());
  const hits: RowHit[] = [];
  const known = new DeleteFiles(io);
  for (const scan of plan.files) {
    if (highestOffset(scan.file, places.offset) < lowest) continue;
    const bytes = await io.read(scan.file.filePath);
    const reader = new ParquetReader(bytes, projectionOf(metadata, scan.file));
    const all = rowsFrom(reader, places, { from, topicName });
    if (all.length === 0) continue;
    const earlier = await known.positions(scan.file, scan.positionDeletes);
    const gone = new Set(earlier.flatMap((positions) => [...positions]));
    const positions = all.filter((position) => !gone.has(position));
    if (positions.length > 0) hits.push({ scan, positions, gone });
  }
  return deleteRows(metadata, hits, prefix);
}

interface PlaceColumns {
  readonly schema: Schema;
  readonly partition: number;
  readonly offset: number;
  /** Undefined in a table of one topic. */
  readonly topic: number | undefined;
}

function placeColumns(metadata: TableMetadata): PlaceColumns {
  const fields = fieldMapOf(metadata);
  const schema = currentSchema(metadata);
  const [partition, offset] = (['partition', 'offset'] as const).map((column) => {
    const id = fields.get(systemPath(column));
    const field = id === undefined ? undefined : findField(schema, id);
    if (field !== undefined) return field;
    throw new FloeError(
      'unsupported',
      `the table has no column _kafka_${column}, so its rows can't be told by their offsets: drop the table and resume with policy "restart"`,
    );
  });
  const topicId = fields.get(`${SYSTEM_PREFIX}topic`);
  const topic = topicId === undefined ? undefined : findField(schema, topicId);
  const wanted = [partition!, offset!, ...(topic === undefined ? [] : [topic])];
  const ids = { partition: partition!.id, offset: offset!.id, topic: topic?.id };
  return { schema: { ...schema, fields: wanted }, ...ids };
}

function highestOffset({ metrics }: DataFile, offsetId: number): number {
  const bound = metrics.upperBounds.get(offsetId);
  const value = bound === undefined ? undefined : decodeSingleValue('long', bound);
  return value === undefined ? Number.POSITIVE_INFINITY : Number(value);
}

function rowsFrom(
  reader: ParquetReader,
  places: PlaceColumns,
  { from, topicName }: Pick<RemovalRequest, 'from' | 'topicName'>,
): Float64Array {
  const columns = new TableColumns(places.schema);
  const partitions = columns.byId(places.partition) as Int32Column;
  const offsets = columns.byId(places.offset) as Int64Column;
  const topics = places.topic === undefined ? undefined : columns.byId(places.topic);
  const found: number[] = [];
  let firstRow = 0;
  for (const group of reader.rowGroups.keys()) {
    columns.clear();
    reader.readRowGroup(group, columns);
    columns.align();
    for (let row = 0; row < columns.rowCount; row += 1) {
      if (topics !== undefined && topics.valueAt(row) !== topicName) continue;
      const start = from.get(partitions.valueAt(row) ?? -1);
      if (start !== undefined && Number(offsets.valueAt(row)) >= start) found.push(firstRow + row);
    }
    firstRow += columns.rowCount;
  }
  return Float64Array.from(found);
}
