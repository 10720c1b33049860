// ShareFetch (78): records acquired for a share group, acknowledgements on the way (KIP-932). v2
// renewal and record limits.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import {
  array,
  bool,
  int8,
  int16,
  int32,
  int64,
  records,
  string,
  struct,
  uuid,
} from '../fields.ts';

export const shareFetchApi = api({
  key: 78,
  name: 'ShareFetch',
  versions: '1-2',
  flexible: '0+',
  request: {
    groupId: string.nullable().default(null),
    memberId: string.nullable(),
    shareSessionEpoch: int32,
    maxWaitMs: int32,
    minBytes: int32,
    maxBytes: int32.default(0x7fffffff),
    maxRecords: int32,
    batchSize: int32,
    shareAcquireMode: int8.since(2).default(0),
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
    forgottenTopicsData: array({
      topicId: uuid,
      partitions: array(int32),
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable().default(null),
    acquisitionLockTimeoutMs: int32,
    responses: array({
      topicId: uuid,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        errorMessage: string.nullable().default(null),
        acknowledgeErrorCode: int16,
        acknowledgeErrorMessage: string.nullable().default(null),
        currentLeader: struct({
          leaderId: int32,
          leaderEpoch: int32,
        }),
        records: records.nullable('0'),
        acquiredRecords: array({
          firstOffset: int64,
          lastOffset: int64,
          deliveryCount: int16,
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

export interface ShareFetchRequest extends RequestOf<typeof shareFetchApi> {}
export interface ShareFetchResponse extends ResponseOf<typeof shareFetchApi> {}
export type ShareFetchReply = ReplyOf<typeof shareFetchApi>;
