// DescribeTopicPartitions (75), version 0 (KIP-966): topics in the order of their names, a page at a time.
// No partition has replicas to elect from; the lists of eligible ones are empty, not null, which Kafka's own admin
// client doesn't survive.
import type { Topic } from '../../metadata/topics.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import {
  type DescribeTopicPartitionsReply,
  type DescribeTopicPartitionsRequest,
  describeTopicPartitionsApi,
} from '../../protocol/messages/75-describe-topic-partitions.ts';
import { rackOf } from '../client-rack.ts';
import type { Handler } from '../handler.ts';
import type { BrokerServices } from '../services.ts';
import { learnTopics, topicFor, topicNameFault } from '../topic-lookup.ts';
import { ledPartition } from './partition-reply.ts';

type TopicReply = DescribeTopicPartitionsReply['topics'][number];

/** Most partitions of one page; Kafka's max.request.partition.size.limit. */
const MAX_PAGE = 2_000;

export const describeTopicPartitionsHandler: Handler<typeof describeTopicPartitionsApi> = {
  api: describeTopicPartitionsApi,
  versions: { min: 0, max: 0 },
  async handle(request, context) {
    await learnTopics(context, () => request.topics);
    const { services, access, connection } = context;
    const leaderOf = services.cluster.leaders(connection.listener, rackOf(context));
    const { cursor } = request;
    if (cursor !== null && cursor.partitionIndex < 0) {
      return { topics: [refused(cursor.topicName, ErrorCode.INVALID_REQUEST)] };
    }
    const topics: TopicReply[] = [];
    let left = Math.max(1, Math.min(request.responsePartitionLimit, MAX_PAGE));
    for (const name of namesOf(services, request)) {
      const { topic, errorCode } = topicFor(context, 'describe', { name });
      if (topic === undefined) {
        const denied = errorCode === ErrorCode.TOPIC_AUTHORIZATION_FAILED;
        // Who asks for all topics doesn't hear of those that it may not see.
        if (!denied) topics.push(unknown(name));
        else if (request.topics.length > 0) topics.push(refused(name, errorCode));
        continue;
      }
      const from = name === request.cursor?.topicName ? request.cursor.partitionIndex : 0;
      if (left === 0) return { topics, nextCursor: { topicName: name, partitionIndex: from } };
      const to = Math.min(topic.partitions.length, from + left);
      const described = describe(topic, leaderOf, { from, to });
      topics.push({
        ...described,
        topicAuthorizedOperations: access.operations('topic', topic.name),
      });
      left -= to - from;
      if (to < topic.partitions.length) {
        return { topics, nextCursor: { topicName: name, partitionIndex: to } };
      }
    }
    return { topics };
  },
};

/** Names still to be described, ascending. */
function namesOf({ directory }: BrokerServices, request: DescribeTopicPartitionsRequest): string[] {
  const asked =
    request.topics.length > 0
      ? new Set(request.topics.map(({ name }) => name))
      : directory.all().map(({ name }) => name);
  const start = request.cursor?.topicName ?? '';
  return [...asked].sort().filter((name) => name >= start);
}

function unknown(name: string): TopicReply {
  const errorCode =
    topicNameFault(name) === undefined
      ? ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
      : ErrorCode.INVALID_TOPIC_EXCEPTION;
  return refused(name, errorCode);
}

function refused(name: string, errorCode: number): TopicReply {
  return { errorCode, name, topicId: ZERO_UUID, partitions: [] };
}

function describe(
  { name, topicId, partitions: ids }: Topic,
  leaderOf: (partitionId: number) => number,
  { from, to }: { readonly from: number; readonly to: number },
): TopicReply {
  const partitions = [];
  for (let partitionIndex = from; partitionIndex < to; partitionIndex += 1) {
    const led = ledPartition(partitionIndex, leaderOf(ids[partitionIndex]!));
    partitions.push({ ...led, eligibleLeaderReplicas: [], lastKnownElr: [] });
  }
  return {
    errorCode: 0,
    name,
    topicId,
    partitions,
  };
}
