// TxnOffsetCommit (28): a group's positions as part of a transaction. v2 leader epochs, v3 flexible
// with member and generation (KIP-447), v4 TRANSACTION_ABORTABLE, v5 for transactions v2.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string } from '../fields.ts';

export const txnOffsetCommitApi = api({
  key: 28,
  name: 'TxnOffsetCommit',
  versions: '0-5',
  flexible: '3+',
  request: {
    transactionalId: string,
    groupId: string,
    producerId: int64,
    producerEpoch: int16,
    generationId: int32.since(3).default(-1),
    memberId: string.since(3).default(''),
    groupInstanceId: string.since(3).nullable().default(null),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        committedOffset: int64,
        committedLeaderEpoch: int32.since(2).default(-1),
        committedMetadata: string.nullable(),
      }),
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
      }),
    }),
  },
});

export interface TxnOffsetCommitRequest extends RequestOf<typeof txnOffsetCommitApi> {}
export interface TxnOffsetCommitResponse extends ResponseOf<typeof txnOffsetCommitApi> {}
export type TxnOffsetCommitReply = ReplyOf<typeof txnOffsetCommitApi>;
