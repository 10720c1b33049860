// A group changes its protocol while its members go on (KIP-848): classic → consumer when the first member of the new
// protocol joins, consumer → classic when the last one leaves. Pure: stored form in, stored form out.
import { isFloeError } from '../../base/error.ts';
import type {
  StoredConsumerGroup,
  StoredConsumerMember,
  StoredGroup,
} from '../../metadata/groups.ts';
import {
  type ConsumerAssignment,
  type ConsumerSubscription,
  decodeAssignment,
  decodeSubscription,
  encodeAssignment,
} from '../../protocol/messages/consumer-protocol.ts';
import type { Group, Member } from './classic/group.ts';
import { metadataOf, selectProtocol } from './classic/protocols.ts';
import { CONSUMER_PROTOCOL } from './classic/subscription.ts';
import { versionOf } from './consumer/classic-members.ts';
import { type ConsumerGroup, isReconciled } from './consumer/group.ts';
import { sorted } from './consumer/heartbeat.ts';
import { partitionSet } from './consumer/partitions.ts';
import type { TopicView } from './consumer/topics.ts';

/** `group.consumer.migration.policy` of Kafka. */
export const MIGRATION_POLICIES = ['bidirectional', 'upgrade', 'downgrade', 'disabled'] as const;
export type MigrationPolicy = (typeof MIGRATION_POLICIES)[number];

interface Limits {
  readonly policy: MigrationPolicy;
  /** Members that a group of the other protocol may have. */
  readonly maxSize: number;
}

/** Why a classic group can't become a consumer group, for people; undefined when it can. */
export function upgradeFault(group: Group, { policy, maxSize }: Limits): string | undefined {
  if (policy !== 'bidirectional' && policy !== 'upgrade')
    return `group.consumer.migration.policy is ${policy}`;
  if (group.protocolType !== CONSUMER_PROTOCOL)
    return `its members are of type ${group.protocolType}`;
  return group.members.size > maxSize ? `it has more than ${maxSize} members` : undefined;
}

/** True when only classic members are left and may be by themselves. */
export function mayDowngrade(group: ConsumerGroup, { policy, maxSize }: Limits): boolean {
  if (policy !== 'bidirectional' && policy !== 'downgrade') return false;
  if (group.members.size === 0 || group.members.size > maxSize) return false;
  for (const { classic } of group.members.values()) if (classic === null) return false;
  return true;
}

/** The consumer group that a classic one becomes; undefined when its members can't be read. */
export function toConsumerGroup(
  group: Group,
  { topics, now }: { readonly topics: TopicView; readonly now: number },
): StoredConsumerGroup | undefined {
  const protocol = group.protocol ?? selectProtocol(group);
  const taken = new Set<number>();
  const members: StoredConsumerMember[] = [];
  for (const member of group.members.values()) {
    const subscription = readable(() => decodeSubscription(metadataOf(member.protocols, protocol)));
    if (subscription === undefined) return undefined;
    // An empty assignment is one that was never made.
    const assignment =
      member.assignment.length === 0
        ? NO_ASSIGNMENT
        : readable(() => decodeAssignment(member.assignment));
    if (assignment === undefined) return undefined;
    const owned = ownedBy(assignment, topics).filter((id) => !taken.has(id));
    for (const id of owned) taken.add(id);
    members.push(toConsumerMember(member, { subscription, owned, epoch: group.generation }));
  }
  const { groupId, generation: epoch } = group;
  return { kind: 'consumer', groupId, epoch, assignmentEpoch: epoch, stateSinceMs: now, members };
}

const NO_ASSIGNMENT: ConsumerAssignment = { assignedPartitions: [], userData: null };

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (caught) {
    if (isFloeError(caught, 'invalid', 'exhausted')) return undefined;
    throw caught;
  }
}

/** A leader may have given out what doesn't exist; twice given counts once, see `taken`. */
function ownedBy({ assignedPartitions }: ConsumerAssignment, topics: TopicView): number[] {
  const ids = assignedPartitions.flatMap(({ topic, partitions }) => {
    const known = topics.partitionsOf(topic) ?? [];
    return partitions.flatMap((index) => known[index] ?? []);
  });
  return [...partitionSet(ids)];
}

function toConsumerMember(
  member: Member,
  set: {
    readonly subscription: ConsumerSubscription;
    readonly owned: readonly number[];
    readonly epoch: number;
  },
): StoredConsumerMember {
  const { subscription, owned, epoch } = set;
  const { memberId, instanceId, clientId, clientHost, rebalanceTimeoutMs } = member;
  const { sessionTimeoutMs, protocols } = member;
  return {
    memberId,
    instanceId,
    clientId,
    clientHost,
    rebalanceTimeoutMs,
    rackId: subscription.rackId,
    topicNames: sorted(subscription.topics),
    topicRegex: '',
    assignor: null,
    classic: { sessionTimeoutMs, protocols },
    state: 'stable',
    epoch,
    previousEpoch: epoch,
    assigned: owned,
    assignedSince: owned.map(() => epoch),
    revoking: [],
    target: owned,
  };
}

/** The classic group that a consumer group of classic members becomes. It is stable; see {@link isSettled}. */
export function toClassicGroup(
  group: ConsumerGroup,
  {
    nameOf,
    now,
  }: {
    /** Topic and index of a partition; undefined once it is deleted. */
    readonly nameOf: (partitionId: number) => readonly [string, number] | undefined;
    readonly now: number;
  },
): StoredGroup {
  const members = [...group.members.values()].map((member) => ({
    ...member,
    ...member.classic!,
  }));
  const byId = new Map(members.map((member) => [member.memberId, member]));
  const leaderId = members[0]!.memberId;
  const protocol = selectProtocol({ members: byId, leaderId });
  return {
    kind: 'classic',
    groupId: group.groupId,
    protocolType: CONSUMER_PROTOCOL,
    // A rebalance that was due is begun as a classic one, in the generation after this.
    generation: group.assignmentEpoch,
    protocol,
    leaderId,
    stateSinceMs: now,
    members: members.map((member) => ({
      memberId: member.memberId,
      instanceId: member.instanceId,
      clientId: member.clientId,
      clientHost: member.clientHost,
      sessionTimeoutMs: member.sessionTimeoutMs,
      rebalanceTimeoutMs: member.rebalanceTimeoutMs,
      protocols: member.protocols,
      assignment: encodeOwned(
        member.target.map(nameOf).filter((name) => name !== undefined),
        versionOf(metadataOf(member.protocols, protocol)),
      ),
    })),
  };
}

/** An assignment of partitions, as members of a classic group read it, in a version of the consumer protocol. */
export function encodeOwned(
  owned: readonly (readonly [string, number])[],
  version: number,
): Uint8Array {
  const byTopic = new Map<string, number[]>();
  for (const [topic, index] of owned) {
    const list = byTopic.get(topic);
    if (list === undefined) byTopic.set(topic, [index]);
    else list.push(index);
  }
  const assignedPartitions = [...byTopic].map(([topic, partitions]) => ({ topic, partitions }));
  return encodeAssignment({ assignedPartitions }, Math.min(Math.max(version, 0), 3));
}

/** True when every member owns its part already: as a classic group it need not rebalance. */
export function isSettled(group: ConsumerGroup): boolean {
  if (group.epoch !== group.assignmentEpoch) return false;
  for (const member of group.members.values()) if (!isReconciled(group, member)) return false;
  return true;
}
