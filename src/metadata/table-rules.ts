// What the stores of table topics decide alike (tables.ts): what makes two stages one, what a stage has lost, and the
// errors of the contract. Pure. Not for: rows and transactions.
import { FloeError } from '../base/error.ts';
import type { Intent, StagedRange, TableRecord } from './tables.ts';

/** Before every intent, in the order in which they are listed. */
export const FIRST_INTENT: Pick<Intent, 'createdMs' | 'prefix'> = { createdMs: -1, prefix: '' };

/** Equal for stages of exactly the same ranges. */
export function rangesKey(ranges: readonly StagedRange[]): string {
  return ranges
    .map(({ partition, start, end }) => `${partition}:${start}-${end}`)
    .toSorted()
    .join(' ');
}

/** Offsets that retention took before they were staged. */
export function lostOffsets(ranges: readonly StagedRange[]): number {
  let lost = 0;
  for (const { gaps } of ranges) {
    for (const gap of gaps) if (gap.reason === 'retention') lost += gap.to - gap.from;
  }
  return lost;
}

/** @returns the error of a topic that is no table topic. */
export function missingTable(topicId: string): FloeError {
  return new FloeError('not-found', `topic ${topicId} has no table`);
}

/** @returns the error of files that the sweep has taken. */
export function sweptFiles(prefix: string): FloeError {
  return new FloeError('conflict', `M2: files ${prefix}* are being deleted as abandoned ones`);
}

/** T6: whoever holds an older epoch has been replaced. @throws FloeError `conflict`. */
export function assertEpoch(record: TableRecord, epoch: number): void {
  if (record.epoch === epoch) return;
  throw new FloeError(
    'conflict',
    `T6: table of topic "${record.topicName}" has a coordinator of epoch ${record.epoch}, this one has ${epoch}`,
  );
}
