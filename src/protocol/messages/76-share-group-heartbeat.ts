// ShareGroupHeartbeat (76): membership in a share group (KIP-932).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string, struct, uuid } from '../fields.ts';

const topicPartitions = {
  topicId: uuid,
  partitions: array(int32),
};

export const shareGroupHeartbeatApi = api({
  key: 76,
  name: 'ShareGroupHeartbeat',
  versions: '1',
  flexible: '0+',
  request: {
    groupId: string,
    memberId: string,
    memberEpoch: int32,
    rackId: string.nullable().default(null),
    subscribedTopicNames: array(string).nullable().default(null),
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

export interface ShareGroupHeartbeatRequest extends RequestOf<typeof shareGroupHeartbeatApi> {}
export interface ShareGroupHeartbeatResponse extends ResponseOf<typeof shareGroupHeartbeatApi> {}
export type ShareGroupHeartbeatReply = ReplyOf<typeof shareGroupHeartbeatApi>;
