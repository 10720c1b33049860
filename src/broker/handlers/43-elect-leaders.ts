// ElectLeaders (43), versions 0–2: every broker leads every partition for ever, so no election is needed, of neither type:
// ELECTION_NOT_NEEDED, which tools take for success. All partitions (null): nothing to tell, as in Kafka when all have
// their leader. v1 election types, v2 flexible.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type ElectLeadersReply,
  type ElectLeadersRequest,
  electLeadersApi,
} from '../../protocol/messages/43-elect-leaders.ts';
import type { Handler, RequestContext } from '../handler.ts';

type Asked = NonNullable<ElectLeadersRequest['topicPartitions']>;
type Fault = { readonly errorCode: number; readonly errorMessage: string };

const PREFERRED = 0;
const UNCLEAN = 1;

export const electLeadersHandler: Handler<typeof electLeadersApi> = {
  api: electLeadersApi,
  versions: { min: 0, max: 2 },
  handle({ electionType, topicPartitions }, context) {
    const fault = faultOf(electionType, context);
    if (fault !== undefined) {
      context.countError(fault.errorCode);
      const results = topicPartitions ?? [];
      return { errorCode: fault.errorCode, replicaElectionResults: each(results, () => fault) };
    }
    const replicaElectionResults = each(topicPartitions ?? [], (topic, index) =>
      outcome(context, topic, index),
    );
    return { errorCode: 0, replicaElectionResults };
  },
};

function faultOf(electionType: number, { access }: RequestContext): Fault | undefined {
  if (!access.allows('alter', 'cluster')) {
    const errorMessage = 'Alter on the cluster is not allowed';
    return { errorCode: ErrorCode.CLUSTER_AUTHORIZATION_FAILED, errorMessage };
  }
  if (electionType === PREFERRED || electionType === UNCLEAN) return undefined;
  const errorMessage = `unknown election type ${electionType}`;
  return { errorCode: ErrorCode.INVALID_REQUEST, errorMessage };
}

function each(
  topics: Asked,
  outcomeOf: (topic: string, partition: number) => Fault,
): ElectLeadersReply['replicaElectionResults'] {
  return topics.map(({ topic, partitions }) => ({
    topic,
    partitionResult: partitions.map((partitionId) => ({
      partitionId,
      ...outcomeOf(topic, partitionId),
    })),
  }));
}

function outcome({ services }: RequestContext, name: string, partition: number): Fault {
  const topic = services.directory.byName(name);
  const unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  if (topic === undefined)
    return { errorCode: unknown, errorMessage: `there is no topic "${name}"` };
  if (topic.partitions[partition] === undefined) {
    return { errorCode: unknown, errorMessage: `topic "${name}" has no partition ${partition}` };
  }
  const errorMessage = 'no election is needed: every broker leads every partition';
  return { errorCode: ErrorCode.ELECTION_NOT_NEEDED, errorMessage };
}
