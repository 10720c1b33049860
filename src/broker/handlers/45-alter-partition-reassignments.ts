// AlterPartitionReassignments (45), versions 0–1: a partition has no replicas to move, every broker serves it. Assigning it
// to the broker that Metadata names as its leader changes nothing and succeeds, cancelling finds nothing under way, other
// assignments are refused with Kafka's codes.
// v1 may forbid another replication factor, which never changes here.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type AlterPartitionReassignmentsRequest,
  alterPartitionReassignmentsApi,
} from '../../protocol/messages/45-alter-partition-reassignments.ts';
import { rackOf } from '../client-rack.ts';
import type { Handler } from '../handler.ts';
import type { BrokerServices } from '../services.ts';

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
    const { services, connection } = context;
    const leaderOf = services.cluster.leaders(connection.listener, rackOf(context));
    const responses = topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map((asked) => {
        const outcome = reassign({ services, leaderOf }, name, asked);
        if (outcome.errorCode !== 0) context.countError(outcome.errorCode);
        return { partitionIndex: asked.partitionIndex, ...outcome };
      }),
    }));
    return { allowReplicationFactorChange, ...DONE, responses };
  },
};

interface Place {
  readonly services: BrokerServices;
  /** By partition id. */
  readonly leaderOf: (partitionId: number) => number;
}

function reassign(
  { services, leaderOf }: Place,
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
  const nodeId = leaderOf(topic.partitions[partitionIndex]!);
  const invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT;
  if (replicas.length === 0) return refuse(invalid, 'the list of replicas is empty');
  const strange = replicas.find((id) => id !== nodeId);
  if (strange !== undefined) {
    const why = `${name}-${partitionIndex} can't be assigned to broker ${strange}`;
    return refuse(invalid, `${why}: every broker serves it, clients meet at broker ${nodeId}`);
  }
  return replicas.length > 1 ? refuse(invalid, `broker ${nodeId} is named twice`) : DONE;
}
