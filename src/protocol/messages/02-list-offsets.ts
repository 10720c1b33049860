// ListOffsets (2): offsets by time. Special times: −1 latest, −2 earliest, −3 of the largest
// timestamp (v7, KIP-734), −4 earliest local and −5 latest tiered (v8 and v9, KIP-405), −6 earliest
// pending upload (v11). v2 isolation level, v4 leader epochs, v6 flexible, v10 a timeout.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int8, int16, int32, int64, string } from '../fields.ts';

export const listOffsetsApi = api({
  key: 2,
  name: 'ListOffsets',
  versions: '1-11',
  flexible: '6+',
  request: {
    // −1 for a consumer.
    replicaId: int32,
    isolationLevel: int8.since(2),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        currentLeaderEpoch: int32.since(4).default(-1),
        timestamp: int64,
      }),
    }),
    timeoutMs: int32.since(10),
  },
  response: {
    throttleTimeMs: int32.since(2).default(0),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        // −1 when there is no such record.
        timestamp: int64.default(-1),
        offset: int64.default(-1),
        leaderEpoch: int32.since(4).default(-1),
      }),
    }),
  },
});

export interface ListOffsetsRequest extends RequestOf<typeof listOffsetsApi> {}
export interface ListOffsetsResponse extends ResponseOf<typeof listOffsetsApi> {}
export type ListOffsetsReply = ReplyOf<typeof listOffsetsApi>;
