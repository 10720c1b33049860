// ConsumerGroupHeartbeat (68): the whole life of a member of a KIP-848 group: join, subscribe,
// acknowledge, leave. What hasn't changed since the last heartbeat is null. v1 regular expressions
// resolved by the broker, member ids made by the client.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string, struct, uuid } from '../fields.ts';

const topicPartitions = {
  topicId: uuid,
  partitions: array(int32),
};

export const consumerGroupHeartbeatApi = api({
  key: 68,
  name: 'ConsumerGroupHeartbeat',
  versions: '0-1',
  flexible: '0+',
  request: {
    groupId: string,
    memberId: string,
    // 0 joins, −1 leaves, −2 leaves for a while (static member).
    memberEpoch: int32,
    instanceId: string.nullable().default(null),
    rackId: string.nullable().default(null),
    rebalanceTimeoutMs: int32.default(-1),
    subscribedTopicNames: array(string).nullable().default(null),
    subscribedTopicRegex: string.since(1).nullable().default(null),
    serverAssignor: string.nullable().default(null),
    topicPartitions: array({
      topicId: uuid,
      partitions: array(int32),
    })
      .nullable()
      .default(null),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable().default(null),
    memberId: string.nullable().default(null),
    memberEpoch: int32,
    heartbeatIntervalMs: int32,
    assignment: struct({
      topicPartitions: array(topicPartitions),
    })
      .nullable()
      .default(null),
  },
});

export interface ConsumerGroupHeartbeatRequest
  extends RequestOf<typeof consumerGroupHeartbeatApi> {}
export interface ConsumerGroupHeartbeatResponse
  extends ResponseOf<typeof consumerGroupHeartbeatApi> {}
export type ConsumerGroupHeartbeatReply = ReplyOf<typeof consumerGroupHeartbeatApi>;
