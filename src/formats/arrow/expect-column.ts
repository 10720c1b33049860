// What decoders say when a table's column is of another type than their source needs: a table that wasn't evolved for it.
import { FloeError } from '../../base/error.ts';
import type { Column } from './column.ts';

/** A part of a source, for the message. */
export interface ColumnSource {
  /** Its type as its schema names it, the format before it. */
  readonly source: string;
  readonly path: string;
}

/** @throws FloeError `invalid`, always. */
export function columnMismatch(column: Column, { source, path }: ColumnSource): never {
  const type = typeof column.type === 'string' ? column.type : column.type.type;
  throw new FloeError(
    'invalid',
    `a ${type} column can't take ${source} at "${path}": evolve the table first`,
  );
}

/** The column as one of `kind`. @throws FloeError `invalid` when it is of another. */
export function expectColumn<T extends Column & { readonly kind: string }>(
  column: Column,
  kind: T['kind'],
  source: ColumnSource,
): T {
  if ((column as T).kind !== kind) columnMismatch(column, source);
  return column as T;
}
