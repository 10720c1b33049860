// A classic consumer group as data, with the questions that are asked of it. The events that change it are in
// step.ts and its neighbours; SPEC.md has the states, the table and the numbered invariants (G1 …).
// Not for: offsets (offsets.ts), timers and storage (coordinator.ts).
import { assert } from '../../../base/assert.ts';
import type { StoredGroup, StoredMember } from '../../../metadata/groups.ts';

export const GROUP_STATES = [
  'Empty',
  'PreparingRebalance',
  'CompletingRebalance',
  'Stable',
  'Dead',
] as const;
export type GroupState = (typeof GROUP_STATES)[number];

/** A request that waits for its answer; the coordinator knows which. */
export type Token = number;

export interface Protocol {
  readonly name: string;
  readonly metadata: Uint8Array;
}

export interface Member {
  readonly memberId: string;
  readonly instanceId: string | null;
  clientId: string;
  clientHost: string;
  sessionTimeoutMs: number;
  rebalanceTimeoutMs: number;
  protocols: readonly Protocol[];
  assignment: Uint8Array;
  /** JoinGroup and SyncGroup that wait. */
  joinToken: Token | null;
  syncToken: Token | null;
  /** Joined, but never answered: it can't know its id, hence can't heartbeat. */
  isNew: boolean;
  /** When the session ends unless it is heard of. Not watched while it waits for an answer, new members excepted. */
  deadlineMs: number;
}

/** The wait for members to (re)join. */
type JoinPhase =
  | {
      /** The first generation of an empty group: waits the whole delay, and again while members keep coming. */
      readonly kind: 'initial';
      readonly deadlineMs: number;
      readonly remainingMs: number;
      readonly memberAdded: boolean;
    }
  | {
      /** Ends as soon as all have joined. */
      readonly kind: 'rebalance';
      readonly deadlineMs: number;
    };

export interface Group {
  readonly kind: 'classic';
  readonly groupId: string;
  state: GroupState;
  stateSinceMs: number;
  /** '' until a member has joined. */
  protocolType: string;
  generation: number;
  protocol: string | null;
  leaderId: string | null;
  /** By member id, in order of joining. */
  readonly members: Map<string, Member>;
  /** Instance id → member id (KIP-345). */
  readonly instances: Map<string, string>;
  /** Ids handed out by MEMBER_ID_REQUIRED and not used yet → when they expire (KIP-394). */
  readonly pending: Map<string, number>;
  /** Members of this generation that haven't sent SyncGroup yet. */
  readonly unsynced: Set<string>;
  /** In PreparingRebalance only. */
  join: JoinPhase | null;
  /** When those in `unsynced` are given up; in CompletingRebalance and Stable, else null. */
  syncDeadlineMs: number | null;
  /** The assignment of this generation is on its way to the store. */
  persisting: boolean;
}

export function newGroup(groupId: string, now: number): Group {
  return {
    kind: 'classic',
    groupId,
    state: 'Empty',
    stateSinceMs: now,
    protocolType: '',
    generation: 0,
    protocol: null,
    leaderId: null,
    members: new Map(),
    instances: new Map(),
    pending: new Map(),
    unsynced: new Set(),
    join: null,
    syncDeadlineMs: null,
    persisting: false,
  };
}

/** A group as it was stored; its members have a whole session to be heard of. */
export function restoreGroup(stored: StoredGroup, now: number): Group {
  const group = newGroup(stored.groupId, stored.stateSinceMs);
  group.protocolType = stored.protocolType;
  group.generation = stored.generation;
  for (const member of stored.members) {
    group.members.set(member.memberId, {
      ...member,
      joinToken: null,
      syncToken: null,
      isNew: false,
      deadlineMs: now + member.sessionTimeoutMs,
    });
    if (member.instanceId !== null) group.instances.set(member.instanceId, member.memberId);
  }
  if (group.members.size > 0) {
    group.state = 'Stable';
    group.protocol = stored.protocol;
    group.leaderId = stored.leaderId;
  }
  assertGroup(group);
  return group;
}

/** What is stored of the group now. */
export function snapshotGroup(group: Group): StoredGroup {
  return {
    kind: 'classic',
    groupId: group.groupId,
    protocolType: group.protocolType,
    generation: group.generation,
    protocol: group.protocol,
    leaderId: group.leaderId,
    stateSinceMs: group.stateSinceMs,
    members: [...group.members.values()].map(snapshotMember),
  };
}

function snapshotMember(member: Member): StoredMember {
  const {
    joinToken: _join,
    syncToken: _sync,
    isNew: _new,
    deadlineMs: _deadline,
    ...stored
  } = member;
  return stored;
}

export function enter(group: Group, state: GroupState, now: number): void {
  group.state = state;
  group.stateSinceMs = now;
}

/** The longest time any member asks for to rejoin. */
export function rebalanceTimeoutMs(group: Group): number {
  let longest = 0;
  for (const member of group.members.values())
    longest = Math.max(longest, member.rebalanceTimeoutMs);
  return longest;
}

export function allJoined(group: Group): boolean {
  if (group.pending.size > 0) return false;
  for (const member of group.members.values()) if (member.joinToken === null) return false;
  return true;
}

/** True when the member's silence counts: those who wait for an answer can't speak. */
export function isWatched(member: Member): boolean {
  return member.isNew || (member.joinToken === null && member.syncToken === null);
}

/** The next moment at which `tick` has something to do; Infinity for never. */
export function nextDeadline(group: Group): number {
  let next = Math.min(group.join?.deadlineMs ?? Infinity, group.syncDeadlineMs ?? Infinity);
  for (const deadline of group.pending.values()) next = Math.min(next, deadline);
  for (const member of group.members.values())
    if (isWatched(member)) next = Math.min(next, member.deadlineMs);
  return next;
}

/** Bytes of protocols and assignments, as stored. */
export function metadataBytes(group: Group): number {
  let bytes = 0;
  for (const { protocols, assignment } of group.members.values())
    bytes += protocolBytes(protocols) + assignment.length;
  return bytes;
}

export function protocolBytes(protocols: readonly Protocol[]): number {
  return protocols.reduce((sum, { name, metadata }) => sum + name.length + metadata.length, 0);
}

/** Checks G1 to G6 of SPEC.md; called after every event. */
export function assertGroup(group: Group): void {
  const { state, members, instances, leaderId } = group;
  assert(
    members.size > 0 || state === 'Empty' || state === 'Dead' || state === 'PreparingRebalance',
    'G1: only an empty, dead or starting group has no members',
  );
  assert(
    members.size === 0 || (state !== 'Empty' && state !== 'Dead'),
    'G1: an empty group has no members',
  );
  assert((leaderId === null) === (members.size === 0), 'G2: a group with members has a leader');
  assert(leaderId === null || members.has(leaderId), 'G2: the leader is a member');
  for (const [instanceId, memberId] of instances)
    assert(members.get(memberId)?.instanceId === instanceId, 'G3: an instance id names its member');
  assert(
    (group.join !== null) === (state === 'PreparingRebalance'),
    'G4: members are waited for while preparing only',
  );
  for (const member of members.values()) {
    assert(
      member.joinToken === null || state === 'PreparingRebalance',
      'G4: a join waits while preparing only',
    );
    assert(
      member.syncToken === null || state === 'CompletingRebalance',
      'G5: a sync waits while completing only',
    );
  }
  for (const memberId of group.pending.keys())
    assert(!members.has(memberId), 'G6: a pending id is no member');
}
