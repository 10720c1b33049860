// Stages of table work that ride with batches of a flush: they enter in the commit's transaction, or their batches are
// refused. Not for: what a stage is (tables.ts), the commit itself (log.ts).
import { ErrorCode } from '../../protocol/errors.ts';
import type { FlushCommit, RiderOutcome, StageRider } from '../log.ts';
import type { StageOutcome, StageRequest } from '../tables.ts';

/** Where they enter: the tables' store. */
export interface StageEntrance {
  stageNow(request: StageRequest): StageOutcome;
  /** Where things stand, for a rider whose flush was committed without it. */
  refusedNow(topicId: string): StageOutcome;
}

const UNPLACED: RiderOutcome = { kind: 'unplaced' };

/** Lets a flush's riders enter, in the commit's transaction. @returns error codes for the batches of those that may not. */
export function admitRiders(
  stages: StageEntrance,
  { batches, riders }: Pick<FlushCommit, 'batches' | 'riders'>,
  exists: (partitionId: number) => boolean,
): { readonly refusals: Int16Array; readonly outcomes: readonly RiderOutcome[] } | undefined {
  if (riders === undefined) return undefined;
  const refusals = new Int16Array(batches.count);
  const outcomes = riders.map((rider): RiderOutcome => {
    const end = rider.firstBatch + rider.batchCount;
    const placed = batches.partitionIds.subarray(rider.firstBatch, end).every(exists);
    const outcome = placed ? stages.stageNow(rider.stage) : UNPLACED;
    if (outcome.kind !== 'staged') {
      refusals.fill(ErrorCode.OPERATION_NOT_ATTEMPTED, rider.firstBatch, end);
    }
    return outcome;
  });
  return { refusals, outcomes };
}

/** Of a flush committed before: a rider entered exactly if its batches did. */
export function recallRiders(
  stages: StageEntrance,
  riders: readonly StageRider[],
  errorCodes: Int16Array,
): RiderOutcome[] {
  return riders.map(({ stage, firstBatch }) =>
    errorCodes[firstBatch] === 0
      ? { kind: 'duplicate', stageId: stage.stageId }
      : stages.refusedNow(stage.topicId),
  );
}
