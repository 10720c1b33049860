// What this broker knows of transactional ids without asking: for the admission of batches, which must not wait, and
// for require_stable. Every change goes through the coordinator, which keeps it exact, with one exception: partitions
// that a batch joins at its commit (KIP-890) show up with the next outcome only. Identity and incarnation are exact.
// Not for: changing anything (coordinator.ts), what is stored.
import type { StagedOffsets, TransactionState } from '../../metadata/transactions.ts';

const NO_PARTITIONS: ReadonlySet<number> = new Set();
const NO_OFFSETS: StagedOffsets = new Map();

/** Offsets of a group on their way. */
interface Staging {
  readonly groupId: string;
  readonly partitionIds: ReadonlySet<number>;
  /** The store's answer to them was lost. */
  lost: boolean;
}

export class TransactionMirror {
  readonly #states = new Map<string, TransactionState>();
  /** Ids with offsets staged, by group. */
  readonly #byGroup = new Map<string, Set<string>>();
  /** Offsets on their way into the store, or perhaps in it, by id. */
  readonly #staging = new Map<string, Set<Staging>>();
  /** Ids of which nobody knows whether their latest change was stored, with the number of that doubt. */
  readonly #unsure = new Map<string, number>();
  #doubts = 0;

  get size(): number {
    return this.#states.size;
  }

  get(transactionalId: string): TransactionState | undefined {
    return this.#states.get(transactionalId);
  }

  isUnsure(transactionalId: string): boolean {
    return this.#unsure.has(transactionalId);
  }

  /** Ids in doubt and which doubt it is: an answer that was asked for in an earlier one settles nothing. */
  unsureIds(): readonly (readonly [transactionalId: string, doubt: number])[] {
    return [...this.#unsure];
  }

  isInDoubt(transactionalId: string, doubt: number): boolean {
    return this.#unsure.get(transactionalId) === doubt;
  }

  /** The state that writes under this producer id; looks at all, for operators only. */
  byProducer(producerId: number): TransactionState | undefined {
    for (const state of this.#states.values()) if (state.producerId === producerId) return state;
    return undefined;
  }

  /** Takes over what the store has answered. */
  keep(transactionalId: string, state: TransactionState | undefined): void {
    this.#unsure.delete(transactionalId);
    for (const staging of this.#staging.get(transactionalId) ?? [])
      if (staging.lost) this.staged(transactionalId, staging);
    this.#forgetOffsets(transactionalId);
    if (state === undefined || state.status === 'Dead') {
      this.#states.delete(transactionalId);
      return;
    }
    // States come from another thread: empty collections are shared again.
    const partitions = state.partitions.size === 0 ? NO_PARTITIONS : state.partitions;
    const offsets = state.offsets.size === 0 ? NO_OFFSETS : state.offsets;
    this.#states.set(transactionalId, { ...state, partitions, offsets });
    for (const groupId of offsets.keys()) {
      const ids = this.#byGroup.get(groupId);
      if (ids === undefined) this.#byGroup.set(groupId, new Set([transactionalId]));
      else ids.add(transactionalId);
    }
  }

  /** The store's answer was lost: nothing is known until the next one. */
  doubt(transactionalId: string): void {
    this.#doubts += 1;
    this.#unsure.set(transactionalId, this.#doubts);
  }

  /** Offsets are about to be staged: pending from now on, since their group may rebalance before they are stored. */
  staging(transactionalId: string, groupId: string, partitionIds: readonly number[]): Staging {
    const staging = { groupId, partitionIds: new Set(partitionIds), lost: false };
    const others = this.#staging.get(transactionalId);
    if (others === undefined) this.#staging.set(transactionalId, new Set([staging]));
    else others.add(staging);
    return staging;
  }

  /** The store has answered; without an answer (`isUnsure`) they are pending until it says what is. */
  staged(transactionalId: string, staging: Staging): void {
    if (this.isUnsure(transactionalId)) {
      staging.lost = true;
      return;
    }
    const others = this.#staging.get(transactionalId);
    others?.delete(staging);
    if (others?.size === 0) this.#staging.delete(transactionalId);
  }

  /** True when an open transaction has an offset of the group staged for the partition, or is about to. */
  hasPendingOffset(groupId: string, partitionId: number): boolean {
    for (const underWay of this.#staging.values()) {
      for (const staging of underWay)
        if (staging.groupId === groupId && staging.partitionIds.has(partitionId)) return true;
    }
    for (const id of this.#byGroup.get(groupId) ?? []) {
      if (this.#states.get(id)?.offsets.get(groupId)?.has(partitionId) === true) return true;
    }
    return false;
  }

  /** Nothing is staged for the group any more. */
  forgetGroup(groupId: string): void {
    for (const id of this.#byGroup.get(groupId) ?? []) {
      const state = this.#states.get(id)!;
      this.#states.set(id, { ...state, offsets: new Map(state.offsets).set(groupId, new Map()) });
    }
  }

  #forgetOffsets(transactionalId: string): void {
    for (const groupId of this.#states.get(transactionalId)?.offsets.keys() ?? []) {
      const ids = this.#byGroup.get(groupId);
      ids?.delete(transactionalId);
      if (ids?.size === 0) this.#byGroup.delete(groupId);
    }
  }
}
