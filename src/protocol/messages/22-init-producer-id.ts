// InitProducerId (22): an id and epoch for an idempotent or transactional producer. v2 flexible, v3
// the caller's own id and epoch to bump (KIP-360), v5 TRANSACTION_ABORTABLE (KIP-890). (v6,
// two-phase commit, is unstable in Kafka and not offered.)
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { int16, int32, int64, string } from '../fields.ts';

export const initProducerIdApi = api({
  key: 22,
  name: 'InitProducerId',
  versions: '0-5',
  flexible: '2+',
  request: {
    // Null for a producer that is only idempotent.
    transactionalId: string.nullable(),
    transactionTimeoutMs: int32,
    producerId: int64.since(3).default(-1),
    producerEpoch: int16.since(3).default(-1),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    producerId: int64.default(-1),
    producerEpoch: int16,
  },
});

export interface InitProducerIdRequest extends RequestOf<typeof initProducerIdApi> {}
export interface InitProducerIdResponse extends ResponseOf<typeof initProducerIdApi> {}
export type InitProducerIdReply = ReplyOf<typeof initProducerIdApi>;
