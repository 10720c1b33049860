// Which commit of the log an offset came by (rule K1), as steps: few numbers for many records.
import type { CommitSteps } from '../../storage/log/log.ts';

/** The number of the commit that brought `offset`; 0 when the log doesn't know any more. */
export function commitAt(steps: CommitSteps | undefined, offset: number): number {
  if (steps === undefined) return 0;
  const { offsets, commits } = steps;
  let low = 0;
  let high = offsets.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (offsets[middle]! <= offset) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : commits[low - 1]!;
}
