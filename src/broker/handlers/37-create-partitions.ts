// CreatePartitions (37), versions 0–3: raises the number of partitions of topics; the new ones are empty.
// v3 controller_mutation_rate refuses (KIP-599). Assignments are accepted when they name living brokers, one list per new partition.
import { FloeError } from '../../base/error.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type CreatePartitionsRequest,
  createPartitionsApi,
} from '../../protocol/messages/37-create-partitions.ts';
import { kafkaCodeOf } from '../failures.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { chargeMutations } from '../quotas/mutations.ts';
import { type Fault, partitionCountFault } from '../topic-creation.ts';
import { learnTopics, topicFor } from '../topic-lookup.ts';
import { brokerIds, replicasFault } from './assignment.ts';
import { repeated } from './repeated.ts';

type TopicRequest = CreatePartitionsRequest['topics'][number];

/** The first version with THROTTLING_QUOTA_EXCEEDED. */
const STRICT_FROM = 3;

export const createPartitionsHandler: Handler<typeof createPartitionsApi> = {
  api: createPartitionsApi,
  versions: { min: 0, max: 3 },
  async handle({ topics, validateOnly }, context) {
    const twice = repeated(topics.map(({ name }) => name));
    await learnTopics(context, () => topics);
    const results = [];
    for (const asked of topics) {
      const fault = twice.has(asked.name)
        ? { errorCode: ErrorCode.INVALID_REQUEST, errorMessage: `"${asked.name}" is named twice` }
        : await grow(context, asked, validateOnly);
      if (fault !== undefined) context.countError(fault.errorCode);
      results.push({ name: asked.name, ...(fault ?? { errorCode: 0, errorMessage: null }) });
    }
    return { results };
  },
};

async function grow(
  context: RequestContext,
  asked: TopicRequest,
  validateOnly: boolean,
): Promise<Fault | undefined> {
  const { services } = context;
  const { name, count } = asked;
  const { topic, errorCode } = topicFor(context, 'alter', { name });
  if (topic === undefined) {
    const denied = errorCode === ErrorCode.TOPIC_AUTHORIZATION_FAILED;
    const errorMessage = denied
      ? `changing topic "${name}" is not allowed`
      : `there is no topic "${name}"`;
    return { errorCode, errorMessage };
  }
  const added = count - topic.partitions.length;
  const errorMessage =
    added < 1
      ? `topic "${name}" currently has ${topic.partitions.length} partitions: ${count} is no increase`
      : partitionCountFault(services, count, added);
  if (errorMessage !== undefined) return { errorCode: ErrorCode.INVALID_PARTITIONS, errorMessage };
  const unassignable = assignmentFault(asked, added, brokerIds(context));
  if (unassignable !== undefined) {
    return { errorCode: ErrorCode.INVALID_REPLICA_ASSIGNMENT, errorMessage: unassignable };
  }
  const used = chargeMutations(context, added, STRICT_FROM);
  if (used !== undefined || validateOnly) return used;
  try {
    await services.directory.addPartitions(topic.topicId, count);
    return undefined;
  } catch (caught) {
    const error = FloeError.from(caught);
    const invalid = error.code === 'invalid';
    const errorCode = invalid ? ErrorCode.INVALID_PARTITIONS : kafkaCodeOf(error);
    return { errorCode, errorMessage: error.message };
  }
}

function assignmentFault(
  { assignments }: TopicRequest,
  added: number,
  ids: ReadonlySet<number>,
): string | undefined {
  if (assignments === null || assignments.length === 0) return undefined;
  if (assignments.length !== added) {
    return `${assignments.length} assignments for ${added} new partitions`;
  }
  return replicasFault(
    assignments.map(({ brokerIds }) => brokerIds),
    ids,
  );
}
