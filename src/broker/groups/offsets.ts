// The rules of committed offsets: who may commit and fetch, in either protocol, and when offsets expire.
// Not for: storage (committed-offsets.ts), names of topics (the handlers resolve them).
import type { StoredOffset } from '../../metadata/groups.ts';
import { ErrorCode } from '../../protocol/errors.ts';
import type { Group } from './classic/group.ts';
import { generationFault, touch } from './classic/membership.ts';
import { subscribedTopics } from './classic/subscription.ts';
import type { ConsumerGroup, ConsumerMember } from './consumer/group.ts';
import type { AnyGroup } from './entry.ts';

export interface Committer {
  /** Generation or member epoch; −1 from outside the group. */
  readonly generation: number;
  readonly memberId: string;
  readonly instanceId: string | null;
}

export interface CommitRequest {
  /** Of OffsetCommit; undefined for commits within a transaction, which have other rules. */
  readonly apiVersion: number | undefined;
  /** Partition ids. */
  readonly partitionIds: readonly number[];
}

/** Members of the consumer protocol know their epoch from this version of OffsetCommit and OffsetFetch on. */
const EPOCH_VERSION = 9;

/** 0 when the committer may commit now. From outside (simple consumers, admin tools): a group without members. */
export function commitFault(group: AnyGroup, committer: Committer, request: CommitRequest): number {
  return group.kind === 'classic'
    ? classicCommitFault(group, committer, request)
    : consumerCommitFault(group, committer, request);
}

/** A commit from inside: of the current generation, and not between JoinGroup and SyncGroup. */
function classicCommitFault(
  group: Group,
  committer: Committer,
  { apiVersion }: CommitRequest,
): number {
  if (group.state === 'Dead') return ErrorCode.COORDINATOR_NOT_AVAILABLE;
  const outside =
    committer.generation < 0 && committer.memberId === '' && committer.instanceId === null;
  if (group.state === 'Empty' && committer.generation < 0) return 0;
  // Old versions of TxnOffsetCommit have no member ids.
  if (outside) return apiVersion === undefined ? 0 : ErrorCode.UNKNOWN_MEMBER_ID;
  const fault = generationFault(group, committer);
  if (fault !== 0 || apiVersion === undefined) return fault;
  return group.state === 'CompletingRebalance' ? ErrorCode.REBALANCE_IN_PROGRESS : 0;
}

/**
 * Of the member's epoch, or an earlier one in which it had all the partitions already (KIP-1251): a heartbeat that
 * raises the epoch must not make the commits beside it fail.
 */
function consumerCommitFault(
  group: ConsumerGroup,
  { generation, memberId }: Committer,
  { apiVersion, partitionIds }: CommitRequest,
): number {
  if (group.dead) return ErrorCode.COORDINATOR_NOT_AVAILABLE;
  if (generation < 0 && group.members.size === 0) return 0;
  const member = group.members.get(memberId);
  if (member === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
  if (member.classic !== null)
    return member.epoch === generation ? 0 : ErrorCode.ILLEGAL_GENERATION;
  if (apiVersion !== undefined && apiVersion < EPOCH_VERSION) return ErrorCode.UNSUPPORTED_VERSION;
  if (generation === member.epoch) return 0;
  if (generation >= 0 && generation < member.epoch && hadAll(member, generation, partitionIds))
    return 0;
  return apiVersion === undefined ? ErrorCode.ILLEGAL_GENERATION : ErrorCode.STALE_MEMBER_EPOCH;
}

function hadAll(
  { assigned, assignedSince }: ConsumerMember,
  epoch: number,
  partitionIds: readonly number[],
): boolean {
  return partitionIds.every((id) => {
    const index = assigned.indexOf(id);
    return index >= 0 && assignedSince[index]! <= epoch;
  });
}

/** 0 when who says so is a member of that epoch; classic groups let anybody read. */
export function fetchFault(
  group: AnyGroup,
  { memberId, memberEpoch }: { readonly memberId: string | null; readonly memberEpoch: number },
): number {
  if (group.kind === 'classic' || (memberId === null && memberEpoch < 0)) return 0;
  const member = group.members.get(memberId ?? '');
  if (member === undefined) return ErrorCode.UNKNOWN_MEMBER_ID;
  if (member.epoch === memberEpoch) return 0;
  return member.classic === null ? ErrorCode.STALE_MEMBER_EPOCH : ErrorCode.ILLEGAL_GENERATION;
}

/** A member that commits is alive; those of consumer groups say so by heartbeats alone. */
export function noteCommit(group: AnyGroup, { memberId }: Committer, now: number): void {
  if (group.kind === 'consumer') return;
  const member = group.members.get(memberId);
  if (member !== undefined) touch(member, now);
}

export interface ExpiryContext {
  readonly now: number;
  readonly retentionMs: number;
  /** The name of a partition's topic; undefined once it is deleted. */
  topicOf(partitionId: number): string | undefined;
  /** True when a member of the consumer group subscribes to the topic. */
  isSubscribed(group: ConsumerGroup, topic: string): boolean;
  /** True when an open transaction has an offset staged for the partition. */
  isPending(partitionId: number): boolean;
}

/**
 * Partitions whose offsets are due (KIP-211): of an empty classic group, retention after it became so; of a simple
 * consumer, after the commit; of other groups, after the commit if nobody subscribes to the topic.
 */
export function expiredOffsets(
  group: AnyGroup,
  offsets: ReadonlyMap<number, StoredOffset>,
  context: ExpiryContext,
): readonly number[] {
  const since =
    group.kind === 'classic' ? classicBase(group, context) : consumerBase(group, context);
  return [...offsets.values()]
    .filter((offset) => {
      const base = since(offset);
      if (base === undefined) return false;
      const dueMs = offset.expireMs >= 0 ? offset.expireMs : base + context.retentionMs;
      return dueMs <= context.now && !context.isPending(offset.partitionId);
    })
    .map(({ partitionId }) => partitionId);
}

/** From when retention counts for an offset; undefined while it doesn't. */
type ExpiryBase = (offset: StoredOffset) => number | undefined;

function classicBase(group: Group, { topicOf }: ExpiryContext): ExpiryBase {
  if (group.protocolType === '') return ({ commitMs }) => commitMs;
  if (group.state === 'Empty') return ({ commitMs }) => Math.max(group.stateSinceMs, commitMs);
  const topics = group.state === 'Stable' ? subscribedTopics(group) : undefined;
  if (topics === undefined) return () => undefined;
  return ({ partitionId, commitMs }) =>
    topics.has(topicOf(partitionId) ?? '') ? undefined : commitMs;
}

/** An empty group that was left by its last member since the commit counts from then. */
function consumerBase(group: ConsumerGroup, context: ExpiryContext): ExpiryBase {
  if (group.members.size === 0) return ({ commitMs }) => Math.max(group.stateSinceMs, commitMs);
  return ({ partitionId, commitMs }) => {
    const topic = context.topicOf(partitionId);
    return topic !== undefined && context.isSubscribed(group, topic) ? undefined : commitMs;
  };
}
