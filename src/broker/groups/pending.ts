// What a group's coordinator knows of offsets that transactions have staged for its groups: all of them, since they are
// staged through it, whoever coordinates the transaction. What it may not know is that a transaction has ended: on another
// node, by an operator, or with an answer that was lost. So while anything is pending for a group, the store is asked
// before anybody is told of its offsets (settle.ts); ends that are told here make the question unnecessary.
// Not for: storing anything, who may stage (offsets.ts).
import { assert } from '../../base/assert.ts';
import type { StoredOffset } from '../../metadata/groups.ts';
import { shardOf } from '../../metadata/shards.ts';
import type { StagedOffsets, TransactionState } from '../../metadata/transactions.ts';

/** Offsets of a group on their way into a transaction. */
export interface Staging {
  readonly transactionalId: string;
  readonly groupId: string;
  readonly partitionIds: readonly number[];
}

/** What became of a {@link Staging}. */
export type Staged =
  | { readonly kind: 'refused' }
  /** The store's answer was lost. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'stored'; readonly incarnation: number };

/** A state of a transactional id that its coordinator, this node, has learnt. */
export interface SeenTransaction {
  readonly state: TransactionState | undefined;
  /** True when it ended by the very step that this tells of; then `applied` is what its commit put into groups. */
  readonly hasEnded: boolean;
  readonly applied?: StagedOffsets;
}

const UNKNOWN = -1;

/** Of one transaction for one group. */
interface Pending {
  partitionIds: Set<number>;
  readonly underWay: Set<Staging>;
  /** Of the transaction when they were staged. */
  incarnation: number;
  /** True while nothing but `underWay` is known of. */
  isNew: boolean;
  /** Raised by what an answer of the store, asked for before it, doesn't know. */
  version: number;
}

interface GroupPending {
  readonly byTransaction: Map<string, Pending>;
  /** Partitions whose committed offset in memory may be older than the store's. */
  stale: Set<number>;
  /** True: of any partition. */
  isAllStale: boolean;
  /** Partitions whose offset was told since the latest question: what is read may be older. */
  readonly touched: Set<number>;
}

/** What has to be asked for a group. */
export interface Doubt {
  readonly groupId: string;
  readonly transactions: readonly {
    readonly transactionalId: string;
    readonly version: number;
    readonly incarnation: number;
    readonly partitionIds: ReadonlySet<number>;
  }[];
}

export interface PendingOptions {
  /** Takes over what a commit has put into a group. False: it can't tell in which order; the store has to be asked. */
  applied(groupId: string, offsets: ReadonlyMap<number, StoredOffset>): boolean;
}

export class PendingOffsets {
  readonly #options: PendingOptions;
  readonly #groups = new Map<string, GroupPending>();
  /** Groups by transaction. */
  readonly #byTransaction = new Map<string, Set<string>>();

  constructor(options: PendingOptions) {
    this.#options = options;
  }

  /** Offsets are about to be staged: pending from now on, since their group may rebalance before they are stored. */
  begin(transactionalId: string, groupId: string, partitionIds: readonly number[]): Staging {
    const staging = { transactionalId, groupId, partitionIds };
    this.#of(groupId, transactionalId).underWay.add(staging);
    return staging;
  }

  /** The store has answered, or never will. To be told in the order in which transactions were changed. */
  finish(staging: Staging, outcome: Staged): void {
    const { groupId, transactionalId, partitionIds } = staging;
    const group = this.#groups.get(groupId);
    const pending = group?.byTransaction.get(transactionalId);
    // Its shard was lost, or the group deleted.
    if (group === undefined || pending?.underWay.delete(staging) !== true) return;
    if (outcome.kind === 'refused') {
      if (pending.isNew && pending.underWay.size === 0) this.#remove(groupId, transactionalId);
      return;
    }
    pending.version += 1;
    if (outcome.kind === 'lost') pending.incarnation = UNKNOWN;
    else if (pending.incarnation !== outcome.incarnation) {
      // The transaction before has ended, and nobody has said how.
      if (!pending.isNew) outdate(group, pending);
      pending.partitionIds = new Set();
      pending.incarnation = outcome.incarnation;
    }
    for (const partitionId of partitionIds) pending.partitionIds.add(partitionId);
    pending.isNew = false;
  }

  /** The coordinator of a transaction, this node, has learnt what state it is in. */
  seen(transactionalId: string, { state, hasEnded, applied }: SeenTransaction): void {
    for (const [groupId, offsets] of applied ?? []) {
      if (offsets.size === 0) continue;
      const isTaken = this.#options.applied(groupId, offsets);
      const group = isTaken ? this.#groups.get(groupId) : this.#groupOf(groupId);
      const told = isTaken ? group?.touched : group?.stale;
      for (const partitionId of offsets.keys()) told?.add(partitionId);
    }
    for (const groupId of [...(this.#byTransaction.get(transactionalId) ?? [])]) {
      const group = this.#groups.get(groupId)!;
      const pending = group.byTransaction.get(transactionalId)!;
      if (pending.isNew) continue;
      // A transaction's end raises the incarnation by one.
      const isItsEnd = hasEnded && state?.incarnation === pending.incarnation + 1;
      if (isItsEnd) this.#done(groupId, transactionalId);
    }
  }

  /** A shard was gained: what the store says is staged for a group, how much of it is to be asked. */
  found(transactionalId: string, groupIds: readonly string[]): void {
    for (const groupId of groupIds) this.#of(groupId, transactionalId).isNew = false;
  }

  /** True when an open transaction has an offset of the group staged for the partition, or is about to. */
  has(groupId: string, partitionId: number): boolean {
    for (const { partitionIds, underWay } of this.#groups.get(groupId)?.byTransaction.values() ??
      []) {
      if (partitionIds.has(partitionId)) return true;
      for (const staging of underWay) if (staging.partitionIds.includes(partitionId)) return true;
    }
    return false;
  }

  /** Those of these groups (unless given, of all) that the store must be asked about before they are spoken of. */
  unsure(groupIds: Iterable<string> = this.#groups.keys()): readonly string[] {
    return [...groupIds].filter((groupId) => this.isUnsure(groupId));
  }

  isUnsure(groupId: string): boolean {
    const group = this.#groups.get(groupId);
    if (group === undefined) return false;
    if (isStale(group)) return true;
    for (const { isNew } of group.byTransaction.values()) if (!isNew) return true;
    return false;
  }

  /** True when some committed offset of the group must be read again. */
  isStale(groupId: string): boolean {
    const group = this.#groups.get(groupId);
    return group !== undefined && isStale(group);
  }

  /** What to ask now: it and its answer are to lie between two writes of offsets. */
  question(groupIds: readonly string[]): readonly Doubt[] {
    return groupIds.flatMap((groupId) => {
      const group = this.#groups.get(groupId);
      if (group === undefined) return [];
      group.touched.clear();
      const transactions = [...group.byTransaction]
        .filter(([, { isNew }]) => !isNew)
        .map(([transactionalId, { version, incarnation, partitionIds }]) => {
          return { transactionalId, version, incarnation, partitionIds };
        });
      return [{ groupId, transactions }];
    });
  }

  /** How the transactions of a question stand, in its order. Returns true when offsets of the group must be read again. */
  answered(doubt: Doubt, states: readonly (TransactionState | undefined)[]): boolean {
    const group = this.#groups.get(doubt.groupId);
    if (group === undefined) return false;
    for (const [n, asked] of doubt.transactions.entries()) {
      const open = states[n]?.status === 'Ongoing' ? states[n] : undefined;
      const pending = group.byTransaction.get(asked.transactionalId);
      // Its end was told meanwhile.
      if (pending === undefined) continue;
      if (open?.incarnation !== asked.incarnation) outdate(group, asked);
      // What was staged meanwhile stays pending; the next question clears what is too much.
      if (pending.version !== asked.version) continue;
      pending.partitionIds = new Set(open?.offsets.get(doubt.groupId)?.keys());
      pending.incarnation = open?.incarnation ?? UNKNOWN;
      if (pending.partitionIds.size === 0) this.#done(doubt.groupId, asked.transactionalId);
    }
    return isStale(group);
  }

  /**
   * Offsets are read again: says which of the group may be taken over, undefined for all. What was told meanwhile is
   * left for another question.
   */
  reread(groupId: string): ((partitionId: number) => boolean) | undefined {
    const group = this.#groups.get(groupId);
    if (group === undefined) return () => false;
    const { stale, isAllStale, touched } = group;
    const left = new Set([...touched].filter((id) => isAllStale || stale.has(id)));
    group.stale = left;
    group.isAllStale = false;
    this.#tidy(groupId, group);
    if (isAllStale && left.size === 0) return undefined;
    return (id) => (isAllStale || stale.has(id)) && !left.has(id);
  }

  /** Nothing is staged for the group any more. */
  forget(groupId: string): void {
    const group = this.#groups.get(groupId);
    if (group === undefined) return;
    for (const transactionalId of [...group.byTransaction.keys()])
      this.#done(groupId, transactionalId);
  }

  /** Its groups are another node's. */
  drop(shard: number): void {
    for (const [groupId, { byTransaction }] of this.#groups) {
      if (shardOf(groupId) !== shard) continue;
      for (const transactionalId of byTransaction.keys()) this.#unlink(groupId, transactionalId);
      this.#groups.delete(groupId);
    }
  }

  #groupOf(groupId: string): GroupPending {
    let group = this.#groups.get(groupId);
    if (group === undefined) {
      group = { byTransaction: new Map(), stale: new Set(), isAllStale: false, touched: new Set() };
      this.#groups.set(groupId, group);
    }
    return group;
  }

  #of(groupId: string, transactionalId: string): Pending {
    const group = this.#groupOf(groupId);
    const known = group.byTransaction.get(transactionalId);
    if (known !== undefined) return known;
    const pending: Pending = {
      partitionIds: new Set(),
      underWay: new Set(),
      incarnation: UNKNOWN,
      isNew: true,
      version: 0,
    };
    group.byTransaction.set(transactionalId, pending);
    const groups = this.#byTransaction.get(transactionalId);
    if (groups === undefined) this.#byTransaction.set(transactionalId, new Set([groupId]));
    else groups.add(groupId);
    return pending;
  }

  /** What is stored has come to its end; what is under way may be of the next transaction. */
  #done(groupId: string, transactionalId: string): void {
    const pending = this.#groups.get(groupId)!.byTransaction.get(transactionalId)!;
    if (pending.underWay.size === 0) this.#remove(groupId, transactionalId);
    else {
      pending.partitionIds = new Set();
      pending.incarnation = UNKNOWN;
      pending.isNew = true;
      pending.version += 1;
    }
  }

  #remove(groupId: string, transactionalId: string): void {
    const group = this.#groups.get(groupId)!;
    group.byTransaction.delete(transactionalId);
    this.#unlink(groupId, transactionalId);
    this.#tidy(groupId, group);
  }

  #unlink(groupId: string, transactionalId: string): void {
    const groups = this.#byTransaction.get(transactionalId);
    assert(groups?.has(groupId) === true, 'groups and transactions are linked both ways');
    groups.delete(groupId);
    if (groups.size === 0) this.#byTransaction.delete(transactionalId);
  }

  #tidy(groupId: string, group: GroupPending): void {
    if (group.byTransaction.size === 0 && !isStale(group)) this.#groups.delete(groupId);
  }
}

const isStale = ({ stale, isAllStale }: GroupPending): boolean => isAllStale || stale.size > 0;

/** A transaction with offsets of these partitions has ended somehow. */
function outdate(
  group: GroupPending,
  {
    incarnation,
    partitionIds,
  }: { readonly incarnation: number; readonly partitionIds: ReadonlySet<number> },
): void {
  if (incarnation === UNKNOWN) group.isAllStale = true;
  for (const partitionId of partitionIds) group.stale.add(partitionId);
}
