// InitProducerId (22), versions 0–5: a producer id for an idempotent producer, epoch 0, never handed out twice.
// v3 asks for a higher epoch of an id held already (KIP-360): answered with a fresh id, which serves the same end,
// since sequences start anew either way.
// A transactional id is refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which every client takes as final at
// once; transactions are not served yet (skipped.ts). An empty one is INVALID_REQUEST, as in Kafka.
import { ErrorCode } from '../../protocol/errors.ts';
import { initProducerIdApi } from '../../protocol/messages/22-init-producer-id.ts';
import type { Handler } from '../handler.ts';

export const initProducerIdHandler: Handler<typeof initProducerIdApi> = {
  api: initProducerIdApi,
  versions: { min: 0, max: 5 },
  async handle({ transactionalId }, { services }) {
    if (transactionalId === '') return refusal(ErrorCode.INVALID_REQUEST);
    if (transactionalId !== null) {
      return refusal(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    }
    const identity = await services.metadata.producers.initProducerId(services.clock.now());
    return { errorCode: 0, ...identity };
  },
  failed: () => refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE),
};

function refusal(errorCode: number) {
  return { errorCode, producerId: -1, producerEpoch: -1 };
}
