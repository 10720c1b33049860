// What transactions need of consumer groups: the two coordinators meet here and nowhere else.
// TxnOffsetCommit goes to the group's coordinator, which may be another node than the transaction's: it stages the
// offsets in the row of the transactional id under the lease of its group.
import type { LeaseToken } from '../../metadata/leases.ts';
import type { PendingOffsets } from '../groups/pending.ts';
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
  /** What is staged, and what became of it: told of everything that this node learns of transactions. */
  readonly pending: PendingOffsets;
  /** Resolves when the group's coordinator here is loaded or given up; undefined where it isn't being loaded. */
  loading(groupId: string): Promise<unknown> | undefined;
  /** The error code of TxnOffsetCommit by this committer now, 0 when offsets may be staged. */
  stageFault(groupId: string, committer: TransactionalCommitter): number;
  /** The right to stage offsets for the group, or the error code that says why this node can't. */
  stagingLease(groupId: string): LeaseToken | number;
  /** A lease of groups was refused by the store: it is another node's. */
  leaseRefused(token: LeaseToken): void;
}
