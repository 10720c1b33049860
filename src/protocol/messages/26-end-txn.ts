// EndTxn (26): commits or aborts. v3 flexible, v4 TRANSACTION_ABORTABLE, v5 answers the bumped
// epoch (KIP-890, transactions v2).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { bool, int16, int32, int64, string } from '../fields.ts';

export const endTxnApi = api({
  key: 26,
  name: 'EndTxn',
  versions: '0-5',
  flexible: '3+',
  request: {
    transactionalId: string,
    producerId: int64,
    producerEpoch: int16,
    committed: bool,
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    producerId: int64.since(5).default(-1),
    producerEpoch: int16.since(5).default(-1),
  },
});

export interface EndTxnRequest extends RequestOf<typeof endTxnApi> {}
export interface EndTxnResponse extends ResponseOf<typeof endTxnApi> {}
export type EndTxnReply = ReplyOf<typeof endTxnApi>;
