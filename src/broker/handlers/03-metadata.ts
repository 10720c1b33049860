// Metadata (3), versions 0–13: all living brokers; every one leads every partition, with epoch 0, so the leader that is
// named is the one where its clients shall meet, in their own rack (client-rack.ts). The controller is the lowest id.
// A topic that doesn't exist is created on request if auto.create.topics.enable allows it (v4+ may decline).
// v0 an empty list means all topics, v1+ null does; v8 authorised operations; v10 topic ids; v12 look-up by id.
// Simplification: the address told is that of the listener the client came by.

import type { Topic } from '../../metadata/topics.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import {
  type MetadataReply,
  type MetadataRequest,
  metadataApi,
} from '../../protocol/messages/03-metadata.ts';
import { clusterOperations } from '../auth/access.ts';
import { NOT_ASKED } from '../auth/authorizer.ts';
import { rackOf } from '../client-rack.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { createTopic, isFault, planTopic } from '../topic-creation.ts';
import { learnTopics, topicFor, topicNameFault } from '../topic-lookup.ts';
import { ledPartition } from './partition-reply.ts';

type TopicReply = MetadataReply['topics'][number];
type TopicRequest = NonNullable<MetadataRequest['topics']>[number];

export const metadataHandler: Handler<typeof metadataApi> = {
  api: metadataApi,
  versions: { min: 0, max: 13 },
  async handle(request, context) {
    const { cluster } = context.services;
    const { listener } = context.connection;
    return {
      brokers: cluster.brokers(listener),
      clusterId: cluster.clusterId,
      controllerId: cluster.controllerId(listener),
      topics: await topicReplies(request, context),
      clusterAuthorizedOperations: request.includeClusterAuthorizedOperations
        ? clusterOperations(context.access)
        : NOT_ASKED,
      errorCode: 0,
    };
  },
};

async function topicReplies(
  request: MetadataRequest,
  context: RequestContext,
): Promise<readonly TopicReply[]> {
  const { topics } = request;
  const { access } = context;
  const { directory } = context.services;
  const operations = (name: string) =>
    request.includeTopicAuthorizedOperations ? access.operations('topic', name) : NOT_ASKED;
  const { cluster } = context.services;
  const leaderOf = cluster.leaders(context.connection.listener, rackOf(context));
  if (topics === null || (context.apiVersion === 0 && topics.length === 0)) {
    const shown = directory.all().filter(({ name }) => access.allows('describe', 'topic', name));
    return shown.map((topic) => describe(topic, leaderOf, operations(topic.name)));
  }
  await learnTopics(context, () => topics);
  const replies: TopicReply[] = [];
  for (const asked of topics) {
    const topic = await find(asked, request.allowAutoTopicCreation, context);
    if (typeof topic !== 'number') replies.push(describe(topic, leaderOf, operations(topic.name)));
    else {
      context.countError(topic);
      replies.push(unknown(asked, topic));
    }
  }
  return replies;
}

/** The topic, created if it may be, or an error code. */
async function find(
  { name, topicId }: TopicRequest,
  mayCreate: boolean,
  context: RequestContext,
): Promise<Topic | number> {
  const { services, access } = context;
  const { directory, config } = services;
  const found = topicFor(context, 'describe', { name, topicId });
  if (found.topic !== undefined) return found.topic;
  if (topicId !== ZERO_UUID || found.errorCode === ErrorCode.TOPIC_AUTHORIZATION_FAILED) {
    return found.errorCode;
  }
  const wanted = name ?? '';
  if (topicNameFault(wanted) !== undefined) return ErrorCode.INVALID_TOPIC_EXCEPTION;
  if (!mayCreate || !config.values['auto.create.topics.enable']) {
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
  }
  if (!access.allows('create', 'cluster') && !access.allows('create', 'topic', wanted)) {
    return ErrorCode.TOPIC_AUTHORIZATION_FAILED;
  }
  const plan = await planTopic(services, { name: wanted, partitionCount: -1, config: {} });
  const created = isFault(plan) ? plan : await createTopic(services, plan);
  if (!isFault(created)) return created;
  // Somebody else was first: theirs is as good.
  return directory.byName(wanted) ?? created.errorCode;
}

function unknown({ name, topicId }: TopicRequest, errorCode: number): TopicReply {
  return { errorCode, name, topicId, partitions: [] };
}

function describe(
  topic: Topic,
  leaderOf: (partitionId: number) => number,
  topicAuthorizedOperations: number,
): TopicReply {
  return {
    errorCode: 0,
    name: topic.name,
    topicId: topic.topicId,
    partitions: topic.partitions.map((partitionId, partitionIndex) =>
      ledPartition(partitionIndex, leaderOf(partitionId)),
    ),
    topicAuthorizedOperations,
  };
}
