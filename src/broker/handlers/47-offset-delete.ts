// OffsetDelete (47), version 0: removes committed positions of partitions that no member of the group subscribes to.
// A group of another type than "consumer" must be without members: its subscriptions can't be read.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type OffsetDeleteRequest,
  offsetDeleteApi,
} from '../../protocol/messages/47-offset-delete.ts';
import { CONSUMER_PROTOCOL } from '../groups/classic/subscription.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { topicFor } from '../topic-lookup.ts';

type AskedTopic = OffsetDeleteRequest['topics'][number];

export function offsetDeleteHandler(groups: GroupCoordinator): Handler<typeof offsetDeleteApi> {
  return {
    api: offsetDeleteApi,
    versions: { min: 0, max: 0 },
    async handle({ groupId, topics }, context) {
      const errorCode = context.access.allows('delete', 'group', groupId)
        ? await groupFault(groups, groupId)
        : ErrorCode.GROUP_AUTHORIZATION_FAILED;
      if (errorCode !== 0) {
        context.countError(errorCode);
        return { errorCode, topics: [] };
      }
      const replies = topics.map((topic) => deleteOf(groups, { groupId, topic }, context));
      return { errorCode: 0, topics: await Promise.all(replies) };
    },
    failed: (_request, { code }) => ({ errorCode: code, topics: [] }),
  };
}

async function groupFault(groups: GroupCoordinator, groupId: string): Promise<number> {
  const fault = groups.faultOf(groupId) || (await groups.settle([groupId]));
  if (fault !== 0) return fault;
  const view = groups.view(groupId);
  if (view === undefined) return ErrorCode.GROUP_ID_NOT_FOUND;
  const { group } = view;
  if (group.kind === 'consumer' || group.members.size === 0) return 0;
  return group.protocolType === CONSUMER_PROTOCOL ? 0 : ErrorCode.NON_EMPTY_GROUP;
}

async function deleteOf(
  groups: GroupCoordinator,
  { groupId, topic: { name, partitions } }: { groupId: string; topic: AskedTopic },
  context: RequestContext,
) {
  const { topic, errorCode: fault } = topicFor(context, 'read', { name });
  const ids = partitions.map(({ partitionIndex }) => topic?.partitions[partitionIndex]);
  const known = ids.filter((id) => id !== undefined);
  const outcome = known.length === 0 ? 0 : await groups.deleteOffsets(groupId, name, known);
  return {
    name,
    partitions: partitions.map(({ partitionIndex }, index) => {
      const missing = fault || ErrorCode.UNKNOWN_TOPIC_OR_PARTITION;
      const errorCode = ids[index] === undefined ? missing : outcome;
      if (errorCode !== 0) context.countError(errorCode);
      return { partitionIndex, errorCode };
    }),
  };
}
