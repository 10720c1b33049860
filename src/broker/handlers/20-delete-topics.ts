// DeleteTopics (20), versions 1–6: ends topics with all that hangs on them; partition ids are never used again.
// v5 error messages, controller_mutation_rate refuses (KIP-599), v6 by id or name. delete.topic.enable=false refuses all.
import { isFloeError } from '../../base/error.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import {
  type DeleteTopicsReply,
  type DeleteTopicsRequest,
  deleteTopicsApi,
} from '../../protocol/messages/20-delete-topics.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { chargeMutations } from '../quotas/mutations.ts';
import { learnTopics, topicFor } from '../topic-lookup.ts';
import { repeated } from './repeated.ts';

type TopicReply = DeleteTopicsReply['responses'][number];
type TopicRequest = DeleteTopicsRequest['topics'][number];

/** The first version with THROTTLING_QUOTA_EXCEEDED. */
const STRICT_FROM = 5;

export const deleteTopicsHandler: Handler<typeof deleteTopicsApi> = {
  api: deleteTopicsApi,
  versions: { min: 1, max: 6 },
  async handle(request, context) {
    const byName = request.topicNames.map((name) => ({ name, topicId: ZERO_UUID }));
    const asked = context.apiVersion >= 6 ? request.topics : byName;
    await learnTopics(context, () => asked);
    const twice = repeated(asked.map(({ name, topicId }) => name ?? topicId));
    const responses: TopicReply[] = [];
    for (const wish of asked) {
      const errorCode = twice.has(wish.name ?? wish.topicId)
        ? ErrorCode.INVALID_REQUEST
        : undefined;
      const reply = errorCode === undefined ? await remove(wish, context) : { ...wish, errorCode };
      if (reply.errorCode !== 0) context.countError(reply.errorCode);
      responses.push(reply);
    }
    return { responses };
  },
};

async function remove(wish: TopicRequest, context: RequestContext): Promise<TopicReply> {
  const { directory, config } = context.services;
  if (wish.name !== null && wish.topicId !== ZERO_UUID) {
    return {
      ...wish,
      errorCode: ErrorCode.INVALID_REQUEST,
      errorMessage: 'both name and id given',
    };
  }
  if (!config.values['delete.topic.enable']) {
    const errorMessage = 'delete.topic.enable is false';
    return { ...wish, errorCode: ErrorCode.TOPIC_DELETION_DISABLED, errorMessage };
  }
  // By id, the name is told to those who may describe the topic only.
  const operation = wish.topicId === ZERO_UUID ? 'delete' : 'describe';
  const { topic, errorCode } = topicFor(context, operation, wish);
  if (topic === undefined) return { ...wish, errorCode };
  if (!context.access.allows('delete', 'topic', topic.name)) {
    return { ...wish, name: topic.name, errorCode: ErrorCode.TOPIC_AUTHORIZATION_FAILED };
  }
  const used = chargeMutations(context, topic.partitions.length, STRICT_FROM);
  if (used !== undefined) return { ...wish, ...used };
  try {
    await directory.delete(topic.topicId);
  } catch (caught) {
    if (!isFloeError(caught, 'not-found')) throw caught;
    return { ...wish, errorCode: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION };
  }
  return { name: topic.name, topicId: topic.topicId, errorCode: 0 };
}
