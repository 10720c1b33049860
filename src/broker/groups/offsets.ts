// Committed offsets of one group in memory, and the rules of who may commit and when they expire.
// Not for: storage (coordinator.ts writes before it answers), names of topics (the handlers resolve them).
import type { StoredOffset } from '../../metadata/groups.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import type { Group } from './classic/group.ts';
import { generationFault, touch } from './classic/membership.ts';
import { subscribedTopics } from './classic/subscription.ts';

/** Committed positions by partition id. */
export type GroupOffsets = Map<number, StoredOffset>;

export interface Committer {
  /** −1 from outside the group. */
  readonly generation: number;
  readonly memberId: string;
  readonly instanceId: string | null;
}

/**
 * 0 when the committer may commit now. A commit from outside (simple consumers, admin tools) needs a group
 * without members; one from inside the current generation, and not between JoinGroup and SyncGroup.
 */
export function commitFault(group: Group, committer: Committer): number {
  if (group.state === 'Dead') return ErrorCode.COORDINATOR_NOT_AVAILABLE;
  const outside =
    committer.generation < 0 && committer.memberId === '' && committer.instanceId === null;
  if (group.state === 'Empty' && committer.generation < 0) return 0;
  if (outside) return ErrorCode.UNKNOWN_MEMBER_ID;
  const fault = generationFault(group, committer);
  if (fault !== 0) return fault;
  return group.state === 'CompletingRebalance' ? ErrorCode.REBALANCE_IN_PROGRESS : 0;
}

/** A member that commits is alive. */
export function noteCommit(group: Group, { memberId }: Committer, now: number): void {
  const member = group.members.get(memberId);
  if (member !== undefined) touch(member, now);
}

export interface ExpiryContext {
  readonly now: number;
  readonly retentionMs: number;
  /** The name of a partition's topic; undefined once it is deleted. */
  topicOf(partitionId: number): string | undefined;
}

/**
 * Partitions whose offsets are due (KIP-211): of an empty group, retention after it became so; of a simple
 * consumer, after the commit; of a group with members, after the commit if nobody subscribes to the topic.
 */
export function expiredOffsets(
  group: Group,
  offsets: GroupOffsets,
  context: ExpiryContext,
): readonly number[] {
  const since = expiryBase(group, context);
  return [...offsets.values()]
    .filter((offset) => {
      const base = since(offset);
      if (base === undefined) return false;
      const dueMs = offset.expireMs >= 0 ? offset.expireMs : base + context.retentionMs;
      return dueMs <= context.now;
    })
    .map(({ partitionId }) => partitionId);
}

/** From when retention counts for an offset; undefined while it doesn't. */
function expiryBase(
  group: Group,
  { topicOf }: ExpiryContext,
): (offset: StoredOffset) => number | undefined {
  if (group.protocolType === '') return ({ commitMs }) => commitMs;
  if (group.state === 'Empty') return ({ commitMs }) => Math.max(group.stateSinceMs, commitMs);
  const topics = group.state === 'Stable' ? subscribedTopics(group) : undefined;
  if (topics === undefined) return () => undefined;
  return ({ partitionId, commitMs }) =>
    topics.has(topicOf(partitionId) ?? '') ? undefined : commitMs;
}
