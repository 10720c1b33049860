// What this node knows of the transactional ids of its shards without asking: for the admission of batches, which must
// not wait. Every change of an identity goes through the coordinator, which keeps it exact, with one exception:
// partitions that a batch joins at its commit (KIP-890), and offsets, show up with the next outcome only. An operator's
// abort on another node shows when its producer is refused. Identity and incarnation are held against the store's by the
// commit itself. Not for: changing anything (coordinator.ts), offsets of groups (groups/pending.ts).
import { shardOf } from '../../metadata/shards.ts';
import type { StagedOffsets, TransactionState } from '../../metadata/transactions.ts';

const NO_PARTITIONS: ReadonlySet<number> = new Set();
const NO_OFFSETS: StagedOffsets = new Map();

export class TransactionMirror {
  readonly #states = new Map<string, TransactionState>();
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

  /** Takes over what the store has answered. */
  keep(transactionalId: string, state: TransactionState | undefined): void {
    this.#unsure.delete(transactionalId);
    if (state === undefined || state.status === 'Dead') {
      this.#states.delete(transactionalId);
      return;
    }
    // States come from another thread: empty collections are shared again. Offsets are nothing to batches.
    const partitions = state.partitions.size === 0 ? NO_PARTITIONS : state.partitions;
    this.#states.set(transactionalId, { ...state, partitions, offsets: NO_OFFSETS });
  }

  /** The store's answer was lost: nothing is known until the next one. */
  doubt(transactionalId: string): void {
    this.#doubts += 1;
    this.#unsure.set(transactionalId, this.#doubts);
  }

  /** Its ids are another node's. */
  drop(shard: number): void {
    for (const map of [this.#states, this.#unsure])
      for (const transactionalId of map.keys())
        if (shardOf(transactionalId) === shard) map.delete(transactionalId);
  }
}
