// Stages of table work that ride with batches of a flush: they enter in the commit's transaction, or their batches are
// refused. Not for: what a stage is (tables.ts), the commit itself (log-commit.ts).
import { ErrorCode } from '../../protocol/errors.ts';
import type { FlushCommit, RiderOutcome, StageRider } from '../log.ts';
import type { StageOutcome, StageRequest } from '../tables.ts';
import type { Transaction } from './database.ts';

/** Where they enter: the tables' store. It locks rows of tables only, so it may be asked under the log's locks. */
export interface StageEntrance {
  stageIn(tx: Transaction, request: StageRequest): Promise<StageOutcome>;
  /** Where things stand, for a rider whose flush was committed without it. */
  refusedIn(tx: Transaction, topicId: string): Promise<StageOutcome>;
}

const UNPLACED: RiderOutcome = { kind: 'unplaced' };

/** Lets a flush's riders enter, in the commit's transaction. @returns error codes for the batches of those that may not. */
export async function admitRiders(
  { tx, stages }: { readonly tx: Transaction; readonly stages: StageEntrance },
  { batches, riders }: Pick<FlushCommit, 'batches' | 'riders'>,
  exists: (partitionId: number) => boolean,
): Promise<
  { readonly refusals: Int16Array; readonly outcomes: readonly RiderOutcome[] } | undefined
> {
  if (riders === undefined) return undefined;
  const refusals = new Int16Array(batches.count);
  const outcomes: RiderOutcome[] = [];
  for (const rider of riders) {
    const end = rider.firstBatch + rider.batchCount;
    const placed = batches.partitionIds.subarray(rider.firstBatch, end).every(exists);
    const outcome = placed ? await stages.stageIn(tx, rider.stage) : UNPLACED;
    if (outcome.kind !== 'staged') {
      refusals.fill(ErrorCode.OPERATION_NOT_ATTEMPTED, rider.firstBatch, end);
    }
    outcomes.push(outcome);
  }
  return { refusals, outcomes };
}

/** Of a flush committed before: a rider entered exactly if its batches did. */
export async function recallRiders(
  { tx, stages }: { readonly tx: Transaction; readonly stages: StageEntrance },
  riders: readonly StageRider[],
  errorCodes: Int16Array,
): Promise<RiderOutcome[]> {
  const outcomes: RiderOutcome[] = [];
  for (const { stage, firstBatch } of riders) {
    outcomes.push(
      errorCodes[firstBatch] === 0
        ? { kind: 'duplicate', stageId: stage.stageId }
        : await stages.refusedIn(tx, stage.topicId),
    );
  }
  return outcomes;
}
