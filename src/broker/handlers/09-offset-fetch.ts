// OffsetFetch (9), versions 1–10: committed positions; −1 where there is none, also for unknown topics and groups.
// v2 all topics, v7 require-stable (nothing is pending without transactions), v8 several groups, v10 topic ids.
import type { StoredOffset } from '../../metadata/groups.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import { ZERO_UUID } from '../../protocol/fields.ts';
import {
  type OffsetFetchReply,
  type OffsetFetchRequest,
  offsetFetchApi,
} from '../../protocol/messages/09-offset-fetch.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { topicOf } from '../topic-lookup.ts';

type TopicReply = OffsetFetchReply['groups'][number]['topics'][number];
type PartitionReply = TopicReply['partitions'][number];
type Offsets = ReadonlyMap<number, StoredOffset>;

const NO_OFFSETS: Offsets = new Map();

export function offsetFetchHandler(groups: GroupCoordinator): Handler<typeof offsetFetchApi> {
  const answer = (groupId: string, topics: AskedTopics, context: RequestContext) => {
    const offsets = groups.view(groupId)?.offsets ?? NO_OFFSETS;
    return topics === null
      ? allTopics(offsets, context)
      : topics.map((topic) => someOf(topic, offsets, context));
  };
  return {
    api: offsetFetchApi,
    versions: { min: 1, max: 10 },
    handle(request, context) {
      if (context.apiVersion >= 8) {
        const replies = request.groups.map(({ groupId, topics }) => ({
          groupId,
          topics: answer(groupId, topics, context),
        }));
        return { topics: [], groups: replies };
      }
      const topics = request.topics?.map((topic) => ({ ...topic, topicId: ZERO_UUID })) ?? null;
      return { topics: answer(request.groupId, topics, context), groups: [] };
    },
    failed: (request, { code }) => ({
      topics: [],
      errorCode: code,
      groups: request.groups.map(({ groupId }) => ({ groupId, topics: [], errorCode: code })),
    }),
  };
}

type AskedTopics = OffsetFetchRequest['groups'][number]['topics'];
type AskedTopic = NonNullable<AskedTopics>[number];

function someOf(
  { name, topicId, partitionIndexes }: AskedTopic,
  offsets: Offsets,
  { services }: RequestContext,
): TopicReply {
  const { topic, errorCode } = topicOf(services.directory, name, topicId);
  const unknownId = errorCode === ErrorCode.UNKNOWN_TOPIC_ID;
  const partitions = partitionIndexes.map((partitionIndex): PartitionReply => {
    const offset = offsets.get(topic?.partitions[partitionIndex] ?? -1);
    return position(partitionIndex, offset, unknownId ? errorCode : 0);
  });
  return { name, topicId, partitions };
}

function allTopics(offsets: Offsets, { services }: RequestContext): TopicReply[] {
  const byTopic = new Map<string, TopicReply & { partitions: PartitionReply[] }>();
  for (const offset of offsets.values()) {
    const found = services.directory.byPartition(offset.partitionId);
    if (found === undefined) continue;
    const { topicId, name } = found.topic;
    const reply = byTopic.get(topicId) ?? { name, topicId, partitions: [] };
    byTopic.set(topicId, reply);
    reply.partitions.push(position(found.index, offset, 0));
  }
  return [...byTopic.values()];
}

function position(
  partitionIndex: number,
  offset: StoredOffset | undefined,
  errorCode: number,
): PartitionReply {
  return {
    partitionIndex,
    committedOffset: offset?.offset ?? -1,
    committedLeaderEpoch: offset?.leaderEpoch ?? -1,
    metadata: offset?.metadata ?? '',
    errorCode,
  };
}
