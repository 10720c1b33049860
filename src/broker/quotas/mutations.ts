// The quota of partitions created and deleted (KIP-599). Versions of CreateTopics, CreatePartitions and DeleteTopics that
// know the error are refused while earlier changes are not paid off; older ones are done and the client has to wait.
import { ErrorCode } from '../../protocol/errors.ts';
import type { RequestContext } from '../handler.ts';
import type { QuotaFault } from './entities.ts';

/** Charges a change of `partitions` partitions; the refusal when it may not be made now. */
export function chargeMutations(
  context: RequestContext,
  partitions: number,
  /** The first version whose clients understand the refusal. */
  strictFrom: number,
): QuotaFault | undefined {
  const bucket = context.limits?.mutations;
  if (bucket === undefined) return undefined;
  const nowMs = context.services.clock.monotonic();
  if (context.apiVersion < strictFrom) {
    context.throttle(bucket.charge(partitions, nowMs));
    return undefined;
  }
  const waitMs = bucket.throttleMs(nowMs);
  if (waitMs === 0) {
    bucket.charge(partitions, nowMs);
    return undefined;
  }
  context.throttle(waitMs);
  const errorMessage = `controller_mutation_rate is used up: try again in ${waitMs} ms`;
  return { errorCode: ErrorCode.THROTTLING_QUOTA_EXCEEDED, errorMessage };
}
