// Brings a group's committed offsets up to date with transactions whose end wasn't told here: asks the store how they
// stand, and reads the offsets again of groups for which one has ended. Questions and answers lie between the writes of
// this coordinator, the only other one that changes these offsets, so neither overtakes the other.
// Not for: knowing what is pending (pending.ts).
import { FloeError } from '../../base/error.ts';
import type { GroupsMetadata, StoredOffset } from '../../metadata/groups.ts';
import type { TransactionsMetadata } from '../../metadata/transactions.ts';
import { storeFault } from './entry.ts';
import type { Doubt, PendingOffsets } from './pending.ts';
import type { GroupWriter } from './writer.ts';

export interface SettleOptions {
  readonly pending: PendingOffsets;
  readonly writer: Pick<GroupWriter, 'between'>;
  readonly groups: Pick<GroupsMetadata, 'offsets'>;
  readonly transactions: Pick<TransactionsMetadata, 'describe'>;
  /** Committed offsets as the store has them. */
  replace(groupId: string, offsets: readonly StoredOffset[]): void;
}

/** Answers that were out of date when they came are asked for again: by then transactions went on. */
const MAX_ROUNDS = 10;

/** Groups asked about at a time. */
const MAX_GROUPS = 1_000;

/** Returns an error code: 0 when everything of these groups (unless given, of all) is known as of this call. */
export async function settle(
  options: SettleOptions,
  groupIds?: readonly string[],
): Promise<number> {
  const { pending, writer } = options;
  let doubts = pending.doubts(groupIds);
  try {
    for (let round = 0; doubts.length > 0 && round < MAX_ROUNDS; round += 1) {
      const open: string[] = [];
      for (let at = 0; at < doubts.length; at += MAX_GROUPS) {
        const asked = doubts.slice(at, at + MAX_GROUPS).map(({ groupId }) => groupId);
        open.push(...(await writer.between(() => ask(options, pending.doubts(asked)))));
      }
      doubts = pending.doubts(open);
    }
    // Only transactions that change faster than the store answers come here.
    return doubts.length === 0 ? 0 : storeFault(new FloeError('timeout', 'transactions went on'));
  } catch (caught) {
    return storeFault(FloeError.from(caught));
  }
}

/** Returns the groups whose answer was out of date. */
async function ask(
  { pending, groups, transactions, replace }: SettleOptions,
  doubts: readonly Doubt[],
): Promise<readonly string[]> {
  const ids = [...new Set(doubts.flatMap(({ transactionalIds }) => transactionalIds))];
  const found = ids.length === 0 ? [] : await transactions.describe(ids);
  const states = new Map(ids.map((id, n) => [id, found[n]]));
  const open: string[] = [];
  const ended: Doubt[] = [];
  for (const doubt of doubts) {
    const { groupId, transactionalIds } = doubt;
    const hasEnded = pending.answered(
      doubt,
      transactionalIds.map((id) => states.get(id)),
    );
    if (hasEnded === undefined) open.push(groupId);
    else if (hasEnded) ended.push(doubt);
  }
  if (ended.length === 0) return open;
  const offsets = await groups.offsets(ended.map(({ groupId }) => groupId));
  for (const [n, doubt] of ended.entries()) {
    if (!pending.isCurrent(doubt)) open.push(doubt.groupId);
    else {
      replace(doubt.groupId, offsets[n]!);
      pending.settled(doubt);
    }
  }
  return open;
}
