// SyncGroup (14), versions 0–5: the leader brings the assignment, everyone gets their part once it is stored.
// v3 static members, v5 protocol type and name, which must be the group's (KIP-559).
import { ErrorCode } from '../../protocol/errors.ts';
import { type SyncGroupReply, syncGroupApi } from '../../protocol/messages/14-sync-group.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler } from '../handler.ts';

export function syncGroupHandler(groups: GroupCoordinator): Handler<typeof syncGroupApi> {
  return {
    api: syncGroupApi,
    versions: { min: 0, max: 5 },
    waits: true,
    async handle(request, context) {
      if (!context.access.allows('read', 'group', request.groupId)) {
        return refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED);
      }
      const sync = {
        generation: request.generationId,
        memberId: request.memberId,
        instanceId: request.groupInstanceId,
        protocolType: request.protocolType,
        protocol: request.protocolName,
        assignments: request.assignments,
      };
      const reply = await groups.sync(request.groupId, sync, context.connection.signal);
      if (reply.errorCode !== 0) context.countError(reply.errorCode);
      return {
        errorCode: reply.errorCode,
        protocolType: reply.protocolType,
        protocolName: reply.protocol,
        assignment: reply.assignment,
      };
    },
    failed: (_request, { code }) => refusal(code),
  };
}

function refusal(errorCode: number): SyncGroupReply {
  return { errorCode, assignment: new Uint8Array(0) };
}
