// Brings a group's committed offsets up to date with transactions whose end wasn't told here: asks the store how they
// stand, and reads the offsets again of groups for which one has ended. Questions and answers lie between the writes of
// this coordinator, the only other one that changes these offsets, so neither overtakes the other.
// Not for: knowing what is pending (pending.ts).
import { FloeError } from '../../base/error.ts';
import type { GroupsMetadata, StoredOffset } from '../../metadata/groups.ts';
import type { TransactionsMetadata } from '../../metadata/transactions.ts';
import { storeFault } from './entry.ts';
import type { PendingOffsets } from './pending.ts';
import type { GroupWriter } from './writer.ts';

export interface SettleOptions {
  readonly pending: PendingOffsets;
  readonly writer: Pick<GroupWriter, 'between'>;
  readonly groups: Pick<GroupsMetadata, 'offsets'>;
  readonly transactions: Pick<TransactionsMetadata, 'describe'>;
  /** Committed offsets as the store has them; those of partitions that `isWanted` says, unless given all. */
  replace(
    groupId: string,
    offsets: readonly StoredOffset[],
    isWanted: ((partitionId: number) => boolean) | undefined,
  ): void;
}

/** Offsets that were told while they were read are read again: rarely more than once. */
const MAX_ROUNDS = 10;

/** Groups asked about at a time. */
const MAX_GROUPS = 1_000;

/** Returns an error code: 0 when everything of these groups (unless given, of all) is known as of this call. */
export async function settle(
  options: SettleOptions,
  groupIds?: readonly string[],
): Promise<number> {
  const { pending, writer } = options;
  let open = pending.unsure(groupIds);
  try {
    for (let round = 0; open.length > 0 && round < MAX_ROUNDS; round += 1) {
      const left: string[] = [];
      for (let at = 0; at < open.length; at += MAX_GROUPS) {
        const asked = open.slice(at, at + MAX_GROUPS);
        left.push(...(await writer.between(() => ask(options, asked))));
      }
      open = left;
    }
    return open.length === 0 ? 0 : storeFault(new FloeError('timeout', 'offsets did not rest'));
  } catch (caught) {
    return storeFault(FloeError.from(caught));
  }
}

/** Returns the groups that have to be asked about again. */
async function ask(
  { pending, groups, transactions, replace }: SettleOptions,
  groupIds: readonly string[],
): Promise<readonly string[]> {
  const doubts = pending.question(groupIds);
  const ids = new Set(
    doubts.flatMap((doubt) => doubt.transactions.map(({ transactionalId }) => transactionalId)),
  );
  const found = ids.size === 0 ? [] : await transactions.describe([...ids]);
  const states = new Map([...ids].map((id, n) => [id, found[n]]));
  const ended = doubts.filter((doubt) =>
    pending.answered(
      doubt,
      doubt.transactions.map(({ transactionalId }) => states.get(transactionalId)),
    ),
  );
  if (ended.length === 0) return [];
  const offsets = await groups.offsets(ended.map(({ groupId }) => groupId));
  return ended.flatMap(({ groupId }, n) => {
    replace(groupId, offsets[n]!, pending.reread(groupId));
    return pending.isStale(groupId) ? [groupId] : [];
  });
}
