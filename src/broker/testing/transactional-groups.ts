// The groups that a transaction coordinator's test needs: they agree to everything, and note what reaches them.
import type { GroupsMetadata, StoredOffset } from '../../metadata/groups.ts';
import type { TransactionsMetadata } from '../../metadata/transactions.ts';
import { PendingOffsets } from '../groups/pending.ts';
import { settle } from '../groups/settle.ts';
import type { TransactionalGroups } from '../transactions/groups.ts';

const LEASE = { name: 'groups/0', epoch: 1 };

export class AgreeableGroups implements TransactionalGroups {
  readonly settings: TransactionalGroups['settings'];
  /** What {@link stageFault} answers. */
  fault = 0;
  /** Groups with the offsets that reached them, in order. */
  readonly applied: [groupId: string, offsets: readonly number[]][] = [];
  readonly pending: PendingOffsets;

  constructor(maxMetadataBytes = 100) {
    this.settings = { 'offset.metadata.max.bytes': maxMetadataBytes };
    this.pending = new PendingOffsets({
      applied: (groupId, offsets) => {
        this.#note(groupId, [...offsets.values()]);
        return true;
      },
    });
  }

  loading(): undefined {}

  stageFault(): number {
    return this.fault;
  }

  stagingLease() {
    return LEASE;
  }

  leaseRefused(): void {}

  /** Asks the store what became of what is pending. */
  settle(
    transactions: Pick<TransactionsMetadata, 'describe'>,
    groups: Pick<GroupsMetadata, 'offsets'>,
  ): Promise<number> {
    return settle({
      pending: this.pending,
      writer: { between: (work) => work() },
      groups,
      transactions,
      replace: (groupId, offsets) => this.#note(groupId, offsets),
    });
  }

  #note(groupId: string, offsets: readonly StoredOffset[]): void {
    if (offsets.length === 0) return;
    this.applied.push([groupId, offsets.map(({ offset }) => offset)]);
  }
}
