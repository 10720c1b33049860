// Row lineage of v3: a rewritten row keeps its id and the sequence number of its last change, which its new file says in
// two reserved columns. Source: Iceberg table spec, "Row Lineage".
import type { Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import type { ScanFile } from '../../formats/iceberg/scan.ts';
import type { FileMetrics, NestedField, Schema } from '../../formats/iceberg/types.ts';
import type { ParquetReader } from '../../formats/parquet/read/reader.ts';

const ROW_ID = 2_147_483_540;
const LAST_UPDATED = 2_147_483_539;
/** Field ids from here on are the specification's. */
const FIRST_RESERVED = 2_147_483_447;

const FIELDS: readonly NestedField[] = [
  { id: ROW_ID, name: '_row_id', required: false, type: 'long' },
  { id: LAST_UPDATED, name: '_last_updated_sequence_number', required: false, type: 'long' },
];

const LINEAGE: Schema = { type: 'struct', 'schema-id': 0, fields: FIELDS };

export const isLineage = (fieldId: number) => fieldId === ROW_ID || fieldId === LAST_UPDATED;

/** The schema of files that keep lineage. A user's column of such a name can't be in a v3 table. */
export function withLineage(schema: Schema): Schema {
  return { ...schema, fields: [...schema.fields, ...FIELDS] };
}

/** Metrics of the reserved columns are nobody's business: no reader prunes by them. */
export function withoutReserved(metrics: FileMetrics): FileMetrics {
  const kept = <V>(map: ReadonlyMap<number, V>) =>
    new Map([...map].filter(([id]) => id < FIRST_RESERVED));
  return {
    columnSizes: kept(metrics.columnSizes),
    valueCounts: kept(metrics.valueCounts),
    nullValueCounts: kept(metrics.nullValueCounts),
    nanValueCounts: kept(metrics.nanValueCounts),
    lowerBounds: kept(metrics.lowerBounds),
    upperBounds: kept(metrics.upperBounds),
  };
}

/** Fills the lineage of rows just read: what the file says of a row, else its place in the file and the file's number. */
export class LineageReader {
  readonly #kept = new TableColumns(LINEAGE);

  /** Appends to the lineage columns of `columns` for row group `index`, whose first row is `firstRow` of the file. */
  append(columns: TableColumns, { reader, index, scan, firstRow }: RowGroupPlace): void {
    const { rowCount } = reader.rowGroups[index]!;
    const kept = this.#kept;
    kept.clear();
    reader.readRowGroup(index, kept);
    kept.align();
    const [ids, numbers] = kept.columns as readonly [Int64Column, Int64Column];
    const { firstRowId } = scan.file;
    const toIds = columns.byId(ROW_ID) as Int64Column;
    const toNumbers = columns.byId(LAST_UPDATED) as Int64Column;
    for (let row = 0; row < rowCount; row += 1) {
      if (ids.isValid(row)) copy(ids, row, toIds);
      // Written before the table had lineage, and nobody committed since: the new file gives it an id.
      else if (firstRowId === undefined) toIds.appendNull();
      else toIds.append(firstRowId + firstRow + row);
      if (numbers.isValid(row)) copy(numbers, row, toNumbers);
      else toNumbers.append(scan.sequenceNumber);
    }
  }
}

interface RowGroupPlace {
  readonly reader: ParquetReader;
  readonly index: number;
  readonly scan: ScanFile;
  readonly firstRow: number;
}

const copy = (from: Int64Column, row: number, to: Int64Column) =>
  to.appendHalves(from.halves[2 * row]!, from.halves[2 * row + 1]!);
