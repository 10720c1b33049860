// JoinGroup: newcomers, members that come back, static members that take over (KIP-345, KIP-394, KIP-814).
import { assert } from '../../../base/assert.ts';
import { ErrorCode } from '../../../protocol/errors.ts';
import { joinFailed } from './effects.ts';
import type { Group, Member, Protocol, Token } from './group.ts';
import { protocolBytes } from './group.ts';
import { memberFault, touch } from './membership.ts';
import { sameProtocols, selectProtocol, supportsProtocols } from './protocols.ts';
import {
  joinReply,
  memberList,
  prepareRebalance,
  type StepContext,
  tryCompleteJoin,
} from './rebalance.ts';

export interface JoinEvent {
  readonly type: 'join';
  readonly token: Token;
  /** '' on a first join. */
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly protocolType: string;
  readonly protocols: readonly Protocol[];
  /** v4+: a first join is only given its id (KIP-394). */
  readonly requireMemberId: boolean;
  /** v9+: a returning static leader may keep the assignment (KIP-814). */
  readonly canSkipAssignment: boolean;
  /** The id to give to a newcomer. */
  readonly newMemberId: string;
}

export function onJoin(group: Group, event: JoinEvent, context: StepContext): void {
  const fault = joinFault(group, event, context);
  if (fault !== 0) context.effects.push(joinFailed(event.token, fault, event.memberId));
  else if (event.memberId === '') joinNewcomer(group, event, context);
  else if (group.pending.has(event.memberId)) addMember(group, event.memberId, event, context);
  else rejoin(group, group.members.get(event.memberId)!, event, context);
}

function joinFault(group: Group, event: JoinEvent, { settings }: StepContext): number {
  const { memberId, instanceId, protocols } = event;
  if (group.state === 'Dead') return ErrorCode.COORDINATOR_NOT_AVAILABLE;
  const newcomer = memberId === '' && !group.instances.has(instanceId ?? '');
  const full = group.members.size + group.pending.size >= settings['group.max.size'];
  if (newcomer && full) return ErrorCode.GROUP_MAX_SIZE_REACHED;
  if (!supportsProtocols(group, event.protocolType, protocols))
    return ErrorCode.INCONSISTENT_GROUP_PROTOCOL;
  if (protocolBytes(protocols) > settings['group.max.member.metadata.bytes'])
    return ErrorCode.INVALID_REQUEST;
  if (memberId === '' || group.pending.has(memberId)) return 0;
  return memberFault(group, memberId, instanceId);
}

function joinNewcomer(group: Group, event: JoinEvent, context: StepContext): void {
  const { instanceId, newMemberId, token } = event;
  if (instanceId !== null && group.instances.has(instanceId)) replaceStatic(group, event, context);
  else if (instanceId === null && event.requireMemberId) {
    group.pending.set(newMemberId, context.now + event.sessionTimeoutMs);
    context.effects.push(joinFailed(token, ErrorCode.MEMBER_ID_REQUIRED, newMemberId));
  } else addMember(group, newMemberId, event, context);
}

function addMember(group: Group, memberId: string, event: JoinEvent, context: StepContext): void {
  assert(!group.members.has(memberId), 'G6: a new member is new');
  group.pending.delete(memberId);
  const { instanceId } = event;
  const member: Member = {
    memberId,
    instanceId,
    ...described(event),
    assignment: new Uint8Array(0),
    joinToken: event.token,
    syncToken: null,
    isNew: true,
    deadlineMs: context.now + context.settings['group.new.member.join.timeout.ms'],
  };
  group.members.set(memberId, member);
  if (instanceId !== null) group.instances.set(instanceId, memberId);
  group.leaderId ??= memberId;
  group.protocolType = event.protocolType;
  if (group.join?.kind === 'initial') group.join = { ...group.join, memberAdded: true };
  rebalance(group, context);
}

/** What a member tells of itself with each join; bytes are copied out of the request's frame. */
function described(event: JoinEvent) {
  const { clientId, clientHost, sessionTimeoutMs, rebalanceTimeoutMs } = event;
  const protocols = event.protocols.map(({ name, metadata }) => ({
    name,
    metadata: new Uint8Array(metadata),
  }));
  return { clientId, clientHost, sessionTimeoutMs, rebalanceTimeoutMs, protocols };
}

function rebalance(group: Group, context: StepContext): void {
  if (group.state !== 'PreparingRebalance') prepareRebalance(group, context);
  tryCompleteJoin(group, context);
}

function rejoin(group: Group, member: Member, event: JoinEvent, context: StepContext): void {
  const same = sameProtocols(member.protocols, event.protocols);
  // The answer may have been lost: give it again rather than rebalance.
  const repeat =
    (group.state === 'CompletingRebalance' && same) ||
    (group.state === 'Stable' && same && group.leaderId !== member.memberId);
  if (repeat) {
    touch(member, context.now);
    context.effects.push({
      kind: 'join-reply',
      token: event.token,
      reply: joinReply(group, member),
    });
    return;
  }
  wait(member, event, context);
  rebalance(group, context);
}

/** The member waits for the next generation, by its newest request alone. */
function wait(member: Member, event: JoinEvent, { effects }: StepContext): void {
  if (member.joinToken !== null)
    effects.push(joinFailed(member.joinToken, ErrorCode.REBALANCE_IN_PROGRESS, member.memberId));
  Object.assign(member, described(event));
  member.joinToken = event.token;
}

/** The instance is back under a new id; whoever uses the old one is fenced. */
function replaceStatic(group: Group, event: JoinEvent, context: StepContext): void {
  const leaderBefore = group.leaderId!;
  const old = group.members.get(group.instances.get(event.instanceId!)!)!;
  const member = takeOver(group, old, event, context);
  if (group.state === 'Stable' && selectProtocol(group) === group.protocol) {
    const isLeader = group.leaderId === member.memberId;
    const skip = event.canSkipAssignment && isLeader;
    // Older clients are told the old leader id, so that nobody takes itself for the leader of a stable group:
    // an assignment it made would reach no one.
    const leaderId = event.canSkipAssignment ? group.leaderId! : leaderBefore;
    const members = skip ? memberList(group) : [];
    const reply = { ...joinReply(group, member), leaderId, skipAssignment: skip, members };
    context.effects.push({
      kind: 'persist',
      reason: { kind: 'static', token: event.token, reply },
    });
    return;
  }
  member.joinToken = event.token;
  rebalance(group, context);
}

function takeOver(
  group: Group,
  old: Member,
  event: JoinEvent,
  { now, effects }: StepContext,
): Member {
  const { newMemberId: memberId } = event;
  if (old.joinToken !== null)
    effects.push(joinFailed(old.joinToken, ErrorCode.FENCED_INSTANCE_ID, old.memberId));
  if (old.syncToken !== null)
    effects.push({
      kind: 'sync-reply',
      token: old.syncToken,
      reply: {
        errorCode: ErrorCode.FENCED_INSTANCE_ID,
        protocolType: null,
        protocol: null,
        assignment: new Uint8Array(0),
      },
    });
  const member: Member = {
    ...old,
    memberId,
    ...described(event),
    joinToken: null,
    syncToken: null,
    deadlineMs: 0,
  };
  touch(member, now);
  group.members.delete(old.memberId);
  group.unsynced.delete(old.memberId);
  group.members.set(memberId, member);
  group.instances.set(event.instanceId!, memberId);
  if (group.leaderId === old.memberId) group.leaderId = memberId;
  return member;
}
