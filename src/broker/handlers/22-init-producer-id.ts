// InitProducerId (22), versions 0–5: an identity for a producer. Without a transactional id a producer id never handed
// out before, epoch 0. With one, the id's producer, the epoch above (which fences the former holder, and aborts what
// it had open), or a new producer id where the epochs have run out.
// v3 names the caller's present identity (KIP-360): of a transactional producer it must be the latest, and a repeated
// call gets the same answer; one that is only idempotent gets a fresh id, since sequences start anew either way.
// v4 PRODUCER_FENCED; older ones are told INVALID_PRODUCER_EPOCH. An empty transactional id is INVALID_REQUEST.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type InitProducerIdRequest,
  initProducerIdApi,
} from '../../protocol/messages/22-init-producer-id.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { fencedCode } from '../transactions/codes.ts';

export const initProducerIdHandler: Handler<typeof initProducerIdApi> = {
  api: initProducerIdApi,
  versions: { min: 0, max: 5 },
  async handle(request, context) {
    const reply = await identity(request, context);
    if (reply.errorCode !== 0) context.countError(reply.errorCode);
    return reply;
  },
  failed: () => refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE),
};

async function identity(request: InitProducerIdRequest, context: RequestContext) {
  const { transactionalId, producerId, producerEpoch, transactionTimeoutMs: timeoutMs } = request;
  const { services, apiVersion } = context;
  const fault = accessFault(transactionalId, context);
  if (fault !== 0) return refusal(fault);
  if ((producerId === -1) !== (producerEpoch === -1)) return refusal(ErrorCode.INVALID_REQUEST);
  if (transactionalId === null) {
    const fresh = await services.metadata.producers.initProducerId(services.clock.now());
    return { errorCode: 0, ...fresh };
  }
  if (transactionalId === '') return refusal(ErrorCode.INVALID_REQUEST);
  const { transactions } = services;
  if (transactions === undefined) return refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
  const expected = producerId === -1 ? {} : { expected: { producerId, producerEpoch } };
  const reply = await transactions.initProducerId(transactionalId, { timeoutMs, ...expected });
  return { ...reply, errorCode: fencedCode(reply.errorCode, apiVersion >= 4) };
}

function accessFault(transactionalId: string | null, { access }: RequestContext): number {
  if (transactionalId !== null) {
    return access.allows('write', 'transactionalId', transactionalId)
      ? ErrorCode.NONE
      : ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
  }
  return access.allows('idempotentWrite', 'cluster') || access.allowsAny('write', 'topic')
    ? ErrorCode.NONE
    : ErrorCode.CLUSTER_AUTHORIZATION_FAILED;
}

function refusal(errorCode: number) {
  return { errorCode, producerId: -1, producerEpoch: -1 };
}
