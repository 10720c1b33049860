// AlterPartitionReassignments (45). v1 may forbid a change of the replication factor.
import { api, type ReplyOf, type RequestOf, type ResponseOf } from '../api.ts';
import { array, bool, int16, int32, string } from '../fields.ts';

export const alterPartitionReassignmentsApi = api({
  key: 45,
  name: 'AlterPartitionReassignments',
  versions: '0-1',
  flexible: '0+',
  request: {
    timeoutMs: int32.default(60000),
    allowReplicationFactorChange: bool.since(1).default(true),
    topics: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        replicas: array(int32).nullable().default(null),
      }),
    }),
  },
  response: {
    throttleTimeMs: int32.default(0),
    allowReplicationFactorChange: bool.since(1).default(true),
    errorCode: int16,
    errorMessage: string.nullable(),
    responses: array({
      name: string,
      partitions: array({
        partitionIndex: int32,
        errorCode: int16,
        errorMessage: string.nullable(),
      }),
    }),
  },
});

export interface AlterPartitionReassignmentsRequest
  extends RequestOf<typeof alterPartitionReassignmentsApi> {}
export interface AlterPartitionReassignmentsResponse
  extends ResponseOf<typeof alterPartitionReassignmentsApi> {}
export type AlterPartitionReassignmentsReply = ReplyOf<typeof alterPartitionReassignmentsApi>;
