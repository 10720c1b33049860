// What this broker knows of transactional ids without asking: for the admission of batches, which must not wait, and
// for require_stable. Every change goes through the coordinator, which keeps it exact, with one exception: partitions
// that a batch joins at its commit (KIP-890) show up with the next outcome only. Identity and incarnation are exact.
// Not for: changing anything (coordinator.ts), what is stored.
import type { StagedOffsets, TransactionState } from '../../metadata/transactions.ts';

const NO_PARTITIONS: ReadonlySet<number> = new Set();
const NO_OFFSETS: StagedOffsets = new Map();

export class TransactionMirror {
  readonly #states = new Map<string, TransactionState>();
  /** Ids with offsets staged, by group. */
  readonly #byGroup = new Map<string, Set<string>>();
  /** Ids of which nobody knows whether their latest change was stored. */
  readonly #unsure = new Set<string>();

  get size(): number {
    return this.#states.size;
  }

  get(transactionalId: string): TransactionState | undefined {
    return this.#states.get(transactionalId);
  }

  isUnsure(transactionalId: string): boolean {
    return this.#unsure.has(transactionalId);
  }

  unsureIds(): readonly string[] {
    return [...this.#unsure];
  }

  /** The state that writes under this producer id; looks at all, for operators only. */
  byProducer(producerId: number): TransactionState | undefined {
    for (const state of this.#states.values()) if (state.producerId === producerId) return state;
    return undefined;
  }

  /** Takes over what the store has answered. */
  keep(transactionalId: string, state: TransactionState | undefined): void {
    this.#unsure.delete(transactionalId);
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
    this.#unsure.add(transactionalId);
  }

  /** True when an open transaction has an offset of the group staged for the partition. */
  hasPendingOffset(groupId: string, partitionId: number): boolean {
    for (const id of this.#byGroup.get(groupId) ?? []) {
      if (this.#states.get(id)?.offsets.get(groupId)?.has(partitionId) === true) return true;
    }
    return false;
  }

  #forgetOffsets(transactionalId: string): void {
    for (const groupId of this.#states.get(transactionalId)?.offsets.keys() ?? []) {
      const ids = this.#byGroup.get(groupId);
      ids?.delete(transactionalId);
      if (ids?.size === 0) this.#byGroup.delete(groupId);
    }
  }
}
