// Transactional producers under simulation: begin, send, commit or abort, lose answers, die with the node, and fence one
// another (two of them share an id). What each was told of its transactions stands in the batches it sent.
import type { TransactionState } from '../../src/metadata/transactions.ts';
import type { Surroundings } from './surroundings.ts';
import { TransactionClient } from './transaction-client.ts';
import type { Transaction, Workload } from './workload.ts';

const TIMEOUT_MS = 60_000;

export class TransactionalProducer {
  readonly #client: TransactionClient;
  readonly #world: Surroundings;
  readonly #workload: Workload;
  #identity: TransactionState | undefined;
  readonly #sequences = new Map<number, number>();
  #transaction: Transaction | undefined;
  /** A batch of the transaction was refused: it can only be aborted. */
  #broken = false;

  constructor(world: Surroundings, workload: Workload, id: string) {
    this.#world = world;
    this.#workload = workload;
    const who = `transactional producer ${id}`;
    this.#client = new TransactionClient(world, workload, { id, who });
  }

  /** The next thing a client would do. */
  act(): void {
    if (this.#client.busy || this.#world.dead) return;
    const dice = this.#world.prng.next();
    if (this.#identity === undefined || dice < 0.03) this.#client.start(() => this.#init());
    else if (dice < 0.65 && !this.#broken) this.#client.start(() => this.#send());
    else this.#client.start(() => this.#end(!this.#broken && dice < 0.88));
  }

  /** True once nothing of it is open any more: what is left is aborted by a new beginning. */
  finish(): boolean {
    if (this.#client.busy) return false;
    if (this.#identity !== undefined && this.#transaction === undefined) return true;
    this.#client.start(() => this.#init());
    return false;
  }

  /** The node died. An open transaction can't be committed any more: the next thing is a new beginning. */
  forget(): void {
    if (this.#transaction?.outcome === 'open') this.#transaction.outcome = 'aborted';
    this.#transaction = undefined;
    this.#identity = undefined;
    this.#client.forget();
  }

  async #init(): Promise<void> {
    const outcome = await this.#client.apply({ type: 'init', timeoutMs: TIMEOUT_MS });
    if (outcome === undefined) return;
    // Whatever was open is aborted by now; whether a lost end was in time, nobody told us.
    if (this.#transaction?.outcome === 'open') this.#transaction.outcome = 'aborted';
    this.#transaction = undefined;
    this.#take(outcome.state!);
  }

  #take(state: TransactionState): void {
    const before = this.#identity;
    if (before?.producerId !== state.producerId || before.producerEpoch !== state.producerEpoch)
      this.#sequences.clear();
    this.#identity = state;
    this.#broken = false;
  }

  async #send(): Promise<void> {
    const { prng } = this.#world;
    const { producerId, producerEpoch: epoch, incarnation } = this.#identity!;
    const transaction = (this.#transaction ??= { outcome: 'open' });
    const partitions = this.#workload.partitionIds;
    const batches = Array.from({ length: 1 + prng.int(3) }, () => {
      const partitionId = partitions[prng.int(partitions.length)]!;
      const sequence = this.#sequences.get(partitionId) ?? 0;
      const admission = { incarnation, mode: 'implicit' as const };
      const sender = { producerId, epoch, sequence, transaction, admission };
      const batch = this.#workload.make(partitionId, sender);
      this.#sequences.set(partitionId, sequence + batch.records);
      return batch;
    });
    await this.#workload.append(batches, this.#world);
    if (batches.some((batch) => batch.state !== 'acked')) this.#broken = true;
  }

  async #end(committed: boolean): Promise<void> {
    const { producerId, producerEpoch } = this.#identity!;
    const transaction = this.#transaction;
    if (transaction === undefined) return;
    transaction.outcome = 'lost';
    const event = { type: 'end', committed, bump: true, producerId, producerEpoch } as const;
    const outcome = await this.#client.apply(event);
    if (outcome === undefined) {
      this.#identity = undefined;
    } else if (outcome.errorCode === 0) {
      transaction.outcome = committed ? 'committed' : 'aborted';
      this.#take(outcome.state!);
    } else {
      // Fenced, or nothing of it ever arrived: it was not committed.
      transaction.outcome = 'aborted';
      this.#identity = undefined;
    }
    this.#transaction = undefined;
  }
}
