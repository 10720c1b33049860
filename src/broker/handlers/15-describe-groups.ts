// DescribeGroups (15), versions 0–6: members with metadata and assignment while the group is stable, else without.
// An unknown group is "Dead", and so is one of the consumer protocol, which ConsumerGroupDescribe describes; v6 says
// GROUP_ID_NOT_FOUND as well. v3 authorized operations, v4 static members.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type DescribeGroupsReply,
  describeGroupsApi,
} from '../../protocol/messages/15-describe-groups.ts';
import { NOT_ASKED } from '../auth/authorizer.ts';
import type { Group } from '../groups/classic/group.ts';
import { metadataOf } from '../groups/classic/protocols.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler } from '../handler.ts';

type Described = DescribeGroupsReply['groups'][number];

const NOTHING = new Uint8Array(0);

export function describeGroupsHandler(groups: GroupCoordinator): Handler<typeof describeGroupsApi> {
  return {
    api: describeGroupsApi,
    versions: { min: 0, max: 6 },
    handle(request, context) {
      const described = request.groups.map((groupId) => {
        if (!context.access.allows('describe', 'group', groupId)) {
          const errorCode = ErrorCode.GROUP_AUTHORIZATION_FAILED;
          context.countError(errorCode);
          return { ...unknown(groupId, 0), groupState: '', errorCode };
        }
        const authorizedOperations = request.includeAuthorizedOperations
          ? context.access.operations('group', groupId)
          : NOT_ASKED;
        const group = groups.view(groupId)?.group;
        const fault = groups.faultOf(groupId);
        if (fault !== 0) {
          context.countError(fault);
          return { ...unknown(groupId, 0), errorCode: fault };
        }
        const described =
          group?.kind === 'classic' ? describe(group) : unknown(groupId, context.apiVersion);
        return { ...described, authorizedOperations };
      });
      return { groups: described };
    },
  };
}

function unknown(groupId: string, apiVersion: number): Described {
  return {
    errorCode: apiVersion >= 6 ? ErrorCode.GROUP_ID_NOT_FOUND : 0,
    errorMessage: apiVersion >= 6 ? `Group ${groupId} not found.` : null,
    groupId,
    groupState: 'Dead',
    protocolType: '',
    protocolData: '',
    members: [],
  };
}

function describe(group: Readonly<Group>): Described {
  const stable = group.state === 'Stable';
  return {
    errorCode: 0,
    groupId: group.groupId,
    groupState: group.state,
    protocolType: group.protocolType,
    protocolData: stable ? (group.protocol ?? '') : '',
    members: [...group.members.values()].map((member) => ({
      memberId: member.memberId,
      groupInstanceId: member.instanceId,
      clientId: member.clientId,
      clientHost: member.clientHost,
      memberMetadata: stable ? metadataOf(member.protocols, group.protocol) : NOTHING,
      memberAssignment: stable ? member.assignment : NOTHING,
    })),
  };
}
