// EndTxn (26), versions 0–5: commits or aborts, and answers once it is done: markers written, offsets applied.
// v2 PRODUCER_FENCED (INVALID_PRODUCER_EPOCH before), v3 flexible, v4 TRANSACTION_ABORTABLE. v5 (KIP-890) answers the
// identity to go on with; the epoch tells a repeated request from a new one, and an abort needs no transaction.
import { ErrorCode } from '../../protocol/errors.ts';
import { endTxnApi } from '../../protocol/messages/26-end-txn.ts';
import type { Handler } from '../handler.ts';
import { fencedCode } from '../transactions/codes.ts';
import type { TransactionCoordinator } from '../transactions/coordinator.ts';

export function endTxnHandler(transactions: TransactionCoordinator): Handler<typeof endTxnApi> {
  return {
    api: endTxnApi,
    versions: { min: 0, max: 5 },
    async handle(request, context) {
      const { transactionalId, committed } = request;
      if (!context.access.allows('write', 'transactionalId', transactionalId)) {
        context.countError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
        return refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
      }
      const bump = context.apiVersion >= 5;
      const reply = await transactions.end(transactionalId, request, { committed, bump });
      if (reply.errorCode === 0) return reply;
      const errorCode = fencedCode(reply.errorCode, context.apiVersion >= 2);
      context.countError(errorCode);
      return refusal(errorCode);
    },
    failed: () => refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE),
  };
}

function refusal(errorCode: number) {
  return { errorCode, producerId: -1, producerEpoch: -1 };
}
