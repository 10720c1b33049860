// JoinGroup (11), versions 0–9: enters a classic group and waits for the next generation (groups/SPEC.md).
// v1 rebalance timeout, v4 MEMBER_ID_REQUIRED for first joins (KIP-394), v5 static members (KIP-345),
// v9 skip-assignment for a static leader that came back (KIP-814). The reason (v8) is logged.
import { ErrorCode } from '../../protocol/errors.ts';
import {
  type JoinGroupReply,
  type JoinGroupRequest,
  joinGroupApi,
} from '../../protocol/messages/11-join-group.ts';
import type { JoinReply } from '../groups/classic/effects.ts';
import type { GroupCoordinator } from '../groups/coordinator.ts';
import type { Handler, RequestContext } from '../handler.ts';

export function joinGroupHandler(groups: GroupCoordinator): Handler<typeof joinGroupApi> {
  return {
    api: joinGroupApi,
    versions: { min: 0, max: 9 },
    waits: true,
    async handle(request, context) {
      if (!context.access.allows('read', 'group', request.groupId)) {
        return refusal(request, ErrorCode.GROUP_AUTHORIZATION_FAILED, context.apiVersion);
      }
      logReason(request, context);
      const join = {
        memberId: request.memberId,
        instanceId: request.groupInstanceId,
        clientId: context.clientId ?? '',
        clientHost: `/${context.connection.remoteAddress}`,
        sessionTimeoutMs: request.sessionTimeoutMs,
        rebalanceTimeoutMs: rebalanceTimeout(request),
        protocolType: request.protocolType,
        protocols: request.protocols,
        requireMemberId: context.apiVersion >= 4,
        canSkipAssignment: context.apiVersion >= 9,
      };
      const reply = await groups.join(request.groupId, join, context.connection.signal);
      if (reply.errorCode !== 0) context.countError(reply.errorCode);
      return toMessage(reply, context.apiVersion);
    },
    failed: (request, { code }, { apiVersion }) => refusal(request, code, apiVersion),
  };
}

function refusal(
  { memberId }: JoinGroupRequest,
  errorCode: number,
  apiVersion: number,
): JoinGroupReply {
  return {
    errorCode,
    generationId: -1,
    protocolName: apiVersion >= 7 ? null : '',
    leader: '',
    memberId,
    members: [],
  };
}

/** v0 has none, and says −1: the session timeout serves. */
function rebalanceTimeout({ rebalanceTimeoutMs, sessionTimeoutMs }: JoinGroupRequest): number {
  return rebalanceTimeoutMs < 0 ? sessionTimeoutMs : rebalanceTimeoutMs;
}

function logReason({ reason, groupId, memberId }: JoinGroupRequest, { services }: RequestContext) {
  if (reason !== null && reason !== '')
    services.logger.debug({ groupId, memberId, reason }, 'a member joins');
}

function toMessage(reply: JoinReply, apiVersion: number): JoinGroupReply {
  return {
    errorCode: reply.errorCode,
    generationId: reply.generation,
    protocolType: reply.protocolType,
    protocolName: reply.protocol ?? (apiVersion >= 7 ? null : ''),
    leader: reply.leaderId,
    skipAssignment: reply.skipAssignment,
    memberId: reply.memberId,
    members: reply.members.map(({ memberId, instanceId, metadata }) => ({
      memberId,
      groupInstanceId: instanceId,
      metadata,
    })),
  };
}
