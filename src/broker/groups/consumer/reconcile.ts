// One member's way from what it owns to its target (KIP-848): first it gives up, then its epoch rises, then it gets
// what others have given up. Source of the rules: KIP-848, "Member Assignment State Machine".
import {
  type ConsumerGroup,
  type ConsumerMember,
  isReconciled,
  type MemberState,
  updateMember,
} from './group.ts';
import { difference, intersection, NO_PARTITIONS, type Partitions, union } from './partitions.ts';

/** Takes the member as far as it can go now. `owned` is what it says it owns; null when it says nothing. */
export function reconcile(
  group: ConsumerGroup,
  member: ConsumerMember,
  { owned, now }: { readonly owned: readonly number[] | null; readonly now: number },
): void {
  if (isReconciled(group, member)) return;
  if (member.state === 'unrevoked' && holds(owned, member.revoking)) return;
  // Having given up, it leaves the epoch in which it was asked to, even if it is asked for more at once.
  const epoch = member.state === 'unrevoked' ? member.epoch + 1 : member.epoch;
  const next = nextAssignment(group, member, owned);
  const reached =
    next.revoking.length > 0 ? Math.min(epoch, group.assignmentEpoch) : group.assignmentEpoch;
  apply(group, member, { ...next, epoch: reached });
  const revokes = next.state === 'unrevoked' && member.classic === null;
  member.revokeDeadlineMs = revokes ? now + member.rebalanceTimeoutMs : Infinity;
}

interface NextAssignment {
  readonly state: MemberState;
  readonly assigned: Partitions;
  readonly revoking: Partitions;
}

function nextAssignment(
  group: ConsumerGroup,
  member: ConsumerMember,
  owned: readonly number[] | null,
): NextAssignment {
  const { memberId, target } = member;
  const kept = intersection(member.assigned, target);
  const revoking = difference(member.assigned, kept);
  if (revoking.length > 0 && holds(owned, revoking))
    return { state: 'unrevoked', assigned: kept, revoking };
  const wanted = difference(target, kept);
  const free = wanted.filter((id) => (group.owners.get(id) ?? memberId) === memberId);
  const state = free.length < wanted.length ? 'unreleased' : 'stable';
  return { state, assigned: union(kept, free), revoking: NO_PARTITIONS };
}

/** True unless the member says what it owns and none of `partitions` is among it. */
function holds(owned: readonly number[] | null, partitions: Partitions): boolean {
  if (owned === null) return true;
  const held = new Set(owned);
  return partitions.some((id) => held.has(id));
}

function apply(
  group: ConsumerGroup,
  member: ConsumerMember,
  next: NextAssignment & { readonly epoch: number },
): void {
  const since = new Map(member.assigned.map((id, index) => [id, member.assignedSince[index]!]));
  const grown = next.assigned.some((id) => !since.has(id));
  if (grown || next.assigned.length !== member.assigned.length) member.untold = true;
  updateMember(group, member, {
    state: next.state,
    epoch: next.epoch,
    previousEpoch: next.epoch === member.epoch ? member.previousEpoch : member.epoch,
    assigned: next.assigned,
    assignedSince: next.assigned.map((id) => since.get(id) ?? next.epoch),
    revoking: next.revoking,
  });
}

/** True when a partition that the member waits for is still another's. */
export function waitsForOthers(group: ConsumerGroup, member: ConsumerMember): boolean {
  if (member.state !== 'unreleased') return false;
  return difference(member.target, member.assigned).some((id) => group.owners.has(id));
}
