// Heartbeat (12), versions 0–4: a member is alive; REBALANCE_IN_PROGRESS tells it to join again. v3 static members.
import { ErrorCode } from '../../protocol/errors.ts';
import { heartbeatApi } from '../../protocol/messages/12-heartbeat.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler } from '../handler.ts';

export function heartbeatHandler(groups: GroupCoordinator): Handler<typeof heartbeatApi> {
  return {
    api: heartbeatApi,
    versions: { min: 0, max: 4 },
    async handle({ groupId, generationId, memberId, groupInstanceId }, context) {
      const member = { generation: generationId, memberId, instanceId: groupInstanceId };
      const errorCode = context.access.allows('read', 'group', groupId)
        ? await groups.heartbeat(groupId, member)
        : ErrorCode.GROUP_AUTHORIZATION_FAILED;
      if (errorCode !== 0) context.countError(errorCode);
      return { errorCode };
    },
    failed: (_request, { code }) => ({ errorCode: code }),
  };
}
