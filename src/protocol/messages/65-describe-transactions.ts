// DescribeTransactions (65): state of transactional ids (KIP-664).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string } from '../fields.ts';

export const describeTransactionsApi = api({
  key: 65,
  name: 'DescribeTransactions',
  versions: '0',
  flexible: '0+',
  request: {
    transactionalIds: array(string),
  },
  response: {
    throttleTimeMs: int32.default(0),
    transactionStates: array({
      errorCode: int16,
      transactionalId: string,
      transactionState: string,
      transactionTimeoutMs: int32,
      transactionStartTimeMs: int64,
      producerId: int64,
      producerEpoch: int16,
      topics: array({
        topic: string,
        partitions: array(int32),
      }),
    }),
  },
});

export interface DescribeTransactionsRequest extends RequestOf<typeof describeTransactionsApi> {}
export interface DescribeTransactionsResponse extends ResponseOf<typeof describeTransactionsApi> {}
export type DescribeTransactionsReply = ReplyOf<typeof describeTransactionsApi>;
