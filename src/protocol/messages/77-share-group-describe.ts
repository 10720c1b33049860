// ShareGroupDescribe (77): share groups and their members (KIP-932).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, string, struct, uuid } from '../fields.ts';

const topicPartitions = {
  topicId: uuid,
  topicName: string,
  partitions: array(int32),
};

const assignment = {
  topicPartitions: array(topicPartitions),
};

export const shareGroupDescribeApi = api({
  key: 77,
  name: 'ShareGroupDescribe',
  versions: '1',
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
        rackId: string.nullable().default(null),
        memberEpoch: int32,
        clientId: string,
        clientHost: string,
        subscribedTopicNames: array(string),
        assignment: struct(assignment),
      }),
      authorizedOperations: int32.default(-2147483648),
    }),
  },
});

export interface ShareGroupDescribeRequest extends RequestOf<typeof shareGroupDescribeApi> {}
export interface ShareGroupDescribeResponse extends ResponseOf<typeof shareGroupDescribeApi> {}
export type ShareGroupDescribeReply = ReplyOf<typeof shareGroupDescribeApi>;
