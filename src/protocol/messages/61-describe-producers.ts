// DescribeProducers (61): producer states of partitions, to find hanging transactions (KIP-664).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string } from '../fields.ts';

export const describeProducersApi = api({
  key: 61,
  name: 'DescribeProducers',
  versions: '0',
  flexible: '0+',
  request: {
    topics: array({
      name: string,
      partitionIndexes: array(int32),
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        errorMessage: string.nullable().default(null),
        activeProducers: array({
          producerId: int64,
          producerEpoch: int32,
          lastSequence: int32.default(-1),
          lastTimestamp: int64.default(-1),
          coordinatorEpoch: int32,
          currentTxnStartOffset: int64.default(-1),
        }),
      }),
    }),
  },
});

export interface DescribeProducersRequest extends RequestOf<typeof describeProducersApi> {}
export interface DescribeProducersResponse extends ResponseOf<typeof describeProducersApi> {}
export type DescribeProducersReply = ReplyOf<typeof describeProducersApi>;
