// What a table is like, as one text: nodes that read and write for it compare theirs with the coordinator's.
import type { TableBinding } from './binding.ts';

/** Of the table as the binding knows it: its identity, columns and layout. */
export function tableVersion({ table }: Pick<TableBinding, 'table'>): string {
  const metadata = table?.metadata;
  return [
    metadata?.['table-uuid'],
    metadata?.['current-schema-id'],
    metadata?.['default-spec-id'],
    metadata?.['default-sort-order-id'],
  ].join('/');
}
