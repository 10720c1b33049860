// Trouble of one table: what keeps it from its work until somebody decides or the cause is cured, as errors that its
// status shows. Not for: what happens then (table-state.ts).
import { FloeError, isFloeError } from '../base/error.ts';
import type { TableIdentifier } from '../catalog/catalog.ts';

/** Trouble of this table alone, with the sentence that its status shows. */
export function trouble(reason: string, cause?: unknown): FloeError {
  return new FloeError('invalid', reason, {
    ...(cause === undefined ? {} : { cause }),
    details: { trouble: true },
  });
}

/** Trouble of a table that was there and isn't any more: dropped, or another one in its place. */
export const lost = (reason: string) =>
  new FloeError('invalid', reason, { details: { trouble: true, lost: true } });

/** Whether it is {@link lost}'s. */
export const isLost = (caught: unknown) =>
  isFloeError(caught, 'invalid') && caught.details?.['lost'] === true;

/** How a table is named in these sentences. */
export const tableText = ({ namespace, name }: TableIdentifier) =>
  `table ${[...namespace, name].join('.')}`;
