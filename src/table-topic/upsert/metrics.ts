// The counters that upserts move.
import type { Metrics } from '../../base/metrics.ts';

/** Changes by key were committed to an upsert table. */
export function countChanges(
  metrics: Metrics,
  changes: { readonly keys: number; readonly deletedRows: number; readonly filesRead: number },
): void {
  const { keys, deletedRows, filesRead } = changes;
  metrics.count('floe_table_changed_keys_total', 'Keys changed in upsert tables', {}, keys);
  metrics.count('floe_table_deleted_rows_total', 'Rows that upserts deleted', {}, deletedRows);
  const read = 'Data files read to bring key indexes up to date';
  metrics.count('floe_table_key_index_files_read_total', read, {}, filesRead);
}
