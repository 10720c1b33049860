// DescribeTopicPartitions (75): Metadata in pages (KIP-966).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, string, struct, uuid } from '../fields.ts';

export const describeTopicPartitionsApi = api({
  key: 75,
  name: 'DescribeTopicPartitions',
  versions: '0',
  flexible: '0+',
  request: {
    topics: array({
      name: string,
    }),
    responsePartitionLimit: int32.default(2000),
    // Where the last page ended; null for the first.
    cursor: struct({
      topicName: string,
      partitionIndex: int32,
    })
      .nullable()
      .default(null),
  },
  response: {
    throttleTimeMs: int32.default(0),
    topics: array({
      errorCode: int16,
      name: string.nullable(),
      topicId: uuid,
      isInternal: bool.default(false),
      partitions: array({
        errorCode: int16,
        partitionIndex: int32,
        leaderId: int32,
        leaderEpoch: int32.default(-1),
        replicaNodes: array(int32),
        isrNodes: array(int32),
        eligibleLeaderReplicas: array(int32).nullable().default(null),
        lastKnownElr: array(int32).nullable().default(null),
        offlineReplicas: array(int32),
      }),
      topicAuthorizedOperations: int32.default(-2147483648),
    }),
    // Null on the last page.
    nextCursor: struct({
      topicName: string,
      partitionIndex: int32,
    })
      .nullable()
      .default(null),
  },
});

export interface DescribeTopicPartitionsRequest
  extends RequestOf<typeof describeTopicPartitionsApi> {}
export interface DescribeTopicPartitionsResponse
  extends ResponseOf<typeof describeTopicPartitionsApi> {}
export type DescribeTopicPartitionsReply = ReplyOf<typeof describeTopicPartitionsApi>;
