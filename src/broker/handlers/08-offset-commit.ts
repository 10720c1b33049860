// OffsetCommit (8), versions 2–10: stores positions before it answers. From outside a group (generation −1) only
// while the group has no members. v5 drops the retention time, v7 static members, v9 member epochs (KIP-848), v10
// topic ids.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type OffsetCommitReply,
  type OffsetCommitRequest,
  offsetCommitApi,
} from '../../protocol/messages/08-offset-commit.ts';
import type { GroupCoordinator, OffsetToCommit } from '../groups/coordinator.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { learnTopics, topicFor } from '../topic-lookup.ts';

export function offsetCommitHandler(groups: GroupCoordinator): Handler<typeof offsetCommitApi> {
  return {
    api: offsetCommitApi,
    versions: { min: 2, max: 10 },
    async handle(request, context) {
      if (!context.access.allows('read', 'group', request.groupId)) {
        return refusal(request, ErrorCode.GROUP_AUTHORIZATION_FAILED);
      }
      await learnTopics(context, () => request.topics);
      const { offsets, codes } = resolve(request, context);
      const committer = {
        generation: request.generationIdOrMemberEpoch,
        memberId: request.memberId,
        instanceId: request.groupInstanceId,
      };
      const { apiVersion } = context;
      const retentionMs = apiVersion <= 4 ? request.retentionTimeMs : -1;
      const committed =
        offsets.length === 0
          ? []
          : await groups.commit(request.groupId, committer, { offsets, retentionMs, apiVersion });
      // Codes come back in the order in which the partitions that exist were named.
      let next = 0;
      const code = (known: number) => {
        const errorCode = known !== 0 ? known : committed[next++]!;
        if (errorCode !== 0) context.countError(errorCode);
        return errorCode;
      };
      const topics = request.topics.map(({ name, topicId, partitions }, topic) => ({
        name,
        topicId,
        partitions: partitions.map(({ partitionIndex }, index) => ({
          partitionIndex,
          errorCode: code(codes[topic]![index]!),
        })),
      }));
      return { topics };
    },
    failed: (request, { code }) => refusal(request, code),
  };
}

function refusal({ topics }: OffsetCommitRequest, errorCode: number): OffsetCommitReply {
  return {
    topics: topics.map(({ name, topicId, partitions }) => ({
      name,
      topicId,
      partitions: partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode })),
    })),
  };
}

/** Positions of partitions that exist, and per topic and partition what is known to be wrong already. */
function resolve({ topics }: OffsetCommitRequest, context: RequestContext) {
  const offsets: OffsetToCommit[] = [];
  const codes = topics.map(({ name, topicId, partitions }) => {
    const { topic, errorCode } = topicFor(context, 'read', { name, topicId });
    return partitions.map((partition) => {
      if (errorCode !== 0) return errorCode;
      const partitionId = topic?.partitions[partition.partitionIndex];
      if (partitionId === undefined) return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
      offsets.push({
        partitionId,
        offset: partition.committedOffset,
        leaderEpoch: partition.committedLeaderEpoch,
        metadata: partition.committedMetadata ?? '',
      });
      return 0;
    });
  });
  return { offsets, codes };
}
