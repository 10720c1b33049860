// What transactions need of consumer groups, and offer them: the two coordinators meet here and nowhere else.
import type { StoredOffset } from '../../metadata/groups.ts';
import type { GroupSettings } from '../groups/settings.ts';

/** Who commits offsets in a transaction (KIP-447); the defaults of old versions are −1, '' and null. */
export interface TransactionalCommitter {
  readonly generation: number;
  readonly memberId: string;
  readonly instanceId: string | null;
}

/** The group coordinator, as the transaction coordinator sees it. */
export interface TransactionalGroups {
  readonly settings: Pick<GroupSettings, 'offset.metadata.max.bytes'>;
  /** The error code of TxnOffsetCommit by this committer now, 0 when offsets may be staged. */
  stageFault(groupId: string, committer: TransactionalCommitter): number;
  /** A transaction has ended: its offsets lie in the store, written with its end. */
  offsetsApplied(groupId: string, offsets: ReadonlyMap<number, StoredOffset>): void;
}

/** The transaction coordinator, as the group coordinator sees it. */
export interface PendingOffsets {
  /** True when an open transaction has an offset staged: `require_stable` then answers UNSTABLE_OFFSET_COMMIT. */
  hasPendingOffset(groupId: string, partitionId: number): boolean;
  /** A group was deleted, and with it what was staged. */
  forgetGroup(groupId: string): void;
}
