// What lanes ask the coordinator of their table for, as text in the metadata store: columns, schemas, a table of dead
// letters, or an end of the work because a record can't be a row and the config allows no dead letter.
import { FloeError } from '../base/error.ts';
import type { JobNeeds } from './job.ts';

export type LaneAsk =
  | { readonly kind: 'needs'; readonly needs: JobNeeds }
  /** Why the table is to be suspended. */
  | { readonly kind: 'trouble'; readonly reason: string };

/** Larger asks are refused: a thousand columns of a few hundred bytes fit many times over. */
const MAX_ASK_BYTES = 4 * 2 ** 20;

/** @throws FloeError `exhausted` past 4 MiB. */
export function formatAsk(ask: LaneAsk): string {
  const text = JSON.stringify(ask);
  if (text.length <= MAX_ASK_BYTES) return text;
  throw new FloeError(
    'exhausted',
    `records need ${text.length} bytes of new columns at once, the limit is ${MAX_ASK_BYTES}`,
  );
}

/** @throws FloeError `corrupt` when the text isn't one of {@link formatAsk}. */
export function parseAsk(payload: string): LaneAsk {
  try {
    const parsed = JSON.parse(payload) as LaneAsk;
    if (parsed.kind === 'needs' || parsed.kind === 'trouble') return parsed;
  } catch (caught) {
    throw new FloeError('corrupt', 'a lane asked for something unreadable', { cause: caught });
  }
  throw new FloeError('corrupt', 'a lane asked for something unknown: nodes of other releases?');
}
