// SyncGroup: the leader's assignment is stored, then handed out. Nobody learns it before it is stored (G8).
import { ErrorCode } from '../../../protocol/errors.ts';
import { joinFailed, type PersistReason, synced, syncFailed } from './effects.ts';
import { enter, type Group, metadataBytes, type Token } from './group.ts';
import { generationFault, touch } from './membership.ts';
import {
  dropAssignments,
  prepareRebalance,
  type StepContext,
  tryCompleteJoin,
} from './rebalance.ts';

export interface SyncEvent {
  readonly type: 'sync';
  readonly token: Token;
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly generation: number;
  /** v5+: must be the group's (KIP-559); null when not told. */
  readonly protocolType: string | null;
  readonly protocol: string | null;
  /** From the leader; members not named get nothing. */
  readonly assignments: readonly { readonly memberId: string; readonly assignment: Uint8Array }[];
}

export interface PersistedEvent {
  readonly type: 'persisted';
  readonly reason: PersistReason;
  readonly errorCode: number;
}

export function onSync(group: Group, event: SyncEvent, context: StepContext): void {
  const { token } = event;
  const fault = syncFault(group, event);
  if (fault !== 0) {
    context.effects.push(syncFailed(token, fault));
    return;
  }
  const member = group.members.get(event.memberId)!;
  group.unsynced.delete(event.memberId);
  if (group.state === 'Stable') {
    touch(member, context.now);
    context.effects.push(synced(group, token, member.assignment));
    return;
  }
  if (member.syncToken !== null)
    context.effects.push(syncFailed(member.syncToken, ErrorCode.REBALANCE_IN_PROGRESS));
  member.syncToken = token;
  if (event.memberId === group.leaderId && !group.persisting) assign(group, event, context);
}

function syncFault(group: Group, event: SyncEvent): number {
  const fault = generationFault(group, event);
  if (fault !== 0) return fault;
  const { protocolType, protocol } = event;
  if (protocolType !== null && protocolType !== group.protocolType)
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL;
  if (protocol !== null && group.protocol !== null && protocol !== group.protocol)
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL;
  return group.state === 'PreparingRebalance' ? ErrorCode.REBALANCE_IN_PROGRESS : 0;
}

function assign(group: Group, { assignments }: SyncEvent, context: StepContext): void {
  const given = new Map(assignments.map(({ memberId, assignment }) => [memberId, assignment]));
  for (const member of group.members.values())
    member.assignment = Uint8Array.from(given.get(member.memberId) ?? []);
  if (metadataBytes(group) > context.settings['group.metadata.max.bytes']) {
    // Kafka's code for a group too large to store: not retriable, and clients give up instead of looping.
    fail(group, ErrorCode.UNKNOWN_SERVER_ERROR, context);
    return;
  }
  group.persisting = true;
  const { generation } = group;
  context.effects.push({ kind: 'persist', reason: { kind: 'assignment', generation } });
}

export function onPersisted(
  group: Group,
  { reason, errorCode }: PersistedEvent,
  context: StepContext,
): void {
  switch (reason.kind) {
    case 'empty':
      break;
    case 'static':
      context.effects.push(
        errorCode === 0
          ? { kind: 'join-reply', token: reason.token, reply: reason.reply }
          : joinFailed(reason.token, errorCode),
      );
      break;
    case 'assignment':
      // A rebalance that began meanwhile has answered everybody already.
      if (!group.persisting || reason.generation !== group.generation) break;
      group.persisting = false;
      if (errorCode === 0) handOut(group, context);
      else fail(group, errorCode, context);
  }
}

function handOut(group: Group, { now, effects }: StepContext): void {
  enter(group, 'Stable', now);
  for (const member of group.members.values()) {
    if (member.syncToken === null) continue;
    effects.push(synced(group, member.syncToken, member.assignment));
    member.syncToken = null;
    touch(member, now);
  }
}

function fail(group: Group, errorCode: number, context: StepContext): void {
  dropAssignments(group, errorCode, context);
  prepareRebalance(group, context);
  tryCompleteJoin(group, context);
}
