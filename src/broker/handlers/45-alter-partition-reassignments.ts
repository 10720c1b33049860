// AlterPartitionReassignments (45), versions 0–1: a partition has no replicas to move. Assigning it to this node changes
// nothing and succeeds, cancelling finds nothing under way, other assignments are refused with Kafka's codes.
// v1 may forbid another replication factor, which never changes here.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type AlterPartitionReassignmentsRequest,
  alterPartitionReassignmentsApi,
} from '../../protocol/messages/45-alter-partition-reassignments.ts';
import type { Handler, RequestContext } from '../handler.ts';

type Asked = AlterPartitionReassignmentsRequest['topics'][number]['partitions'][number];

interface Outcome {
  readonly errorCode: number;
  readonly errorMessage: string | null;
}

const DONE: Outcome = { errorCode: 0, errorMessage: null };

export const alterPartitionReassignmentsHandler: Handler<typeof alterPartitionReassignmentsApi> = {
  api: alterPartitionReassignmentsApi,
  versions: { min: 0, max: 1 },
  handle({ topics, allowReplicationFactorChange }, context) {
    if (!context.access.allows('alter', 'cluster')) {
      const errorCode = ErrorCode.CLUSTER_AUTHORIZATION_FAILED;
      context.countError(errorCode);
      const errorMessage = 'Alter on the cluster is not allowed';
      return { errorCode, errorMessage, responses: [] };
    }
    const responses = topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map((asked) => {
        const outcome = reassign(context, name, asked);
        if (outcome.errorCode !== 0) context.countError(outcome.errorCode);
        return { partitionIndex: asked.partitionIndex, ...outcome };
      }),
    }));
    return { allowReplicationFactorChange, ...DONE, responses };
  },
};

function reassign(
  { services }: RequestContext,
  name: string,
  { partitionIndex, replicas }: Asked,
): Outcome {
  const refuse = (errorCode: number, errorMessage: string) => ({ errorCode, errorMessage });
  const topic = services.directory.byName(name);
  if (topic?.partitions[partitionIndex] === undefined) {
    const what = topic === undefined ? `topic "${name}"` : `partition ${name}-${partitionIndex}`;
    return refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, `there is no ${what}`);
  }
  if (replicas === null) {
    return refuse(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, 'no reassignment is under way');
  }
  const { nodeId } = services.cluster;
  const invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT;
  if (replicas.length === 0) return refuse(invalid, 'the list of replicas is empty');
  const strange = replicas.find((id) => id !== nodeId);
  if (strange !== undefined) {
    return refuse(invalid, `there is no broker ${strange}: partitions belong to ${nodeId}`);
  }
  return replicas.length > 1 ? refuse(invalid, `broker ${nodeId} is named twice`) : DONE;
}
