// StreamsGroupHeartbeat (88): membership of a Kafka Streams client with its topology (KIP-1071).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, int64, string, struct, uint16 } from '../fields.ts';

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

const taskIds = {
  subtopologyId: string,
  partitions: array(int32),
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

const status = {
  statusCode: int8,
  statusDetail: string,
};

const topicPartition = {
  topic: string,
  partitions: array(int32),
};

export const streamsGroupHeartbeatApi = api({
  key: 88,
  name: 'StreamsGroupHeartbeat',
  versions: '0',
  flexible: '0+',
  request: {
    groupId: string,
    memberId: string,
    memberEpoch: int32,
    endpointInformationEpoch: int32,
    instanceId: string.nullable().default(null),
    rackId: string.nullable().default(null),
    rebalanceTimeoutMs: int32.default(-1),
    topology: struct({
      epoch: int32,
      subtopologies: array({
        subtopologyId: string,
        sourceTopics: array(string),
        sourceTopicRegex: array(string),
        stateChangelogTopics: array(topicInfo),
        repartitionSinkTopics: array(string),
        repartitionSourceTopics: array(topicInfo),
        copartitionGroups: array({
          sourceTopics: array(int16),
          sourceTopicRegex: array(int16),
          repartitionSourceTopics: array(int16),
        }),
      }),
    })
      .nullable()
      .default(null),
    activeTasks: array(taskIds).nullable().default(null),
    standbyTasks: array(taskIds).nullable().default(null),
    warmupTasks: array(taskIds).nullable().default(null),
    processId: string.nullable().default(null),
    userEndpoint: struct(endpoint).nullable().default(null),
    clientTags: array(keyValue).nullable().default(null),
    taskOffsets: array(taskOffset).nullable().default(null),
    taskEndOffsets: array(taskOffset).nullable().default(null),
    shutdownApplication: bool.default(false),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable().default(null),
    memberId: string,
    memberEpoch: int32,
    heartbeatIntervalMs: int32,
    acceptableRecoveryLag: int32,
    taskOffsetIntervalMs: int32,
    status: array(status).nullable(),
    activeTasks: array(taskIds).nullable().default(null),
    standbyTasks: array(taskIds).nullable().default(null),
    warmupTasks: array(taskIds).nullable().default(null),
    endpointInformationEpoch: int32,
    partitionsByUserEndpoint: array({
      userEndpoint: struct(endpoint),
      activePartitions: array(topicPartition),
      standbyPartitions: array(topicPartition),
    })
      .nullable()
      .default(null),
  },
});

export interface StreamsGroupHeartbeatRequest extends RequestOf<typeof streamsGroupHeartbeatApi> {}
export interface StreamsGroupHeartbeatResponse
  extends ResponseOf<typeof streamsGroupHeartbeatApi> {}
export type StreamsGroupHeartbeatReply = ReplyOf<typeof streamsGroupHeartbeatApi>;
