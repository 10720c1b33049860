// Members of a consumer group that still speak the classic protocol (KIP-848, online upgrade): JoinGroup, SyncGroup,
// Heartbeat and LeaveGroup, answered from the group's own assignment. Nobody leads: all are followers.
import { isFloeError } from '../../../base/error.ts';
import type { StoredClassicSide } from '../../../metadata/groups.ts';
import { ErrorCode } from '../../../protocol/errors.ts';
import {
  type ConsumerSubscription,
  decodeSubscription,
} from '../../../protocol/messages/consumer-protocol.ts';
import { CONSUMER_PROTOCOL } from '../classic/subscription.ts';
import {
  type ConsumerGroup,
  type ConsumerMember,
  JOINING,
  raiseEpoch,
  removeMember,
  updateMember,
} from './group.ts';
import { advance, type ConsumerContext, joiningMember, sameList, sorted } from './heartbeat.ts';
import { waitsForOthers } from './reconcile.ts';

export interface ClassicJoin {
  readonly type: 'classic-join';
  readonly memberId: string;
  readonly newMemberId: string;
  readonly instanceId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly protocolType: string;
  readonly protocols: StoredClassicSide['protocols'];
  readonly requireMemberId: boolean;
}

export interface ClassicMemberRequest {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly generation: number;
}

export interface ClassicSync extends ClassicMemberRequest {
  readonly type: 'classic-sync';
  readonly protocolType: string | null;
  readonly protocol: string | null;
}

export interface ClassicHeartbeat extends ClassicMemberRequest {
  readonly type: 'classic-heartbeat';
}

export interface ClassicLeave {
  readonly type: 'classic-leave';
  readonly members: readonly { readonly memberId: string; readonly instanceId: string | null }[];
}

export interface ClassicJoined {
  readonly errorCode: number;
  readonly memberId: string;
  readonly generation: number;
  readonly protocol: string | null;
}

export interface ClassicSynced {
  readonly errorCode: number;
  readonly assigned: readonly number[];
  /** Of the consumer protocol, in which the assignment is to be written. */
  readonly version: number;
}

export function onClassicJoin(
  group: ConsumerGroup,
  event: ClassicJoin,
  context: ConsumerContext,
): ClassicJoined {
  const { memberId, newMemberId, instanceId } = event;
  const subscription = subscriptionOf(event.protocols);
  const fault = joinFault(group, event, { subscription, context });
  if (fault !== 0) return refused(fault, memberId);
  if (memberId === '' && instanceId === null && event.requireMemberId)
    return refused(ErrorCode.MEMBER_ID_REQUIRED, newMemberId);
  const ids = { memberId: memberId === '' ? newMemberId : memberId, instanceId };
  const member = joiningMember(group, ids, context.now);
  const changed = describeClassic(group, member, event, subscription!);
  member.sessionDeadlineMs = context.now + event.sessionTimeoutMs;
  member.joinDeadlineMs = Infinity;
  member.syncDeadlineMs = context.now + event.rebalanceTimeoutMs;
  member.revokeDeadlineMs = Infinity;
  advance(group, member, { changed, owned: ownedBy(subscription!, context) }, context);
  return {
    errorCode: 0,
    memberId: member.memberId,
    generation: member.epoch,
    protocol: event.protocols[0]!.name,
  };
}

const refused = (errorCode: number, memberId: string): ClassicJoined => ({
  errorCode,
  memberId,
  generation: -1,
  protocol: null,
});

/** What the first of its protocols says; undefined when that isn't the consumer protocol's. */
function subscriptionOf(
  protocols: StoredClassicSide['protocols'],
): ConsumerSubscription | undefined {
  try {
    return protocols.length === 0 ? undefined : decodeSubscription(protocols[0]!.metadata);
  } catch (caught) {
    if (isFloeError(caught, 'invalid', 'exhausted')) return undefined;
    throw caught;
  }
}

/** Partition ids; members of version 0 give up everything before they join. */
function ownedBy({ ownedPartitions }: ConsumerSubscription, { topics }: ConsumerContext): number[] {
  return ownedPartitions.flatMap(({ topic, partitions }) => {
    const ids = topics.partitionsOf(topic) ?? [];
    return partitions.flatMap((index) => ids[index] ?? []);
  });
}

interface JoinChecks {
  readonly subscription: ConsumerSubscription | undefined;
  readonly context: ConsumerContext;
}

function joinFault(
  group: ConsumerGroup,
  event: ClassicJoin,
  { subscription, context: { config } }: JoinChecks,
): number {
  const { memberId, instanceId } = event;
  const known = group.members.has(memberId);
  if (group.members.size >= config.maxSize && !known) return ErrorCode.GROUP_MAX_SIZE_REACHED;
  if (!supportsClassic(group, event)) return ErrorCode.INCONSISTENT_GROUP_PROTOCOL;
  // Kafka meets it while assigning, and answers the same.
  if (subscription === undefined) return ErrorCode.UNKNOWN_SERVER_ERROR;
  if (instanceId === null || memberId === '') return 0;
  const holder = group.instances.get(instanceId);
  if (holder === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
  return holder === memberId ? 0 : ErrorCode.FENCED_INSTANCE_ID;
}

/** A classic member must share a protocol with all the other classic ones: they might become a classic group again. */
function supportsClassic(group: ConsumerGroup, { protocolType, protocols }: ClassicJoin): boolean {
  if (protocolType !== CONSUMER_PROTOCOL) return false;
  const others = [...group.members.values()].flatMap(({ classic }) => classic ?? []);
  return protocols.some(({ name }) =>
    others.every((classic) => classic.protocols.some((protocol) => protocol.name === name)),
  );
}

/** True when the subscription changed. */
function describeClassic(
  group: ConsumerGroup,
  member: ConsumerMember,
  event: ClassicJoin,
  subscription: ConsumerSubscription,
): boolean {
  const { sessionTimeoutMs } = event;
  const topicNames = sorted(subscription.topics);
  const same = sameList(topicNames, member.topicNames) && member.topicRegex === '';
  const protocols = event.protocols.map(({ name, metadata }) => ({
    name,
    metadata: new Uint8Array(metadata),
  }));
  updateMember(group, member, {
    clientId: event.clientId,
    clientHost: event.clientHost,
    instanceId: event.instanceId ?? member.instanceId,
    rackId: subscription.rackId ?? member.rackId,
    rebalanceTimeoutMs: event.rebalanceTimeoutMs,
    topicNames: same ? member.topicNames : topicNames,
    topicRegex: '',
    classic: { sessionTimeoutMs, protocols },
    ...(member.epoch < 0 ? { epoch: JOINING, previousEpoch: JOINING } : {}),
  });
  return !same;
}

/** The member, or an error code. */
function classicMember(
  group: ConsumerGroup,
  { memberId, instanceId, generation }: ClassicMemberRequest,
): ConsumerMember | number {
  if (instanceId !== null) {
    const holder = group.instances.get(instanceId);
    if (holder === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
    if (holder !== memberId) return ErrorCode.FENCED_INSTANCE_ID;
  }
  const member = group.members.get(memberId);
  if (member === undefined || member.classic === null) return ErrorCode.UNKNOWN_MEMBER_ID;
  return member.epoch === generation ? member : ErrorCode.ILLEGAL_GENERATION;
}

export function onClassicSync(
  group: ConsumerGroup,
  event: ClassicSync,
  { now }: ConsumerContext,
): ClassicSynced {
  const failed = (errorCode: number): ClassicSynced => ({ errorCode, assigned: [], version: 0 });
  const member = classicMember(group, event);
  if (typeof member === 'number') return failed(member);
  const { protocolType, protocol } = event;
  const chosen = member.classic!.protocols[0]!;
  if (protocolType !== null && protocolType !== CONSUMER_PROTOCOL)
    return failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
  if (protocol !== null && protocol !== chosen.name)
    return failed(ErrorCode.INCONSISTENT_GROUP_PROTOCOL);
  // One that gives partitions up has joined already; it learns here what it keeps.
  if (group.epoch > member.epoch && member.state !== 'unrevoked') {
    expectJoin(member, now);
    return failed(ErrorCode.REBALANCE_IN_PROGRESS);
  }
  member.syncDeadlineMs = Infinity;
  member.sessionDeadlineMs = now + member.classic!.sessionTimeoutMs;
  return { errorCode: 0, assigned: member.assigned, version: versionOf(chosen.metadata) };
}

/** The version that a subscription is written in: its first two bytes. */
export function versionOf(metadata: Uint8Array): number {
  return metadata.length < 2 ? 0 : (metadata[0]! << 8) | metadata[1]!;
}

function expectJoin(member: ConsumerMember, now: number): void {
  member.joinDeadlineMs = Math.min(member.joinDeadlineMs, now + member.rebalanceTimeoutMs);
}

/** Returns an error code; REBALANCE_IN_PROGRESS asks it to join again. */
export function onClassicHeartbeat(
  group: ConsumerGroup,
  event: ClassicHeartbeat,
  { now }: ConsumerContext,
): number {
  const member = classicMember(group, event);
  if (typeof member === 'number') return member;
  member.sessionDeadlineMs = now + member.classic!.sessionTimeoutMs;
  const mustJoin =
    member.epoch < group.epoch ||
    member.state === 'unrevoked' ||
    (member.state === 'unreleased' && !waitsForOthers(group, member));
  if (!mustJoin) return 0;
  expectJoin(member, now);
  return ErrorCode.REBALANCE_IN_PROGRESS;
}

/** An error code for each, in order. Operators may name members of either protocol. */
export function onClassicLeave(
  group: ConsumerGroup,
  { members }: ClassicLeave,
  { now }: ConsumerContext,
): readonly number[] {
  const codes = members.map(({ memberId, instanceId }) => {
    const holder = instanceId === null ? memberId : group.instances.get(instanceId);
    const member = group.members.get(holder ?? '');
    if (member === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
    if (memberId !== '' && memberId !== holder) return ErrorCode.FENCED_INSTANCE_ID;
    removeMember(group, member);
    return 0;
  });
  if (codes.includes(0)) raiseEpoch(group, now);
  return codes;
}
