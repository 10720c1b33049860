// CreateTopics (19), versions 2–7: names, counts and configs checked, then created one by one.
// v4 counts of −1 take num.partitions and default.replication.factor, v5 the answer holds the configs (KIP-525),
// v6 controller_mutation_rate refuses (KIP-599), v7 the topic id. Replication factors from 1 to 3 are accepted and change nothing: durability is the storage's.
// Manual assignments are accepted when they name living brokers; then they give the count.
import type { Topic } from '../../metadata/topics.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import {
  type CreateTopicsReply,
  type CreateTopicsRequest,
  createTopicsApi,
} from '../../protocol/messages/19-create-topics.ts';
import { describeTopicConfigs } from '../config-entries.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { chargeMutations } from '../quotas/mutations.ts';
import { createTopic, type Fault, isFault, planTopic, type TopicPlan } from '../topic-creation.ts';
import { brokerIds, replicasFault } from './assignment.ts';
import { repeated } from './repeated.ts';

type TopicRequest = CreateTopicsRequest['topics'][number];
type TopicReply = CreateTopicsReply['topics'][number];

const MAX_REPLICATION_FACTOR = 3;

/** The first version with THROTTLING_QUOTA_EXCEEDED. */
const STRICT_FROM = 6;

export const createTopicsHandler: Handler<typeof createTopicsApi> = {
  api: createTopicsApi,
  versions: { min: 2, max: 7 },
  async handle(request, context) {
    const twice = repeated(request.topics.map(({ name }) => name));
    const topics: TopicReply[] = [];
    for (const name of twice) {
      const errorMessage = `topic "${name}" is named twice in the request`;
      topics.push(refusal(name, { errorCode: ErrorCode.INVALID_REQUEST, errorMessage }));
    }
    for (const asked of request.topics) {
      if (twice.has(asked.name)) continue;
      const outcome = await create(context, asked, request.validateOnly);
      if (isFault(outcome)) {
        context.countError(outcome.errorCode);
        topics.push(refusal(asked.name, outcome));
      } else topics.push(success(context, asked, outcome));
    }
    return { topics };
  },
};

type Created = TopicPlan & { readonly topicId: string };

async function create(
  context: RequestContext,
  asked: TopicRequest,
  validateOnly: boolean,
): Promise<Created | Fault> {
  const { services, access } = context;
  if (!access.allows('create', 'cluster') && !access.allows('create', 'topic', asked.name)) {
    return fault(ErrorCode.TOPIC_AUTHORIZATION_FAILED, 'Authorization failed.');
  }
  const shape = shapeOf(context, asked);
  const plan = isFault(shape)
    ? // A bad name or an existing topic is told first, as Kafka does.
      firstOf(
        await planTopic(services, { name: asked.name, partitionCount: -1, config: {} }),
        shape,
      )
    : await planTopic(services, {
        name: asked.name,
        ...shape,
        mayWrite: (other) => access.allows('write', 'topic', other),
      });
  if (isFault(plan)) return plan;
  const used = chargeMutations(context, plan.partitionCount, STRICT_FROM);
  if (used !== undefined) return used;
  if (validateOnly) return { ...plan, topicId: ZERO_UUID };
  const topic: Topic | Fault = await createTopic(services, plan);
  return isFault(topic) ? topic : { ...plan, topicId: topic.topicId };
}

function firstOf(plan: TopicPlan | Fault, otherwise: Fault): Fault {
  return isFault(plan) ? plan : otherwise;
}

interface Shape {
  readonly partitionCount: number;
  readonly config: Readonly<Record<string, string>>;
}

function shapeOf(context: RequestContext, asked: TopicRequest): Shape | Fault {
  const { assignments, numPartitions, replicationFactor } = asked;
  const config: Record<string, string> = {};
  for (const { name, value } of asked.configs) {
    if (value === null) {
      return fault(ErrorCode.INVALID_CONFIG, `topic config "${name}" has no value`);
    }
    config[name] = value;
  }
  if (assignments.length > 0) {
    if (numPartitions !== -1 || replicationFactor !== -1) {
      const why = 'with assignments both partition count and replication factor must be -1';
      return fault(ErrorCode.INVALID_REQUEST, why);
    }
    const why = assignmentFault(assignments, brokerIds(context));
    if (why !== undefined) return fault(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why);
    return { partitionCount: assignments.length, config };
  }
  if (
    replicationFactor !== -1 &&
    !(replicationFactor >= 1 && replicationFactor <= MAX_REPLICATION_FACTOR)
  ) {
    const why = `replication factor ${replicationFactor} is not within 1…${MAX_REPLICATION_FACTOR}`;
    return fault(ErrorCode.INVALID_REPLICATION_FACTOR, why);
  }
  return { partitionCount: numPartitions === -1 ? -1 : Math.max(numPartitions, 0), config };
}

function assignmentFault(
  assignments: TopicRequest['assignments'],
  ids: ReadonlySet<number>,
): string | undefined {
  const indexes = new Set(assignments.map(({ partitionIndex }) => partitionIndex));
  for (let index = 0; index < assignments.length; index += 1) {
    if (!indexes.has(index)) return `partition ${index} has no assignment`;
  }
  return replicasFault(
    assignments.map(({ brokerIds }) => brokerIds),
    ids,
  );
}

function fault(errorCode: number, errorMessage: string): Fault {
  return { errorCode, errorMessage };
}

function refusal(name: string, { errorCode, errorMessage }: Fault): TopicReply {
  return { name, topicId: ZERO_UUID, errorCode, errorMessage, configs: null };
}

function success(
  { apiVersion, services, access }: RequestContext,
  asked: TopicRequest,
  created: Created,
): TopicReply {
  const { name, topicId, partitionCount, config } = created;
  const replicationFactor =
    asked.replicationFactor === -1
      ? services.config.values['default.replication.factor']
      : asked.replicationFactor;
  if (apiVersion >= 5 && !access.allows('describeConfigs', 'topic', name)) {
    const topicConfigErrorCode = ErrorCode.TOPIC_AUTHORIZATION_FAILED;
    return { name, topicId, errorCode: 0, errorMessage: null, topicConfigErrorCode, configs: [] };
  }
  return {
    name,
    topicId,
    errorCode: 0,
    errorMessage: null,
    numPartitions: partitionCount,
    replicationFactor,
    configs: apiVersion >= 5 ? describeTopicConfigs(services, config) : null,
  };
}
