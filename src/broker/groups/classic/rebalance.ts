// The parts of a rebalance that several events share: begin, end of the join phase, loss of a member.
// Each function changes the group and appends to `effects`.
import { assert } from '../../../base/assert.ts';
import { ErrorCode } from '../../../protocol/errors.ts';
import type { GroupSettings } from '../settings.ts';
import { type Effect, type JoinReply, joinFailed, syncFailed } from './effects.ts';
import { allJoined, enter, type Group, type Member, rebalanceTimeoutMs } from './group.ts';
import { metadataOf, selectProtocol } from './protocols.ts';

export interface StepContext {
  readonly now: number;
  readonly settings: GroupSettings;
  readonly effects: Effect[];
}

/** Asks all members to join anew. Those who wait for an assignment are told so at once. */
export function prepareRebalance(group: Group, context: StepContext): void {
  const { now, settings } = context;
  assert(
    group.state !== 'Dead' && group.state !== 'PreparingRebalance',
    'G4: one rebalance at a time',
  );
  if (group.state === 'CompletingRebalance')
    dropAssignments(group, ErrorCode.REBALANCE_IN_PROGRESS, context);
  group.unsynced.clear();
  group.syncDeadlineMs = null;
  group.persisting = false;
  const limit = rebalanceTimeoutMs(group);
  if (group.state === 'Empty') {
    const delay = Math.min(settings['group.initial.rebalance.delay.ms'], limit);
    group.join = {
      kind: 'initial',
      deadlineMs: now + delay,
      remainingMs: limit - delay,
      memberAdded: false,
    };
  } else group.join = { kind: 'rebalance', deadlineMs: now + limit };
  enter(group, 'PreparingRebalance', now);
}

/** Forgets the assignment under way and answers those who wait for it. */
export function dropAssignments(
  group: Group,
  errorCode: number,
  { effects, now }: StepContext,
): void {
  for (const member of group.members.values()) {
    member.assignment = NO_ASSIGNMENT;
    if (member.syncToken === null) continue;
    effects.push(syncFailed(member.syncToken, errorCode));
    member.syncToken = null;
    member.deadlineMs = now + member.sessionTimeoutMs;
  }
}

/** Ends the join phase if there is nothing left to wait for. */
export function tryCompleteJoin(group: Group, context: StepContext): void {
  const { join } = group;
  if (join === null) return;
  const due = join.deadlineMs <= context.now;
  if (join.kind === 'initial' ? due : due || allJoined(group)) completeJoin(group, context);
}

function completeJoin(group: Group, context: StepContext): void {
  const { join } = group;
  if (join?.kind === 'initial' && join.memberAdded && join.remainingMs > 0) {
    const delay = Math.min(context.settings['group.initial.rebalance.delay.ms'], join.remainingMs);
    const deadlineMs = context.now + delay;
    group.join = { ...join, deadlineMs, remainingMs: join.remainingMs - delay, memberAdded: false };
    return;
  }
  for (const member of [...group.members.values()])
    if (member.joinToken === null && member.instanceId === null) dropMember(group, member, context);
  if (group.members.size === 0) becomeEmpty(group, context);
  else if (electJoinedLeader(group)) beginGeneration(group, context);
  // All are static members and none has come back: they may still, until their sessions end.
  else
    group.join = {
      kind: 'rebalance',
      deadlineMs: context.now + Math.max(1, rebalanceTimeoutMs(group)),
    };
}

/** Keeps the leader if it has joined; else the first who has. False when nobody has. */
function electJoinedLeader(group: Group): boolean {
  if (group.members.get(group.leaderId!)?.joinToken != null) return true;
  for (const member of group.members.values()) {
    if (member.joinToken === null) continue;
    group.leaderId = member.memberId;
    return true;
  }
  return false;
}

function becomeEmpty(group: Group, { now, effects }: StepContext): void {
  group.generation += 1;
  group.protocol = null;
  group.join = null;
  group.syncDeadlineMs = null;
  group.persisting = false;
  enter(group, 'Empty', now);
  effects.push({ kind: 'persist', reason: { kind: 'empty' } });
}

function beginGeneration(group: Group, { now, effects }: StepContext): void {
  group.generation += 1;
  group.protocol = selectProtocol(group);
  group.join = null;
  group.syncDeadlineMs = now + rebalanceTimeoutMs(group);
  enter(group, 'CompletingRebalance', now);
  for (const member of group.members.values()) {
    group.unsynced.add(member.memberId);
    member.isNew = false;
    member.deadlineMs = now + member.sessionTimeoutMs;
    if (member.joinToken === null) continue;
    effects.push({ kind: 'join-reply', token: member.joinToken, reply: joinReply(group, member) });
    member.joinToken = null;
  }
}

/** The answer to a member of the current generation; the leader gets everybody's metadata. */
export function joinReply(group: Group, member: Member): JoinReply {
  return {
    errorCode: 0,
    generation: group.generation,
    protocolType: group.protocolType,
    protocol: group.protocol,
    leaderId: group.leaderId!,
    skipAssignment: false,
    memberId: member.memberId,
    members: member.memberId === group.leaderId ? memberList(group) : [],
  };
}

/** All members with their metadata for the group's protocol. */
export function memberList(group: Group): JoinReply['members'] {
  return [...group.members.values()].map(({ memberId, instanceId, protocols }) => ({
    memberId,
    instanceId,
    metadata: metadataOf(protocols, group.protocol),
  }));
}

/** Removes a member and lets the group go on without it. */
export function removeMember(group: Group, member: Member, context: StepContext): void {
  dropMember(group, member, context);
  if (group.state === 'Stable' || group.state === 'CompletingRebalance')
    prepareRebalance(group, context);
  tryCompleteJoin(group, context);
}

/** Takes a member out, answering what it waits for: it may be alive and join again. */
export function dropMember(group: Group, member: Member, { effects }: StepContext): void {
  const { memberId, instanceId, joinToken, syncToken } = member;
  if (joinToken !== null) effects.push(joinFailed(joinToken, ErrorCode.UNKNOWN_MEMBER_ID));
  if (syncToken !== null) effects.push(syncFailed(syncToken, ErrorCode.UNKNOWN_MEMBER_ID));
  group.members.delete(memberId);
  group.unsynced.delete(memberId);
  if (instanceId !== null && group.instances.get(instanceId) === memberId)
    group.instances.delete(instanceId);
  if (group.leaderId === memberId) group.leaderId = firstJoined(group);
}

/** The next leader: one who has joined, else the oldest member. */
function firstJoined(group: Group): string | null {
  let oldest: string | null = null;
  for (const { memberId, joinToken } of group.members.values()) {
    if (joinToken !== null) return memberId;
    oldest ??= memberId;
  }
  return oldest;
}

const NO_ASSIGNMENT = new Uint8Array(0);
