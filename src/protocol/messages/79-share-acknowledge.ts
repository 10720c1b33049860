// ShareAcknowledge (79): accept, release, reject records (KIP-932). v2 renewal.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int8, int16, int32, int64, string, struct, uuid } from '../fields.ts';

export const shareAcknowledgeApi = api({
  key: 79,
  name: 'ShareAcknowledge',
  versions: '1-2',
  flexible: '0+',
  request: {
    groupId: string.nullable().default(null),
    memberId: string.nullable(),
    shareSessionEpoch: int32,
    isRenewAck: bool.since(2).default(false),
    topics: array({
      topicId: uuid,
      partitions: array({
        partitionIndex: int32,
        acknowledgementBatches: array({
          firstOffset: int64,
          lastOffset: int64,
          acknowledgeTypes: array(int8),
        }),
      }),
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable().default(null),
    acquisitionLockTimeoutMs: int32.since(2),
    responses: array({
      topicId: uuid,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        errorMessage: string.nullable().default(null),
        currentLeader: struct({
          leaderId: int32,
          leaderEpoch: int32,
        }),
      }),
    }),
    nodeEndpoints: array({
      nodeId: int32,
      host: string,
      port: int32,
      rack: string.nullable().default(null),
    }),
  },
});

export interface ShareAcknowledgeRequest extends RequestOf<typeof shareAcknowledgeApi> {}
export interface ShareAcknowledgeResponse extends ResponseOf<typeof shareAcknowledgeApi> {}
export type ShareAcknowledgeReply = ReplyOf<typeof shareAcknowledgeApi>;
