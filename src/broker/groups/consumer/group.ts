// A group of the consumer protocol (KIP-848) as data, with the questions that are asked of it and the few ways to
// change a member that keep its indexes right. The events are in step.ts and its neighbours; SPEC.md has the states,
// the table and the numbered invariants (K1 …). Not for: offsets, timers and storage.
import { assert } from '../../../base/assert.ts';
import type {
  StoredClassicSide,
  StoredConsumerGroup,
  StoredConsumerMember,
} from '../../../metadata/groups.ts';
import { NO_PARTITIONS, type Partitions, union } from './partitions.ts';

export const CONSUMER_GROUP_STATES = [
  'Empty',
  'Assigning',
  'Reconciling',
  'Stable',
  'Dead',
] as const;
export type ConsumerGroupState = (typeof CONSUMER_GROUP_STATES)[number];

/** Where a member stands on the way from what it owns to what it shall own. */
export type MemberState =
  /** It owns its target of `epoch`. */
  | 'stable'
  /** It was asked to give partitions up and hasn't said that it has: it stays in its epoch. */
  | 'unrevoked'
  /** It waits for partitions that others still own. */
  | 'unreleased';

/** Epochs with a meaning of their own (KIP-848). */
export const JOINING = 0;
export const LEAVING = -1;
/** A static member leaves for a while: its partitions wait for it as long as its session lasts. */
export const LEAVING_FOR_A_WHILE = -2;

export interface ConsumerMember {
  readonly memberId: string;
  instanceId: string | null;
  rackId: string | null;
  clientId: string;
  clientHost: string;
  rebalanceTimeoutMs: number;
  /** Ascending. */
  topicNames: readonly string[];
  /** '' for none. */
  topicRegex: string;
  assignor: string | null;
  /** Set while the member speaks the classic protocol. */
  classic: StoredClassicSide | null;
  readonly state: MemberState;
  readonly epoch: number;
  readonly previousEpoch: number;
  readonly assigned: Partitions;
  /** For each of `assigned`, the epoch in which the member got it (KIP-1251). */
  readonly assignedSince: readonly number[];
  readonly revoking: Partitions;
  readonly target: Partitions;
  /** Its assignment has changed since it was told one. */
  untold: boolean;
  /** When it is taken for dead unless it is heard of. */
  sessionDeadlineMs: number;
  /** When it must have given up `revoking`; Infinity while it need not. */
  revokeDeadlineMs: number;
  /** Classic members: when it must have joined again, and when it must have sent SyncGroup. */
  joinDeadlineMs: number;
  syncDeadlineMs: number;
}

export interface ConsumerGroup {
  readonly kind: 'consumer';
  readonly groupId: string;
  /** Raised by every change of membership, subscriptions or topics. */
  epoch: number;
  /** The epoch that the targets were made for. */
  assignmentEpoch: number;
  stateSinceMs: number;
  dead: boolean;
  /** By member id, in order of joining. */
  readonly members: Map<string, ConsumerMember>;
  /** Instance id → member id (KIP-345). */
  readonly instances: Map<string, string>;
  /** Partition → the member that owns it or hasn't given it up yet. */
  readonly owners: Map<number, string>;
  /** What subscriptions meant when last looked at: topic name or pattern → its partitions. Not stored. */
  sources: ReadonlyMap<string, Partitions>;
  /** Pattern → names of the topics that were found for it. Not stored. */
  patterns: ReadonlyMap<string, readonly string[]>;
  /** Patterns to be looked up with the next heartbeat. */
  readonly unresolved: Set<string>;
  /** The version of the topics that `sources` is of, or one of the two below. */
  topicsVersion: number;
  /** What the store doesn't have yet. */
  readonly unsaved: Unsaved;
}

interface Unsaved {
  header: boolean;
  /** Everything, because nobody knows what the store has. */
  whole: boolean;
  readonly members: Set<string>;
  readonly gone: Set<string>;
}

/** Nobody has subscribed to anything yet. */
const NEVER_LOOKED = -2;
/** Restored: the assignment alone tells what subscriptions meant. */
export const FROM_ASSIGNMENT = -1;

/** The epoch of a group nobody has joined yet, as in Kafka. */
const FIRST_EPOCH = 1;

export function newConsumerGroup(groupId: string, now: number): ConsumerGroup {
  return {
    kind: 'consumer',
    groupId,
    epoch: FIRST_EPOCH,
    assignmentEpoch: 0,
    stateSinceMs: now,
    dead: false,
    members: new Map(),
    instances: new Map(),
    owners: new Map(),
    sources: NO_SOURCES,
    patterns: NO_PATTERNS,
    unresolved: new Set(),
    topicsVersion: NEVER_LOOKED,
    unsaved: { header: false, whole: false, members: new Set(), gone: new Set() },
  };
}

const NO_SOURCES: ReadonlyMap<string, Partitions> = new Map();
const NO_PATTERNS: ReadonlyMap<string, readonly string[]> = new Map();

export function newMember(memberId: string, now: number): ConsumerMember {
  return {
    memberId,
    instanceId: null,
    rackId: null,
    clientId: '',
    clientHost: '',
    rebalanceTimeoutMs: 0,
    topicNames: [],
    topicRegex: '',
    assignor: null,
    classic: null,
    state: 'stable',
    epoch: JOINING,
    previousEpoch: JOINING,
    assigned: NO_PARTITIONS,
    assignedSince: [],
    revoking: NO_PARTITIONS,
    target: NO_PARTITIONS,
    untold: true,
    sessionDeadlineMs: now,
    revokeDeadlineMs: Infinity,
    joinDeadlineMs: Infinity,
    syncDeadlineMs: Infinity,
  };
}

/** A group as it was stored; its members have a whole session, and a whole rebalance timeout, to be heard of. */
export function restoreConsumerGroup(
  stored: StoredConsumerGroup,
  { now, sessionTimeoutMs }: { readonly now: number; readonly sessionTimeoutMs: number },
): ConsumerGroup {
  const group = newConsumerGroup(stored.groupId, stored.stateSinceMs);
  group.epoch = stored.epoch;
  group.assignmentEpoch = stored.assignmentEpoch;
  group.topicsVersion = FROM_ASSIGNMENT;
  for (const each of stored.members) {
    const session = each.classic?.sessionTimeoutMs ?? sessionTimeoutMs;
    const member: ConsumerMember = {
      ...newMember(each.memberId, now),
      ...each,
      sessionDeadlineMs: now + session,
      revokeDeadlineMs: each.state === 'unrevoked' ? now + each.rebalanceTimeoutMs : Infinity,
    };
    group.members.set(member.memberId, member);
    if (member.instanceId !== null) group.instances.set(member.instanceId, member.memberId);
    for (const id of member.assigned) group.owners.set(id, member.memberId);
    for (const id of member.revoking) group.owners.set(id, member.memberId);
  }
  assertConsumerGroup(group);
  return group;
}

export function snapshotConsumerMember(member: ConsumerMember): StoredConsumerMember {
  const {
    untold: _untold,
    sessionDeadlineMs: _session,
    revokeDeadlineMs: _revoke,
    joinDeadlineMs: _join,
    syncDeadlineMs: _sync,
    ...stored
  } = member;
  return stored;
}

/** A change of the store, and nothing unsaved any more; undefined when nothing was. */
export function takeUnsaved(group: ConsumerGroup) {
  const { unsaved, members } = group;
  const { header, whole } = unsaved;
  if (!header && !whole && unsaved.members.size === 0 && unsaved.gone.size === 0) return undefined;
  const changed = whole
    ? [...members.values()]
    : [...unsaved.members].map((memberId) => members.get(memberId)!);
  const change = {
    kind: 'consumer-group',
    group: {
      kind: 'consumer',
      groupId: group.groupId,
      epoch: group.epoch,
      assignmentEpoch: group.assignmentEpoch,
      stateSinceMs: group.stateSinceMs,
      members: changed.map(snapshotConsumerMember),
    },
    whole,
    gone: whole ? [] : [...unsaved.gone],
  } as const;
  unsaved.header = false;
  unsaved.whole = false;
  unsaved.members.clear();
  unsaved.gone.clear();
  return change;
}

export function consumerGroupState(group: ConsumerGroup): ConsumerGroupState {
  if (group.dead) return 'Dead';
  if (group.members.size === 0) return 'Empty';
  if (group.epoch > group.assignmentEpoch) return 'Assigning';
  for (const member of group.members.values())
    if (!isReconciled(group, member)) return 'Reconciling';
  return 'Stable';
}

export function isReconciled(group: ConsumerGroup, { state, epoch }: ConsumerMember): boolean {
  return state === 'stable' && epoch === group.assignmentEpoch;
}

/** Changes fields of a member that are stored; the indexes follow. */
export function updateMember(
  group: ConsumerGroup,
  member: ConsumerMember,
  fields: Partial<StoredConsumerMember>,
): void {
  const { memberId } = member;
  const before = member.instanceId;
  const owned = 'assigned' in fields || 'revoking' in fields;
  if (owned) disown(group, member);
  Object.assign(member, fields);
  if (owned) own(group, member);
  if (before !== member.instanceId) {
    if (before !== null && group.instances.get(before) === memberId) group.instances.delete(before);
    if (member.instanceId !== null) group.instances.set(member.instanceId, memberId);
  }
  group.unsaved.members.add(memberId);
}

function own(group: ConsumerGroup, { memberId, assigned, revoking }: ConsumerMember): void {
  for (const id of union(assigned, revoking)) {
    assert(!group.owners.has(id), 'K1: a partition has one owner');
    group.owners.set(id, memberId);
  }
}

function disown(group: ConsumerGroup, { assigned, revoking }: ConsumerMember): void {
  for (const id of assigned) group.owners.delete(id);
  for (const id of revoking) group.owners.delete(id);
}

export function addMember(group: ConsumerGroup, member: ConsumerMember): void {
  assert(!group.members.has(member.memberId), 'K5: a new member is new');
  group.members.set(member.memberId, member);
  if (member.instanceId !== null) group.instances.set(member.instanceId, member.memberId);
  own(group, member);
  group.unsaved.members.add(member.memberId);
  group.unsaved.gone.delete(member.memberId);
}

export function removeMember(group: ConsumerGroup, member: ConsumerMember): void {
  const { memberId, instanceId } = member;
  disown(group, member);
  group.members.delete(memberId);
  if (instanceId !== null && group.instances.get(instanceId) === memberId)
    group.instances.delete(instanceId);
  group.unsaved.members.delete(memberId);
  group.unsaved.gone.add(memberId);
  forgetPattern(group, member.topicRegex);
}

/** A pattern that nobody subscribes to any more is new again to whoever comes with it. */
function forgetPattern(group: ConsumerGroup, pattern: string): void {
  if (!group.patterns.has(pattern)) return;
  for (const { topicRegex } of group.members.values()) if (topicRegex === pattern) return;
  const patterns = new Map(group.patterns);
  patterns.delete(pattern);
  group.patterns = patterns;
}

/** Asks for a new assignment. */
export function raiseEpoch(group: ConsumerGroup, now: number): void {
  group.epoch += 1;
  group.stateSinceMs = now;
  group.unsaved.header = true;
}

/** The next moment at which `tick` has something to do; Infinity for never. */
export function nextConsumerDeadline(group: ConsumerGroup): number {
  let next = Infinity;
  for (const member of group.members.values()) next = Math.min(next, memberDeadline(member));
  return next;
}

export function memberDeadline(member: ConsumerMember): number {
  return Math.min(
    member.sessionDeadlineMs,
    member.revokeDeadlineMs,
    member.joinDeadlineMs,
    member.syncDeadlineMs,
  );
}

/** Checks K1 to K5 of SPEC.md, as far as they concern one moment; called after every change. */
export function assertConsumerGroup(group: ConsumerGroup): void {
  let owned = 0;
  for (const member of group.members.values()) {
    owned += member.assigned.length + member.revoking.length;
    assert(member.epoch <= group.epoch, 'K2: no member is ahead of its group');
    assert(
      member.assigned.length === member.assignedSince.length,
      'K3: every assigned partition has its epoch',
    );
    assert(
      (member.state === 'unrevoked') === member.revoking.length > 0,
      'K3: a member revokes iff it has partitions to give up',
    );
    assert(
      member.instanceId === null || group.instances.get(member.instanceId) === member.memberId,
      'K5: an instance id names its member',
    );
  }
  assert(owned === group.owners.size, 'K1: a partition has one owner');
  assert(group.assignmentEpoch <= group.epoch, 'K2: no assignment is ahead of its group');
}
