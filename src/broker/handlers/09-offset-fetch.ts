// OffsetFetch (9), versions 1–10: committed positions; −1 where there is none, also for unknown topics and groups.
// v2 all topics, v7 require_stable (a partition with an offset staged in an open transaction is
// UNSTABLE_OFFSET_COMMIT), v8 several groups, v9 member epochs (KIP-848), v10 topic ids.
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
import { learnTopics, topicFor } from '../topic-lookup.ts';

type TopicReply = OffsetFetchReply['groups'][number]['topics'][number];
type PartitionReply = TopicReply['partitions'][number];
type Offsets = ReadonlyMap<number, StoredOffset>;

const NO_OFFSETS: Offsets = new Map();
const UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT;

export function offsetFetchHandler(groups: GroupCoordinator): Handler<typeof offsetFetchApi> {
  const answer = (
    asked: AskedGroup,
    { requireStable, unsettled }: { readonly requireStable: boolean; readonly unsettled: number },
    context: RequestContext,
  ) => {
    const { groupId, topics } = asked;
    const errorCode = context.access.allows('describe', 'group', groupId)
      ? groups.fetchFault(groupId, asked.memberId, asked.memberEpoch) ||
        (unsettled !== 0 && groups.pending.isUnsure(groupId) ? unsettled : 0)
      : ErrorCode.GROUP_AUTHORIZATION_FAILED;
    if (errorCode !== 0) {
      context.countError(errorCode);
      return { groupId, topics: [], errorCode };
    }
    const positions: Positions = {
      offsets: groups.view(groupId)?.offsets ?? NO_OFFSETS,
      isUnstable: (partitionId) => requireStable && groups.isPending(groupId, partitionId),
    };
    const replies =
      topics === null
        ? allTopics(positions, context)
        : topics.map((topic) => someOf(topic, positions, context));
    return { groupId, topics: replies, errorCode };
  };
  return {
    api: offsetFetchApi,
    versions: { min: 1, max: 10 },
    async handle(request, context) {
      const { requireStable } = request;
      const asked = context.apiVersion >= 8 ? request.groups : [request];
      // What transactions have done on other nodes; at once where none is open.
      const unsettled = await groups.settle(asked.map(({ groupId }) => groupId));
      const how = { requireStable, unsettled };
      await learnTopics(context, () => asked.flatMap(({ topics }) => topics ?? []));
      if (context.apiVersion >= 8) {
        const replies = request.groups.map((group) => answer(group, how, context));
        return { topics: [], groups: replies };
      }
      const topics = request.topics?.map((topic) => ({ ...topic, topicId: ZERO_UUID })) ?? null;
      const { groupId } = request;
      const whole = { groupId, topics, memberId: null, memberEpoch: -1 };
      const reply = answer(whole, how, context);
      return context.apiVersion >= 2 || reply.errorCode === 0
        ? { ...reply, groups: [] }
        : refusal(request, context, reply.errorCode);
    },
    failed: (request, { code }, context) => refusal(request, context, code),
  };
}

/** The same code for every group; v1 has none for the whole. */
function refusal(
  { topics, groups }: OffsetFetchRequest,
  { apiVersion }: RequestContext,
  errorCode: number,
): OffsetFetchReply {
  if (apiVersion >= 8) {
    const refused = groups.map(({ groupId }) => ({ groupId, topics: [], errorCode }));
    return { topics: [], groups: refused };
  }
  if (apiVersion >= 2) return { topics: [], errorCode, groups: [] };
  const asked = topics?.map((topic) => ({ ...topic, topicId: ZERO_UUID })) ?? [];
  return { topics: refusedTopics(asked, errorCode), groups: [] };
}

type AskedGroup = OffsetFetchRequest['groups'][number];
type AskedTopic = NonNullable<AskedGroup['topics']>[number];

interface Positions {
  readonly offsets: Offsets;
  isUnstable(partitionId: number): boolean;
}

function refusedTopics(topics: readonly AskedTopic[], errorCode: number): TopicReply[] {
  return topics.map(({ name, topicId, partitionIndexes }) => ({
    name,
    topicId,
    partitions: partitionIndexes.map((index) => position(index, undefined, errorCode)),
  }));
}

function someOf(
  { name, topicId, partitionIndexes }: AskedTopic,
  { offsets, isUnstable }: Positions,
  context: RequestContext,
): TopicReply {
  const { topic, errorCode } = topicFor(context, 'describe', { name, topicId });
  // A name without a topic has no position, which is no error.
  const fault = errorCode === ErrorCode.UNKNOWN_TOPIC_OR_PARTITION ? 0 : errorCode;
  const partitions = partitionIndexes.map((partitionIndex): PartitionReply => {
    const partitionId = topic?.partitions[partitionIndex] ?? -1;
    if (isUnstable(partitionId)) return position(partitionIndex, undefined, UNSTABLE);
    return position(partitionIndex, offsets.get(partitionId), fault);
  });
  return { name, topicId, partitions };
}

function allTopics(
  { offsets, isUnstable }: Positions,
  { services, access }: RequestContext,
): TopicReply[] {
  const byTopic = new Map<string, TopicReply & { partitions: PartitionReply[] }>();
  for (const offset of offsets.values()) {
    const found = services.directory.byPartition(offset.partitionId);
    if (found === undefined || !access.allows('describe', 'topic', found.topic.name)) continue;
    const { topicId, name } = found.topic;
    const reply = byTopic.get(topicId) ?? { name, topicId, partitions: [] };
    byTopic.set(topicId, reply);
    const unstable = isUnstable(offset.partitionId);
    reply.partitions.push(
      unstable ? position(found.index, undefined, UNSTABLE) : position(found.index, offset, 0),
    );
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
