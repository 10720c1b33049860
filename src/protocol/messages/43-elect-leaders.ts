// ElectLeaders (43): preferred or unclean election; leaderless partitions have none to elect. v1
// election type, v2 flexible.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int8, int16, int32, string } from '../fields.ts';

export const electLeadersApi = api({
  key: 43,
  name: 'ElectLeaders',
  versions: '0-2',
  flexible: '2+',
  request: {
    electionType: int8.since(1),
    topicPartitions: array({
      topic: string,
      partitions: array(int32),
    }).nullable(),
    timeoutMs: int32.default(60000),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16.since(1),
    replicaElectionResults: array({
      topic: string,
      partitionResult: array({
        partitionId: int32,
        errorCode: int16,
        errorMessage: string.nullable(),
      }),
    }),
  },
});

export interface ElectLeadersRequest extends RequestOf<typeof electLeadersApi> {}
export interface ElectLeadersResponse extends ResponseOf<typeof electLeadersApi> {}
export type ElectLeadersReply = ReplyOf<typeof electLeadersApi>;
