// AddOffsetsToTxn (25), versions 0–4: announces a group whose offsets TxnOffsetCommit will stage in the transaction,
// which begins if need be. v2 PRODUCER_FENCED (INVALID_PRODUCER_EPOCH before), v3 flexible, v4 TRANSACTION_ABORTABLE.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type AddOffsetsToTxnRequest,
  addOffsetsToTxnApi,
} from '../../protocol/messages/25-add-offsets-to-txn.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { fencedCode } from '../transactions/codes.ts';
import type { TransactionCoordinator } from '../transactions/coordinator.ts';

export function addOffsetsToTxnHandler(
  transactions: TransactionCoordinator,
): Handler<typeof addOffsetsToTxnApi> {
  return {
    api: addOffsetsToTxnApi,
    versions: { min: 0, max: 4 },
    async handle(request, context) {
      const { transactionalId, groupId } = request;
      const code =
        accessFault(request, context) ||
        (await transactions.addOffsets(transactionalId, request, groupId));
      const errorCode = fencedCode(code, context.apiVersion >= 2);
      if (errorCode !== 0) context.countError(errorCode);
      return { errorCode };
    },
    failed: () => ({ errorCode: ErrorCode.COORDINATOR_NOT_AVAILABLE }),
  };
}

function accessFault(
  { transactionalId, groupId }: AddOffsetsToTxnRequest,
  { access }: RequestContext,
): number {
  if (!access.allows('write', 'transactionalId', transactionalId))
    return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
  return access.allows('read', 'group', groupId)
    ? ErrorCode.NONE
    : ErrorCode.GROUP_AUTHORIZATION_FAILED;
}
