// StreamsGroupDescribe (89): streams groups with tasks and topology (KIP-1071).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, int64, string, struct, uint16 } from '../fields.ts';

const keyValue = {
  key: string,
  value: string,
};

const topicInfo = {
  name: string,
  partitions: int32,
  replicationFactor: int16,
  topicConfigs: array(keyValue),
};

const endpoint = {
  host: string,
  port: uint16,
};

const taskOffset = {
  subtopologyId: string,
  partition: int32,
  offset: int64,
};

const taskIds = {
  subtopologyId: string,
  partitions: array(int32),
};

const assignment = {
  activeTasks: array(taskIds),
  standbyTasks: array(taskIds),
  warmupTasks: array(taskIds),
};

export const streamsGroupDescribeApi = api({
  key: 89,
  name: 'StreamsGroupDescribe',
  versions: '0',
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
      topology: struct({
        epoch: int32,
        subtopologies: array({
          subtopologyId: string,
          sourceTopics: array(string),
          repartitionSinkTopics: array(string),
          stateChangelogTopics: array(topicInfo),
          repartitionSourceTopics: array(topicInfo),
        })
          .nullable()
          .default(null),
      })
        .nullable()
        .default(null),
      members: array({
        memberId: string,
        memberEpoch: int32,
        instanceId: string.nullable().default(null),
        rackId: string.nullable().default(null),
        clientId: string,
        clientHost: string,
        topologyEpoch: int32,
        processId: string,
        userEndpoint: struct(endpoint).nullable().default(null),
        clientTags: array(keyValue),
        taskOffsets: array(taskOffset),
        taskEndOffsets: array(taskOffset),
        assignment: struct(assignment),
        targetAssignment: struct(assignment),
        isClassic: bool,
      }),
      authorizedOperations: int32.default(-2147483648),
    }),
  },
});

export interface StreamsGroupDescribeRequest extends RequestOf<typeof streamsGroupDescribeApi> {}
export interface StreamsGroupDescribeResponse extends ResponseOf<typeof streamsGroupDescribeApi> {}
export type StreamsGroupDescribeReply = ReplyOf<typeof streamsGroupDescribeApi>;
