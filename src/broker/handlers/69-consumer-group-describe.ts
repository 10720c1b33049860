// ConsumerGroupDescribe (69), versions 0–1: groups of the consumer protocol (KIP-848), what each member owns and shall
// own. v1 tells which protocol a member speaks. A group of the other protocol is GROUP_ID_NOT_FOUND, so that tools ask
// DescribeGroups. Needs DESCRIBE on the group and on all topics in its members' assignments.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type ConsumerGroupDescribeReply,
  consumerGroupDescribeApi,
} from '../../protocol/messages/69-consumer-group-describe.ts';
import { NOT_ASKED } from '../auth/authorizer.ts';
import { preferredAssignor } from '../groups/consumer/assign.ts';
import {
  type ConsumerGroup,
  type ConsumerMember,
  consumerGroupState,
} from '../groups/consumer/group.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler, RequestContext } from '../handler.ts';
import { byTopic } from './68-consumer-group-heartbeat.ts';

type Described = ConsumerGroupDescribeReply['groups'][number];

/** `MemberType` of v1. */
const CLASSIC_MEMBER = 0;
const CONSUMER_MEMBER = 1;

export function consumerGroupDescribeHandler(
  groups: GroupCoordinator,
): Handler<typeof consumerGroupDescribeApi> {
  const describe = (groupId: string, context: RequestContext): Described => {
    const { access } = context;
    if (!access.allows('describe', 'group', groupId))
      return failed(groupId, ErrorCode.GROUP_AUTHORIZATION_FAILED, null);
    const fault = groups.faultOf(groupId);
    if (fault !== 0) return failed(groupId, fault, null);
    const group = groups.view(groupId)?.group;
    if (group === undefined)
      return failed(groupId, ErrorCode.GROUP_ID_NOT_FOUND, `there is no group ${groupId}`);
    if (group.kind === 'classic')
      return failed(groupId, ErrorCode.GROUP_ID_NOT_FOUND, `group ${groupId} is a classic group`);
    const described = describeGroup(group, context, groups.configOf(groupId).defaultAssignor);
    return mayDescribe(described, context)
      ? described
      : failed(groupId, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 'DESCRIBE on all of its topics');
  };
  return {
    api: consumerGroupDescribeApi,
    versions: { min: 0, max: 1 },
    handle({ groupIds, includeAuthorizedOperations }, context) {
      const described = groupIds.map((groupId) => {
        const group = describe(groupId, context);
        if (group.errorCode !== 0) context.countError(group.errorCode);
        const asked = includeAuthorizedOperations && group.errorCode === 0;
        const authorizedOperations = asked
          ? context.access.operations('group', groupId)
          : NOT_ASKED;
        return { ...group, authorizedOperations };
      });
      return { groups: described };
    },
    failed: ({ groupIds }, { code, message }) => ({
      groups: groupIds.map((groupId) => failed(groupId, code, message)),
    }),
  };
}

function failed(groupId: string, errorCode: number, errorMessage: string | null): Described {
  return {
    errorCode,
    errorMessage,
    groupId,
    groupState: '',
    groupEpoch: 0,
    assignmentEpoch: 0,
    assignorName: '',
    members: [],
  };
}

function describeGroup(
  group: Readonly<ConsumerGroup>,
  { services }: RequestContext,
  defaultAssignor: string,
): Described {
  const topicsOf = (ids: readonly number[]) => ({
    topicPartitions: byTopic(ids, services.directory),
  });
  const describeMember = (member: ConsumerMember): Described['members'][number] => ({
    memberId: member.memberId,
    instanceId: member.instanceId,
    rackId: member.rackId,
    memberEpoch: member.epoch,
    clientId: member.clientId,
    clientHost: member.clientHost,
    subscribedTopicNames: member.topicNames,
    subscribedTopicRegex: member.topicRegex,
    assignment: topicsOf(member.assigned),
    targetAssignment: topicsOf(member.target),
    memberType: member.classic === null ? CONSUMER_MEMBER : CLASSIC_MEMBER,
  });
  return {
    errorCode: 0,
    errorMessage: null,
    groupId: group.groupId,
    groupState: consumerGroupState(group),
    groupEpoch: group.epoch,
    assignmentEpoch: group.assignmentEpoch,
    assignorName: preferredAssignor(group, defaultAssignor),
    members: [...group.members.values()].map(describeMember),
  };
}

function mayDescribe({ members }: Described, { access }: RequestContext): boolean {
  return members.every(({ assignment, targetAssignment }) =>
    [...assignment.topicPartitions, ...targetAssignment.topicPartitions].every(({ topicName }) =>
      access.allows('describe', 'topic', topicName),
    ),
  );
}
