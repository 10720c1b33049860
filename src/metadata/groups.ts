// Consumer groups at rest: who is in which generation, and the committed offsets.
// The coordinator (broker/groups/) owns the live state; this keeps what must outlast it, in set-based batches.

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

/** One generation of a group, written when it becomes stable or empty. */
export interface StoredGroup {
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
  | { readonly kind: 'group'; readonly group: StoredGroup }
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
  | { readonly kind: 'group-gone'; readonly groupId: string };

export interface GroupsMetadata {
  /** Everything there is, for the coordinator's start. */
  load(): Promise<
    readonly { readonly group: StoredGroup; readonly offsets: readonly StoredOffset[] }[]
  >;
  /**
   * Applies the changes in order, in one transaction. Offsets need no group row beforehand.
   * @returns partition ids of offsets that were left out because their topic was deleted meanwhile.
   */
  write(changes: readonly GroupChange[]): Promise<readonly number[]>;
}
