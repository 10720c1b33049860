// Who is a member, and signs of life: validation shared by all requests, Heartbeat, LeaveGroup, time.
import { ErrorCode } from '../../../protocol/errors.ts';
import { type Group, isWatched, type Member, type Token } from './group.ts';
import {
  dropMember,
  prepareRebalance,
  removeMember,
  type StepContext,
  tryCompleteJoin,
} from './rebalance.ts';

export interface HeartbeatEvent {
  readonly type: 'heartbeat';
  readonly token: Token;
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly generation: number;
}

export interface LeaveEvent {
  readonly type: 'leave';
  readonly token: Token;
  readonly members: readonly { readonly memberId: string; readonly instanceId: string | null }[];
}

export interface TickEvent {
  readonly type: 'tick';
}

/** 0 when the ids name a member, else UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID. */
export function memberFault(group: Group, memberId: string, instanceId: string | null): number {
  if (instanceId !== null) {
    const holder = group.instances.get(instanceId);
    if (holder === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
    if (holder !== memberId) return ErrorCode.FENCED_INSTANCE_ID;
  }
  return group.members.has(memberId) ? 0 : ErrorCode.UNKNOWN_MEMBER_ID;
}

/** As {@link memberFault}, and the generation must be the group's. */
export function generationFault(
  group: Group,
  { memberId, instanceId, generation }: Omit<HeartbeatEvent, 'type' | 'token'>,
): number {
  if (group.state === 'Dead') return ErrorCode.COORDINATOR_NOT_AVAILABLE;
  const fault = memberFault(group, memberId, instanceId);
  if (fault !== 0) return fault;
  return generation === group.generation ? 0 : ErrorCode.ILLEGAL_GENERATION;
}

/** A sign of life: a whole session from now on. */
export function touch(member: Member, now: number): void {
  member.deadlineMs = now + member.sessionTimeoutMs;
}

export function onHeartbeat(
  group: Group,
  event: HeartbeatEvent,
  { now, effects }: StepContext,
): void {
  let errorCode = generationFault(group, event);
  if (errorCode === 0) {
    touch(group.members.get(event.memberId)!, now);
    if (group.state === 'PreparingRebalance') errorCode = ErrorCode.REBALANCE_IN_PROGRESS;
  }
  effects.push({ kind: 'reply', token: event.token, errorCode });
}

export function onLeave(group: Group, event: LeaveEvent, context: StepContext): void {
  const errorCodes = event.members.map((leaver) => leave(group, leaver, context));
  context.effects.push({ kind: 'leave-reply', token: event.token, errorCodes });
}

function leave(group: Group, leaver: LeaveEvent['members'][number], context: StepContext): number {
  if (group.state === 'Dead') return ErrorCode.COORDINATOR_NOT_AVAILABLE;
  const { instanceId } = leaver;
  // An operator names a static member by its instance alone.
  const known = instanceId === null ? undefined : group.instances.get(instanceId);
  const memberId = leaver.memberId === '' && known !== undefined ? known : leaver.memberId;
  if (group.pending.delete(memberId)) {
    tryCompleteJoin(group, context);
    return 0;
  }
  const fault = memberFault(group, memberId, instanceId);
  if (fault === 0) removeMember(group, group.members.get(memberId)!, context);
  return fault;
}

/** Ends what is overdue: pending ids, sessions, the wait for syncs, the wait for joins. */
export function onTick(group: Group, context: StepContext): void {
  const { now } = context;
  for (const [memberId, deadlineMs] of group.pending)
    if (deadlineMs <= now) group.pending.delete(memberId);
  for (const member of [...group.members.values()])
    if (isWatched(member) && member.deadlineMs <= now && group.members.has(member.memberId))
      removeMember(group, member, context);
  if (group.syncDeadlineMs !== null && group.syncDeadlineMs <= now) endSyncPhase(group, context);
  tryCompleteJoin(group, context);
}

/** Members that were given a generation and never asked for their part of it are taken for dead. */
function endSyncPhase(group: Group, context: StepContext): void {
  const silent = [...group.unsynced].map((memberId) => group.members.get(memberId)!);
  group.unsynced.clear();
  group.syncDeadlineMs = null;
  if (silent.length === 0) return;
  for (const member of silent) dropMember(group, member, context);
  prepareRebalance(group, context);
}
