// Fetch (1): a long poll over many partitions. v7 fetch sessions (KIP-227), v9 leader epochs
// (KIP-320), v11 racks (KIP-392), v12 flexible with diverging epochs, v13 topic ids, v15 replica
// state, v16 new leader's address (KIP-951), v18 the follower's high watermark.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import {
  array,
  INT64_MAX,
  int8,
  int16,
  int32,
  int64,
  records,
  string,
  struct,
  uuid,
} from '../fields.ts';

export const fetchApi = api({
  key: 1,
  name: 'Fetch',
  versions: '4-18',
  flexible: '12+',
  request: {
    clusterId: string.since(12).nullable().tag(0).default(null),
    // −1 for a consumer. From v15 on in `replicaState`.
    replicaId: int32.in('4-14').default(-1),
    replicaState: struct({
      replicaId: int32.default(-1),
      replicaEpoch: int64.default(-1),
    })
      .since(15)
      .tag(1),
    maxWaitMs: int32,
    minBytes: int32,
    // A wish: the first batch of the first non-empty partition is returned whole even if larger.
    maxBytes: int32.default(0x7fffffff),
    isolationLevel: int8.default(0),
    // 0 starts or declines a session, by epoch.
    sessionId: int32.since(7).default(0),
    // −1: no session wanted; 0: a new one; else the next of the session.
    sessionEpoch: int32.since(7).default(-1),
    topics: array({
      topic: string.in('4-12'),
      topicId: uuid.since(13),
      partitions: array({
        partition: int32,
        currentLeaderEpoch: int32.since(9).default(-1),
        fetchOffset: int64,
        lastFetchedEpoch: int32.since(12).default(-1),
        logStartOffset: int64.since(5).default(-1),
        partitionMaxBytes: int32,
        replicaDirectoryId: uuid.since(17).tag(0),
        highWatermark: int64.since(18).tag(1).default(INT64_MAX),
      }),
    }),
    // Partitions to drop from the session.
    forgottenTopicsData: array({
      topic: string.in('7-12'),
      topicId: uuid.since(13),
      partitions: array(int32),
    }).since(7),
    rackId: string.since(11).default(''),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16.since(7),
    sessionId: int32.since(7).default(0),
    responses: array({
      topic: string.in('4-12'),
      topicId: uuid.since(13),
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        highWatermark: int64,
        lastStableOffset: int64.default(-1),
        logStartOffset: int64.since(5).default(-1),
        // Only for followers and KIP-320 truncation.
        divergingEpoch: struct({
          epoch: int32.default(-1),
          endOffset: int64.default(-1),
        })
          .since(12)
          .tag(0),
        currentLeader: struct({
          leaderId: int32.default(-1),
          leaderEpoch: int32.default(-1),
        })
          .since(12)
          .tag(1),
        snapshotId: struct({
          endOffset: int64.default(-1),
          epoch: int32.default(-1),
        })
          .since(12)
          .tag(2),
        // Null unless read_committed; ascending first offset.
        abortedTransactions: array({
          producerId: int64,
          firstOffset: int64,
        }).nullable(),
        // KIP-392: where the consumer should read instead.
        preferredReadReplica: int32.since(11).default(-1),
        records: records.nullable(),
      }),
    }),
    nodeEndpoints: array({
      nodeId: int32,
      host: string,
      port: int32,
      rack: string.nullable().default(null),
    })
      .since(16)
      .tag(0),
  },
});

export interface FetchRequest extends RequestOf<typeof fetchApi> {}
export interface FetchResponse extends ResponseOf<typeof fetchApi> {}
export type FetchReply = ReplyOf<typeof fetchApi>;
