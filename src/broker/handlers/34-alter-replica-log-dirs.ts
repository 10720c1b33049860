// AlterReplicaLogDirs (34), versions 1–2: moves replicas between disks. The log lies in one place, shown by DescribeLogDirs:
// a move there is done already, any other directory is not found, as in Kafka. v2 flexible.
import { ErrorCode } from '../../protocol/errors.ts';
import { alterReplicaLogDirsApi } from '../../protocol/messages/34-alter-replica-log-dirs.ts';
import type { Handler, RequestContext } from '../handler.ts';

export const alterReplicaLogDirsHandler: Handler<typeof alterReplicaLogDirsApi> = {
  api: alterReplicaLogDirsApi,
  versions: { min: 1, max: 2 },
  handle({ dirs }, context) {
    const allowed = context.access.allows('alter', 'cluster');
    const results = dirs.flatMap(({ path, topics }) =>
      topics.map(({ name, partitions }) => ({
        topicName: name,
        partitions: partitions.map((partitionIndex) => {
          const errorCode = allowed
            ? outcome(context, { path, name, partitionIndex })
            : ErrorCode.CLUSTER_AUTHORIZATION_FAILED;
          if (errorCode !== 0) context.countError(errorCode);
          return { partitionIndex, errorCode };
        }),
      })),
    );
    return { results };
  },
};

interface Move {
  readonly path: string;
  readonly name: string;
  readonly partitionIndex: number;
}

function outcome({ services }: RequestContext, { path, name, partitionIndex }: Move): number {
  if (path !== services.cluster.logDirectory) return ErrorCode.LOG_DIR_NOT_FOUND;
  const partitions = services.directory.byName(name)?.partitions ?? [];
  return partitions[partitionIndex] === undefined ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION : 0;
}
