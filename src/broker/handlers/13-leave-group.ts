// LeaveGroup (13), versions 0–5: members go at once instead of by session timeout. v3 several, and static members
// by their instance id alone; each has its own error code then. The reason (v5) is logged.
import { ErrorCode } from '../../protocol/errors.ts';
import { type LeaveGroupRequest, leaveGroupApi } from '../../protocol/messages/13-leave-group.ts';
import type { GroupCoordinator, Leaver } from '../groups/coordinator.ts';
import type { Handler } from '../handler.ts';

/** Codes that concern the group, not one member. */
const WHOLE_GROUP: readonly number[] = [
  ErrorCode.INVALID_GROUP_ID,
  ErrorCode.NOT_COORDINATOR,
  ErrorCode.COORDINATOR_NOT_AVAILABLE,
];

export function leaveGroupHandler(groups: GroupCoordinator): Handler<typeof leaveGroupApi> {
  return {
    api: leaveGroupApi,
    versions: { min: 0, max: 5 },
    async handle(request, context) {
      const { groupId } = request;
      if (!context.access.allows('read', 'group', groupId)) {
        return { errorCode: ErrorCode.GROUP_AUTHORIZATION_FAILED, members: [] };
      }
      for (const { memberId, reason } of request.members)
        if (reason) context.services.logger.debug({ groupId, memberId, reason }, 'a member leaves');
      const leavers = context.apiVersion >= 3 ? membersOf(request) : [single(request)];
      const codes = await groups.leave(groupId, leavers);
      for (const code of codes) if (code !== 0) context.countError(code);
      const whole = codes.find((code) => context.apiVersion < 3 || WHOLE_GROUP.includes(code)) ?? 0;
      const members = leavers.map(({ memberId, instanceId }, index) => ({
        memberId,
        groupInstanceId: instanceId,
        errorCode: codes[index]!,
      }));
      return { errorCode: whole, members: whole === 0 ? members : [] };
    },
    failed: (_request, { code }) => ({ errorCode: code, members: [] }),
  };
}

const single = ({ memberId }: LeaveGroupRequest): Leaver => ({ memberId, instanceId: null });

function membersOf({ members }: LeaveGroupRequest): readonly Leaver[] {
  return members.map(({ memberId, groupInstanceId }) => ({
    memberId,
    instanceId: groupInstanceId,
  }));
}
