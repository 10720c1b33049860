// Consumer groups at rest: who is in which generation or epoch, and the committed offsets.
// Coordinators (broker/groups/) own the live state; this keeps what must outlast it, in set-based batches.
// A group belongs to a shard (shards.ts); whoever holds the lease `groups/<shard>` writes it.
import type { LeaseToken } from './leases.ts';

export interface StoredMember {
  readonly memberId: string;
  /** Static membership (KIP-345); null for dynamic members. */
  readonly instanceId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly sessionTimeoutMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly protocols: readonly { readonly name: string; readonly metadata: Uint8Array }[];
  readonly assignment: Uint8Array;
}

/** One generation of a classic group, written when it becomes stable or empty. */
export interface StoredGroup {
  readonly kind: 'classic';
  readonly groupId: string;
  /** '' for a group that only holds offsets. */
  readonly protocolType: string;
  readonly generation: number;
  readonly protocol: string | null;
  readonly leaderId: string | null;
  readonly members: readonly StoredMember[];
  /** When this state was entered; offsets of an empty group expire by it. */
  readonly stateSinceMs: number;
}

/** What a member of a consumer group that speaks the classic protocol has told of itself. */
export interface StoredClassicSide {
  readonly sessionTimeoutMs: number;
  readonly protocols: StoredMember['protocols'];
}

/** A member of a group of the consumer protocol (KIP-848). Partitions are ids, ascending. */
export interface StoredConsumerMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly rackId: string | null;
  readonly clientId: string;
  readonly clientHost: string;
  readonly rebalanceTimeoutMs: number;
  /** Ascending. */
  readonly topicNames: readonly string[];
  /** '' for none. */
  readonly topicRegex: string;
  /** The server-side assignor it asks for; null for any. */
  readonly assignor: string | null;
  /** Null for a member that speaks the consumer protocol. */
  readonly classic: StoredClassicSide | null;
  readonly state: 'stable' | 'unrevoked' | 'unreleased';
  /** −2 while a static member is away. */
  readonly epoch: number;
  readonly previousEpoch: number;
  /** What it owns. */
  readonly assigned: readonly number[];
  /** For each of `assigned`, the epoch in which the member got it. */
  readonly assignedSince: readonly number[];
  /** What it was asked to give up and hasn't yet. */
  readonly revoking: readonly number[];
  /** What it shall own by the group's assignment. */
  readonly target: readonly number[];
}

/** A group of the consumer protocol. */
export interface StoredConsumerGroup {
  readonly kind: 'consumer';
  readonly groupId: string;
  readonly epoch: number;
  /** The epoch that the members' targets are of. */
  readonly assignmentEpoch: number;
  readonly stateSinceMs: number;
  readonly members: readonly StoredConsumerMember[];
}

export interface StoredOffset {
  readonly partitionId: number;
  readonly offset: number;
  /** −1 when the consumer gave none. */
  readonly leaderEpoch: number;
  readonly metadata: string;
  readonly commitMs: number;
  /** When it expires by the request's own retention (OffsetCommit v2–4), −1 by the broker's setting. */
  readonly expireMs: number;
}

export type GroupChange =
  /** The whole group; members it had as a consumer group go. */
  | { readonly kind: 'group'; readonly group: StoredGroup }
  /** What changed of a consumer group: its epochs, the members given, those gone. `whole`: all others go. */
  | {
      readonly kind: 'consumer-group';
      readonly group: StoredConsumerGroup;
      readonly whole: boolean;
      readonly gone: readonly string[];
    }
  | {
      readonly kind: 'offsets';
      readonly groupId: string;
      readonly offsets: readonly StoredOffset[];
    }
  | {
      readonly kind: 'offsets-gone';
      readonly groupId: string;
      readonly partitionIds: readonly number[];
    }
  /** `withStaged`: offsets that open transactions have staged for it go too, as when an operator deletes it. */
  | { readonly kind: 'group-gone'; readonly groupId: string; readonly withStaged: boolean };

/** A group with its committed offsets, as stored. */
export interface LoadedGroup {
  readonly group: StoredGroup | StoredConsumerGroup;
  readonly offsets: readonly StoredOffset[];
}

export interface GroupsMetadata {
  /** The groups of these shards with their offsets, for whoever has gained them; unless given, of all. */
  load(shards?: readonly number[]): Promise<readonly LoadedGroup[]>;
  /**
   * Applies the changes in order, in one transaction that asserts all leases given: the store knows no higher epoch of
   * any (shared locks on their rows, in the order of names). Offsets need no group row beforehand.
   * @returns partition ids of offsets that were left out because their topic was deleted meanwhile.
   * @throws FloeError `conflict` when a lease is another's; nothing was written then.
   */
  write(changes: readonly GroupChange[], leases: readonly LeaseToken[]): Promise<readonly number[]>;
  /** Committed offsets as they are now, in order of `groupIds`; none of an unknown group. */
  offsets(groupIds: readonly string[]): Promise<readonly (readonly StoredOffset[])[]>;
}
