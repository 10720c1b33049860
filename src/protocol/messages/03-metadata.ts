// Metadata (3): brokers, topics, partitions and their leaders. v0: an empty list means all topics;
// from v1 null means all and empty none. v4 may auto-create, v8 authorised operations, v9 flexible,
// v10 topic ids (KIP-516), v12 look-up by id (null name), v13 a top-level error (KIP-1102).
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, string, uuid } from '../fields.ts';

export const metadataApi = api({
  key: 3,
  name: 'Metadata',
  versions: '0-13',
  flexible: '9+',
  request: {
    // Null: all topics. In v0 an empty list says that.
    topics: array({
      // Zero unless the topic is asked for by id (v12).
      topicId: uuid.since(10),
      name: string.nullable('10+'),
    }).nullable('1+'),
    allowAutoTopicCreation: bool.since(4).default(true),
    includeClusterAuthorizedOperations: bool.in('8-10'),
    includeTopicAuthorizedOperations: bool.since(8),
  },
  response: {
    throttleTimeMs: int32.since(3).default(0),
    brokers: array({
      nodeId: int32,
      host: string,
      port: int32,
      rack: string.since(1).nullable().default(null),
    }),
    clusterId: string.since(2).nullable().default(null),
    controllerId: int32.since(1).default(-1),
    topics: array({
      errorCode: int16,
      // Null only if an unknown id was asked for (v12).
      name: string.nullable('12+'),
      topicId: uuid.since(10),
      isInternal: bool.since(1).default(false),
      partitions: array({
        errorCode: int16,
        partitionIndex: int32,
        leaderId: int32,
        leaderEpoch: int32.since(7).default(-1),
        replicaNodes: array(int32),
        isrNodes: array(int32),
        offlineReplicas: array(int32).since(5),
      }),
      // Bit per ACL operation; the minimum int32 when not asked for.
      topicAuthorizedOperations: int32.since(8).default(-2147483648),
    }),
    clusterAuthorizedOperations: int32.in('8-10').default(-2147483648),
    errorCode: int16.since(13),
  },
});

export interface MetadataRequest extends RequestOf<typeof metadataApi> {}
export interface MetadataResponse extends ResponseOf<typeof metadataApi> {}
export type MetadataReply = ReplyOf<typeof metadataApi>;
