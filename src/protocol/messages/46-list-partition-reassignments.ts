// ListPartitionReassignments (46): reassignments under way.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, int16, int32, string } from '../fields.ts';

export const listPartitionReassignmentsApi = api({
  key: 46,
  name: 'ListPartitionReassignments',
  versions: '0',
  flexible: '0+',
  request: {
    timeoutMs: int32.default(60000),
    topics: array({
      name: string,
      partitionIndexes: array(int32),
    })
      .nullable()
      .default(null),
  },
  response: {
    throttleTimeMs: int32.default(0),
    errorCode: int16,
    errorMessage: string.nullable(),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        replicas: array(int32),
        addingReplicas: array(int32),
        removingReplicas: array(int32),
      }),
    }),
  },
});

export interface ListPartitionReassignmentsRequest
  extends RequestOf<typeof listPartitionReassignmentsApi> {}
export interface ListPartitionReassignmentsResponse
  extends ResponseOf<typeof listPartitionReassignmentsApi> {}
export type ListPartitionReassignmentsReply = ReplyOf<typeof listPartitionReassignmentsApi>;
