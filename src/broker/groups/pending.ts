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
}

interface GroupPending {
  readonly byTransaction: Map<string, Pending>;
  /** Committed offsets in memory may be older than the store's. */
  isStale: boolean;
  /** Raised by whatever an answer of the store, asked for before it, doesn't know. */
  version: number;
}

/** What has to be asked for a group. */
export interface Doubt {
  readonly groupId: string;
  readonly transactionalIds: readonly string[];
  readonly version: number;
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
    group.version += 1;
    if (outcome.kind === 'refused') {
      if (pending.isNew && pending.underWay.size === 0) this.#remove(groupId, transactionalId);
      return;
    }
    for (const partitionId of partitionIds) pending.partitionIds.add(partitionId);
    // Of an earlier transaction besides: its end has not been told, and is asked for.
    const isSame = outcome.kind === 'stored' && pending.incarnation === outcome.incarnation;
    if (pending.isNew && outcome.kind === 'stored') pending.incarnation = outcome.incarnation;
    else if (!isSame) pending.incarnation = UNKNOWN;
    pending.isNew = false;
  }

  /** The coordinator of a transaction, this node, has learnt what state it is in. */
  seen(transactionalId: string, { state, hasEnded, applied }: SeenTransaction): void {
    for (const [groupId, offsets] of applied ?? []) {
      if (offsets.size === 0) continue;
      const isTaken = this.#options.applied(groupId, offsets);
      const group = isTaken ? this.#groups.get(groupId) : this.#groupOf(groupId);
      if (group === undefined) continue;
      group.version += 1;
      if (!isTaken) group.isStale = true;
    }
    for (const groupId of [...(this.#byTransaction.get(transactionalId) ?? [])]) {
      const group = this.#groups.get(groupId)!;
      const pending = group.byTransaction.get(transactionalId)!;
      if (pending.isNew) continue;
      // A transaction's end raises the incarnation by one.
      const isItsEnd = hasEnded && state?.incarnation === pending.incarnation + 1;
      if (!isItsEnd) continue;
      group.version += 1;
      this.#done(groupId, transactionalId);
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

  /** What has to be asked before one of these groups (unless given, any) is spoken of. */
  doubts(groupIds: Iterable<string> = this.#groups.keys()): readonly Doubt[] {
    const doubts: Doubt[] = [];
    for (const groupId of groupIds) {
      const group = this.#groups.get(groupId);
      if (group === undefined) continue;
      const transactionalIds: string[] = [];
      for (const [transactionalId, pending] of group.byTransaction)
        if (!pending.isNew) transactionalIds.push(transactionalId);
      if (group.isStale || transactionalIds.length > 0)
        doubts.push({ groupId, transactionalIds, version: group.version });
    }
    return doubts;
  }

  /** True when the store has to be asked: {@link doubts} without making a list. */
  isUnsure(groupId: string): boolean {
    return this.#groups.has(groupId) && this.doubts([groupId]).length > 0;
  }

  /**
   * The store's answer to a doubt, asked for after it was told. Returns true when some transaction of it has ended, so
   * that committed offsets must be read again, false when all go on, undefined when the answer is out of date.
   */
  answered(doubt: Doubt, states: readonly (TransactionState | undefined)[]): boolean | undefined {
    const { groupId, transactionalIds } = doubt;
    const group = this.#groups.get(groupId);
    if (group === undefined || !this.isCurrent(doubt)) return undefined;
    const hasEnded =
      group.isStale ||
      transactionalIds.some((transactionalId, n) => {
        const { incarnation } = group.byTransaction.get(transactionalId)!;
        return states[n]?.status !== 'Ongoing' || states[n].incarnation !== incarnation;
      });
    // What is to be read again is asked for until it has been.
    group.isStale = hasEnded;
    for (const [n, transactionalId] of transactionalIds.entries()) {
      const pending = group.byTransaction.get(transactionalId)!;
      const open = states[n]?.status === 'Ongoing' ? states[n] : undefined;
      pending.partitionIds = new Set(open?.offsets.get(groupId)?.keys());
      pending.incarnation = open?.incarnation ?? UNKNOWN;
      if (pending.partitionIds.size === 0) this.#done(groupId, transactionalId);
    }
    return hasEnded;
  }

  /** Committed offsets were read again, with the answer to the doubt or after it. */
  settled(doubt: Doubt): void {
    assert(this.isCurrent(doubt), 'only what nothing has overtaken is settled');
    const group = this.#groups.get(doubt.groupId)!;
    group.isStale = false;
    this.#tidy(doubt.groupId, group);
  }

  /** True while nothing has happened that an answer to the doubt wouldn't know. */
  isCurrent({ groupId, version }: Doubt): boolean {
    return this.#groups.get(groupId)?.version === version;
  }

  /** Nothing is staged for the group any more. */
  forget(groupId: string): void {
    const group = this.#groups.get(groupId);
    if (group === undefined) return;
    group.version += 1;
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
      group = { byTransaction: new Map(), isStale: false, version: 0 };
      this.#groups.set(groupId, group);
    }
    return group;
  }

  #of(groupId: string, transactionalId: string): Pending {
    const group = this.#groupOf(groupId);
    group.version += 1;
    const known = group.byTransaction.get(transactionalId);
    if (known !== undefined) return known;
    const pending: Pending = {
      partitionIds: new Set(),
      underWay: new Set(),
      incarnation: UNKNOWN,
      isNew: true,
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
    if (group.byTransaction.size === 0 && !group.isStale) this.#groups.delete(groupId);
  }
}
