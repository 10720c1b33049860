// Debezium's word for a value that the database didn't log because it didn't change (PostgreSQL's TOAST, Oracle's
// LOBs): text of its own in place of the value, and for arrays and hstore an array or a map of it. The cell keeps what
// came, so that an append-only table says it; the change names the column, and an upserting table puts the old cell in
// its place (upsert/fills.ts).
// Source: Debezium, PostgresValueConverter (placeholders by type), UnchangedToastedReplicationMessageColumn.
import { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { Column } from '../../formats/arrow/column.ts';
import { ListColumn, MapColumn } from '../../formats/arrow/nested-columns.ts';
import { Int32Column, Int64Column } from '../../formats/arrow/scalar-columns.ts';
import type { RowChange } from '../change.ts';

/** Default of the connectors' `unavailable.value.placeholder`. */
export const UNAVAILABLE = '__debezium_unavailable_value';

const placeholder = new TextEncoder().encode(UNAVAILABLE);

/** A column that can hold the placeholder in one of its forms. */
export type PlaceholderColumn = BytesColumn | ListColumn | MapColumn;

/** True for columns that can hold the placeholder as it is. */
export function holdsPlaceholder(column: Column | undefined): column is PlaceholderColumn {
  if (column instanceof ListColumn) {
    const { element } = column;
    return (
      element instanceof BytesColumn ||
      element instanceof Int32Column ||
      element instanceof Int64Column
    );
  }
  if (column instanceof MapColumn)
    return column.key instanceof BytesColumn && column.value instanceof BytesColumn;
  return column instanceof BytesColumn;
}

/** Notes column `fieldId` when its last value is the placeholder. */
export function noteUnavailable(
  column: PlaceholderColumn,
  fieldId: number,
  change: RowChange,
): void {
  if (column.length > 0 && isPlaceholder(column, column.length - 1))
    change.unavailable.push(fieldId);
}

function isPlaceholder(column: PlaceholderColumn, row: number): boolean {
  if (column instanceof BytesColumn) return isText(column, row);
  const start = column.offsets[row]!;
  const count = column.offsets[row + 1]! - start;
  if (column instanceof MapColumn)
    return (
      count === 1 &&
      isText(column.key as BytesColumn, start) &&
      isText(column.value as BytesColumn, start)
    );
  const { element } = column;
  if (element instanceof BytesColumn) return count === 1 && isText(element, start);
  return count === placeholder.length && areItsBytes(element as Int32Column | Int64Column, start);
}

function isText({ offsets, data }: BytesColumn, row: number): boolean {
  const start = offsets[row]!;
  if (offsets[row + 1]! - start !== placeholder.length) return false;
  for (let i = 0; i < placeholder.length; i++) if (data[start + i] !== placeholder[i]) return false;
  return true;
}

/** Arrays of numbers have the text's bytes for elements. */
function areItsBytes(element: Int32Column | Int64Column, start: number): boolean {
  for (let i = 0; i < placeholder.length; i++) {
    if (!element.isValid(start + i)) return false;
    const value =
      element instanceof Int32Column
        ? element.values[start + i]!
        : element.halves[2 * (start + i) + 1] === 0
          ? element.halves[2 * (start + i)]!
          : -1;
    if (value !== placeholder[i]) return false;
  }
  return true;
}
