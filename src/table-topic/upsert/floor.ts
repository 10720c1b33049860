// Up to which commit of the log every partition of a topic is committed to its table (rule K1): stamps of deleted keys
// below it are of no use, since no change that is older can come any more.
import type { Log } from '../../storage/log/log.ts';
import type { Offsets } from '../watermark.ts';
import { commitAt } from './commit-steps.ts';

/** `partitions`: ids by partition index. `offsets`: next offset to commit, by index. */
export async function committedFloor(
  log: Pick<Log, 'commitSteps' | 'lastCommitNumber' | 'watermarks'>,
  partitions: readonly number[],
  offsets: Offsets,
): Promise<number> {
  // Taken before the ends are looked at: what comes later is above it.
  let floor = log.lastCommitNumber;
  for (const [partition, id] of partitions.entries()) {
    const marks = log.watermarks(id);
    const committed = offsets.get(partition) ?? marks?.logStartOffset ?? 0;
    if (marks === undefined || committed >= marks.highWatermark) continue;
    const at = Math.max(committed, marks.logStartOffset);
    floor = Math.min(floor, commitAt(await log.commitSteps(id, at, at + 1), at) - 1);
  }
  return floor;
}
