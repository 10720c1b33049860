// Debezium's word for a value that the database didn't log because it didn't change (PostgreSQL's TOAST, Oracle's
// LOBs): text of its own in place of the value. The cell keeps that text, so that a table says what came; the change
// names the column, for whoever can put the old cell in its place (no one does yet: docs/cdc.md).
import type { BytesColumn } from '../../formats/arrow/byte-columns.ts';
import type { Column } from '../../formats/arrow/column.ts';
import type { RowChange } from '../change.ts';

/** Default of the connectors' `unavailable.value.placeholder`. */
export const UNAVAILABLE = '__debezium_unavailable_value';

const placeholder = new TextEncoder().encode(UNAVAILABLE);

/** True for columns that can hold the placeholder as it is. */
export function holdsPlaceholder(column: Column | undefined): column is BytesColumn {
  return column !== undefined && (column as BytesColumn).kind === 'bytes';
}

/** Notes column `fieldId` when its last value is the placeholder. */
export function noteUnavailable(column: BytesColumn, fieldId: number, change: RowChange): void {
  const { length, offsets } = column;
  if (length === 0) return;
  const start = offsets[length - 1]!;
  if (offsets[length]! - start !== placeholder.length) return;
  const { data } = column;
  for (let i = 0; i < placeholder.length; i++) if (data[start + i] !== placeholder[i]) return;
  change.unavailable.push(fieldId);
}
