// ConsumerGroupDescribe (69): KIP-848 groups with current and target assignment. v1 member types.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, string, struct, uuid } from '../fields.ts';

const topicPartitions = {
  topicId: uuid,
  topicName: string,
  partitions: array(int32),
};

const assignment = {
  topicPartitions: array(topicPartitions),
};

export const consumerGroupDescribeApi = api({
  key: 69,
  name: 'ConsumerGroupDescribe',
  versions: '0-1',
  flexible: '0+',
  request: {
    groupIds: array(string),
    includeAuthorizedOperations: bool,
  },
  response: {
    throttleTimeMs: int32.default(0),
    groups: array({
      errorCode: int16,
      errorMessage: string.nullable().default(null),
      groupId: string,
      groupState: string,
      groupEpoch: int32,
      assignmentEpoch: int32,
      assignorName: string,
      members: array({
        memberId: string,
        instanceId: string.nullable().default(null),
        rackId: string.nullable().default(null),
        memberEpoch: int32,
        clientId: string,
        clientHost: string,
        subscribedTopicNames: array(string),
        subscribedTopicRegex: string.nullable().default(null),
        assignment: struct(assignment),
        targetAssignment: struct(assignment),
        memberType: int8.since(1).default(-1),
      }),
      authorizedOperations: int32.default(-2147483648),
    }),
  },
});

export interface ConsumerGroupDescribeRequest extends RequestOf<typeof consumerGroupDescribeApi> {}
export interface ConsumerGroupDescribeResponse
  extends ResponseOf<typeof consumerGroupDescribeApi> {}
export type ConsumerGroupDescribeReply = ReplyOf<typeof consumerGroupDescribeApi>;
