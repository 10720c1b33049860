// AddOffsetsToTxn (25): a group's offsets will be committed in the transaction. v3 flexible, v4
// TRANSACTION_ABORTABLE (KIP-890).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { int16, int32, int64, string } from '../fields.ts';

export const addOffsetsToTxnApi = api({
  key: 25,
  name: 'AddOffsetsToTxn',
  versions: '0-4',
  flexible: '3+',
  request: {
    transactionalId: string,
    producerId: int64,
    producerEpoch: int16,
    groupId: string,
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
  },
});

export interface AddOffsetsToTxnRequest extends RequestOf<typeof addOffsetsToTxnApi> {}
export interface AddOffsetsToTxnResponse extends ResponseOf<typeof addOffsetsToTxnApi> {}
export type AddOffsetsToTxnReply = ReplyOf<typeof addOffsetsToTxnApi>;
