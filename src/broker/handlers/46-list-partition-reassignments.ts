// ListPartitionReassignments (46), version 0: none is ever under way, since partitions have no replicas to move.
import { ErrorCode } from '../../protocol/errors.ts';
import { listPartitionReassignmentsApi } from '../../protocol/messages/46-list-partition-reassignments.ts';
import type { Handler } from '../handler.ts';

export const listPartitionReassignmentsHandler: Handler<typeof listPartitionReassignmentsApi> = {
  api: listPartitionReassignmentsApi,
  versions: { min: 0, max: 0 },
  handle(_request, context) {
    if (context.access.allows('describe', 'cluster')) {
      return { errorCode: 0, errorMessage: null, topics: [] };
    }
    const errorCode = ErrorCode.CLUSTER_AUTHORIZATION_FAILED;
    context.countError(errorCode);
    return { errorCode, errorMessage: 'Describe on the cluster is not allowed', topics: [] };
  },
};
