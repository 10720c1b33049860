// OffsetForLeaderEpoch (23): where a leader epoch ended; consumers look for truncation with it. v2
// is librdkafka's, v3 replica ids, v4 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, int64, string } from '../fields.ts';

export const offsetForLeaderEpochApi = api({
  key: 23,
  name: 'OffsetForLeaderEpoch',
  versions: '2-4',
  flexible: '4+',
  request: {
    replicaId: int32.since(3).default(-2),
    topics: array({
      topic: string,
      partitions: array({
        partition: int32,
        currentLeaderEpoch: int32.default(-1),
        leaderEpoch: int32,
      }),
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    topics: array({
      topic: string,
      partitions: array({
        errorCode: int16,
        partition: int32,
        leaderEpoch: int32.default(-1),
        endOffset: int64.default(-1),
      }),
    }),
  },
});

export interface OffsetForLeaderEpochRequest extends RequestOf<typeof offsetForLeaderEpochApi> {}
export interface OffsetForLeaderEpochResponse extends ResponseOf<typeof offsetForLeaderEpochApi> {}
export type OffsetForLeaderEpochReply = ReplyOf<typeof offsetForLeaderEpochApi>;
