// DescribeShareGroupOffsets (90): start offsets of a share group. v1 lag.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string, uuid } from '../fields.ts';

export const describeShareGroupOffsetsApi = api({
  key: 90,
  name: 'DescribeShareGroupOffsets',
  versions: '0-1',
  flexible: '0+',
  request: {
    groups: array({
      groupId: string,
      topics: array({
        topicName: string,
        partitions: array(int32),
      }).nullable(),
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    groups: array({
      groupId: string,
      topics: array({
        topicName: string,
        topicId: uuid,
        partitions: array({
          partitionIndex: int32,
          startOffset: int64,
          leaderEpoch: int32,
          lag: int64.since(1).default(-1),
          errorCode: int16,
          errorMessage: string.nullable().default(null),
        }),
      }),
      errorCode: int16,
      errorMessage: string.nullable().default(null),
    }),
  },
});

export interface DescribeShareGroupOffsetsRequest
  extends RequestOf<typeof describeShareGroupOffsetsApi> {}
export interface DescribeShareGroupOffsetsResponse
  extends ResponseOf<typeof describeShareGroupOffsetsApi> {}
export type DescribeShareGroupOffsetsReply = ReplyOf<typeof describeShareGroupOffsetsApi>;
