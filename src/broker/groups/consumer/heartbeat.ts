// ConsumerGroupHeartbeat: joins, subscribes, acknowledges, is alive, leaves (KIP-848). The request's own shape was
// checked before (validate.ts); here it meets the group.
import { ErrorCode } from '../../../protocol/errors.ts';
import { assignIfDue } from './assign.ts';
import {
  addMember,
  type ConsumerGroup,
  type ConsumerMember,
  JOINING,
  LEAVING_FOR_A_WHILE,
  newMember,
  raiseEpoch,
  removeMember,
  updateMember,
} from './group.ts';
import { isSubset, NO_PARTITIONS } from './partitions.ts';
import { reconcile } from './reconcile.ts';
import { refreshSources, type TopicView } from './topics.ts';

export interface ConsumerContext {
  /** Milliseconds. */
  readonly now: number;
  readonly topics: TopicView;
  /** Of this group: its own configs over the broker's settings. */
  readonly config: ConsumerGroupConfig;
}

export interface ConsumerGroupConfig {
  readonly sessionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly maxSize: number;
  /** Used when no member asks for one. */
  readonly defaultAssignor: string;
}

export interface ConsumerHeartbeat {
  readonly type: 'heartbeat';
  /** Never empty: the caller makes one for v0. */
  readonly memberId: string;
  /** 0 joins. */
  readonly memberEpoch: number;
  readonly instanceId: string | null;
  readonly rackId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  /** −1: as before. */
  readonly rebalanceTimeoutMs: number;
  /** Null: as before. */
  readonly topicNames: readonly string[] | null;
  readonly topicRegex: string | null;
  readonly assignor: string | null;
  /** Which topics a pattern may find, where not all. */
  readonly mayDescribe?: ((topic: string) => boolean) | undefined;
  /** Partition ids; null: as before. Partitions that don't exist are −1. */
  readonly owned: readonly number[] | null;
}

export interface ConsumerLeave {
  readonly type: 'leave';
  readonly memberId: string;
  readonly instanceId: string | null;
  /** False for a static member that will be back. */
  readonly forGood: boolean;
}

export interface HeartbeatReply {
  readonly errorCode: number;
  /** For people; '' without error. */
  readonly errorMessage: string;
  readonly memberId: string;
  readonly memberEpoch: number;
  readonly heartbeatIntervalMs: number;
  /** Partition ids; null when nothing changed since the member was told. */
  readonly assigned: readonly number[] | null;
}

export function refusedHeartbeat(errorCode: number, errorMessage: string): HeartbeatReply {
  return {
    errorCode,
    errorMessage,
    memberId: '',
    memberEpoch: 0,
    heartbeatIntervalMs: 0,
    assigned: null,
  };
}

export function onHeartbeat(
  group: ConsumerGroup,
  event: ConsumerHeartbeat,
  context: ConsumerContext,
): HeartbeatReply {
  const fault = heartbeatFault(group, event, context.config);
  if (fault !== undefined) return fault;
  const member = memberOf(group, event, context.now);
  const changed = describe(group, member, event);
  member.sessionDeadlineMs = context.now + context.config.sessionTimeoutMs;
  const { owned, mayDescribe } = event;
  advance(group, member, { changed, owned, mayDescribe }, context);
  const { memberId, epoch, assigned } = member;
  const tell = member.untold || isFull(event);
  member.untold = false;
  return {
    errorCode: 0,
    errorMessage: '',
    memberId,
    memberEpoch: epoch,
    heartbeatIntervalMs: context.config.heartbeatIntervalMs,
    assigned: tell ? assigned : null,
  };
}

export interface Advance {
  /** The member's subscription changed. */
  readonly changed: boolean;
  /** What it says it owns; null when it says nothing. */
  readonly owned: readonly number[] | null;
  readonly mayDescribe?: ConsumerHeartbeat['mayDescribe'];
}

/**
 * What follows from a member's request, in both protocols: the group's epoch rises if anything that an assignment
 * rests on has changed, a new assignment is made if it has risen, and the member goes as far towards it as it can.
 */
export function advance(
  group: ConsumerGroup,
  member: ConsumerMember,
  { changed, owned, mayDescribe }: Advance,
  { now, topics, config }: ConsumerContext,
): void {
  const isDue = group.epoch > group.assignmentEpoch;
  const isStale = group.topicsVersion !== topics.version || group.unresolved.size > 0;
  if (changed || isDue || isStale) {
    const moved = refreshSources(group, topics, { pattern: member.topicRegex, mayDescribe });
    if (changed || (moved && !isDue)) raiseEpoch(group, now);
  }
  assignIfDue(group, { topics, defaultAssignor: config.defaultAssignor });
  reconcile(group, member, { owned, now });
}

/** A request that says everything, as after an error: its sender may have missed answers. */
function isFull({ memberEpoch, rebalanceTimeoutMs, topicNames, owned }: ConsumerHeartbeat) {
  return (
    memberEpoch === JOINING || (rebalanceTimeoutMs !== -1 && topicNames !== null && owned !== null)
  );
}

function heartbeatFault(
  group: ConsumerGroup,
  event: ConsumerHeartbeat,
  { maxSize }: ConsumerGroupConfig,
): HeartbeatReply | undefined {
  const { memberId, instanceId, memberEpoch } = event;
  const joins = memberEpoch === JOINING;
  if (group.members.size >= maxSize && !group.members.has(memberId))
    return refusedHeartbeat(
      ErrorCode.GROUP_MAX_SIZE_REACHED,
      `group ${group.groupId} has ${maxSize} members, as many as group.consumer.max.size allows`,
    );
  if (instanceId === null) {
    const member = group.members.get(memberId);
    if (member === undefined) return joins ? undefined : unknownMember(group, memberId);
    return epochFault(member, event);
  }
  const holder = group.members.get(group.instances.get(instanceId) ?? '');
  if (joins) return holder === undefined ? undefined : releaseFault(holder, event);
  return holderFault(group, holder, event) ?? epochFault(holder!, event);
}

export function unknownMember({ groupId }: ConsumerGroup, memberId: string): HeartbeatReply {
  return refusedHeartbeat(
    ErrorCode.UNKNOWN_MEMBER_ID,
    `member ${memberId} is not in group ${groupId}: it must join again`,
  );
}

/** Who holds the instance id must be the sender. */
function holderFault(
  group: ConsumerGroup,
  holder: ConsumerMember | undefined,
  { memberId, instanceId }: { readonly memberId: string; readonly instanceId: string | null },
): HeartbeatReply | undefined {
  if (holder === undefined)
    return refusedHeartbeat(
      ErrorCode.UNKNOWN_MEMBER_ID,
      `instance ${instanceId} is not in group ${group.groupId}`,
    );
  if (holder.memberId === memberId) return undefined;
  return refusedHeartbeat(
    ErrorCode.FENCED_INSTANCE_ID,
    `instance ${instanceId} is member ${holder.memberId} now, not ${memberId}`,
  );
}

/** Another member may take an instance over only when its holder has left, or speaks the classic protocol. */
function releaseFault(
  holder: ConsumerMember,
  event: ConsumerHeartbeat,
): HeartbeatReply | undefined {
  if (holder.epoch === LEAVING_FOR_A_WHILE || holder.classic !== null) return undefined;
  if (holder.memberId === event.memberId) return epochFault(holder, event);
  return refusedHeartbeat(
    ErrorCode.UNRELEASED_INSTANCE_ID,
    `instance ${event.instanceId} is held by member ${holder.memberId}, which has not left`,
  );
}

function epochFault(
  { epoch, previousEpoch, assigned }: ConsumerMember,
  { memberEpoch, owned }: ConsumerHeartbeat,
): HeartbeatReply | undefined {
  if (memberEpoch === epoch || memberEpoch === JOINING) return undefined;
  // The answer that raised the epoch may have been lost.
  const missedAnswer = memberEpoch === previousEpoch && owned !== null && isSubset(owned, assigned);
  if (memberEpoch < epoch && missedAnswer) return undefined;
  return refusedHeartbeat(
    ErrorCode.FENCED_MEMBER_EPOCH,
    `the member's epoch is ${epoch}, not ${memberEpoch}: it must give up its partitions and join again`,
  );
}

function memberOf(group: ConsumerGroup, event: ConsumerHeartbeat, now: number): ConsumerMember {
  const member = joiningMember(group, event, now);
  // Away for a while, and back under the same id.
  if (member.epoch < 0) updateMember(group, member, { epoch: JOINING, previousEpoch: JOINING });
  return member;
}

/** The member of these ids: known, taking over an instance, or new. */
export function joiningMember(
  group: ConsumerGroup,
  { memberId, instanceId }: { readonly memberId: string; readonly instanceId: string | null },
  now: number,
): ConsumerMember {
  const holderId = instanceId === null ? undefined : group.instances.get(instanceId);
  if (holderId !== undefined && holderId !== memberId)
    return replaceMember(group, group.members.get(holderId)!, memberId);
  const known = group.members.get(memberId);
  if (known !== undefined) return known;
  const member = newMember(memberId, now);
  addMember(group, member);
  return member;
}

/** The instance is back as another member, which takes over all that it had. */
function replaceMember(
  group: ConsumerGroup,
  old: ConsumerMember,
  memberId: string,
): ConsumerMember {
  removeMember(group, old);
  const member: ConsumerMember = {
    ...old,
    memberId,
    epoch: JOINING,
    previousEpoch: JOINING,
    state: 'stable',
    assigned: old.assigned,
    revoking: NO_PARTITIONS,
    untold: true,
    revokeDeadlineMs: Infinity,
    joinDeadlineMs: Infinity,
    syncDeadlineMs: Infinity,
  };
  addMember(group, member);
  return member;
}

/** Takes over what the request says. True when the subscription changed. */
function describe(group: ConsumerGroup, member: ConsumerMember, event: ConsumerHeartbeat): boolean {
  const { clientId, clientHost } = event;
  const topicNames = event.topicNames === null ? member.topicNames : sorted(event.topicNames);
  const fields = {
    clientId,
    clientHost,
    instanceId: event.instanceId ?? member.instanceId,
    rackId: event.rackId ?? member.rackId,
    rebalanceTimeoutMs:
      event.rebalanceTimeoutMs === -1 ? member.rebalanceTimeoutMs : event.rebalanceTimeoutMs,
    assignor: event.assignor ?? member.assignor,
    topicRegex: event.topicRegex ?? member.topicRegex,
  };
  const sameNames = sameList(topicNames, member.topicNames);
  const subscription = !sameNames || fields.topicRegex !== member.topicRegex;
  const others = (Object.keys(fields) as (keyof typeof fields)[]).some(
    (key) => fields[key] !== member[key],
  );
  if (subscription || others || member.classic !== null)
    updateMember(group, member, { ...fields, topicNames, classic: null });
  if (member.joinDeadlineMs !== Infinity) member.joinDeadlineMs = Infinity;
  if (member.syncDeadlineMs !== Infinity) member.syncDeadlineMs = Infinity;
  return subscription;
}

export const sorted = (names: readonly string[]) => [...new Set(names)].sort();

export const sameList = (a: readonly string[], b: readonly string[]) =>
  a === b || (a.length === b.length && a.every((item, index) => item === b[index]));

export function onLeave(
  group: ConsumerGroup,
  event: ConsumerLeave,
  { now }: ConsumerContext,
): HeartbeatReply {
  const { memberId, instanceId, forGood } = event;
  const holder =
    instanceId === null
      ? group.members.get(memberId)
      : group.members.get(group.instances.get(instanceId) ?? '');
  if (instanceId === null && holder === undefined) return unknownMember(group, memberId);
  const fault = holderFault(group, holder, event);
  if (fault !== undefined) return fault;
  if (forGood) fence(group, holder!, now);
  else {
    updateMember(group, holder!, {
      epoch: LEAVING_FOR_A_WHILE,
      state: 'stable',
      revoking: NO_PARTITIONS,
    });
    holder!.revokeDeadlineMs = Infinity;
  }
  const memberEpoch = forGood ? -1 : LEAVING_FOR_A_WHILE;
  return { ...refusedHeartbeat(0, ''), memberId, memberEpoch };
}

/** Takes the member out; whoever is heard of next gets a new assignment. */
export function fence(group: ConsumerGroup, member: ConsumerMember, now: number): void {
  removeMember(group, member);
  raiseEpoch(group, now);
}
