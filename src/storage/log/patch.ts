// Writes base offsets and leader epoch into committed batches in the slab: once, after the commit and after nobody
// writes the slab to storage any more, so that fetches send slices as they are. Both fields lie outside the CRC.
import type { BatchColumns } from '../../metadata/batch-columns.ts';
import { patchBaseOffset, patchLeaderEpoch } from '../../protocol/record-batch.ts';

/** Floe has no leaders; one constant epoch serves every client. */
export const LEADER_EPOCH = 0;

export interface Accepted {
  readonly errorCodes: Int16Array;
  readonly duplicates: Uint8Array;
  readonly baseOffsets: Float64Array;
}

export function patchAccepted(slab: Uint8Array, batches: BatchColumns, outcome: Accepted): void {
  const { errorCodes, duplicates, baseOffsets } = outcome;
  for (let n = 0; n < batches.count; n += 1) {
    if (errorCodes[n] !== 0 || duplicates[n] !== 0) continue;
    const at = batches.slabOffsets[n]!;
    patchBaseOffset(slab, at, baseOffsets[n]!);
    patchLeaderEpoch(slab, at, LEADER_EPOCH);
  }
}
