// Producers that do to transactions what clients should not: batches are under way while the end is asked for, and come
// again long after it (L6). With the epochs of KIP-890, which the end raises, and the old way, where only the
// transaction's incarnation tells a late batch from one of the next transaction.
import type { TransactionAdmission, TransactionState } from '../../src/metadata/transactions.ts';
import type { Surroundings } from './surroundings.ts';
import { TransactionClient } from './transaction-client.ts';
import type { SentBatch, Transaction, Workload } from './workload.ts';

/** What a batch says of its sender, and may go on to say when it is no longer true. */
interface Note {
  readonly partitionId: number;
  readonly producerId: number;
  readonly epoch: number;
  readonly admission: TransactionAdmission;
  readonly transaction: Transaction;
}

const TIMEOUT_MS = 60_000;
const MAX_NOTES = 8;

export class RacingProducer {
  readonly #world: Surroundings;
  readonly #workload: Workload;
  readonly #client: TransactionClient;
  readonly #mode: 'verify' | 'implicit';
  #state: TransactionState | undefined;
  readonly #sequences = new Map<number, number>();
  /** Of ended transactions. */
  readonly #notes: Note[] = [];
  #transaction: Transaction | undefined;

  constructor(world: Surroundings, workload: Workload, mode: 'verify' | 'implicit') {
    this.#world = world;
    this.#workload = workload;
    this.#mode = mode;
    const id = `racing-${mode}`;
    this.#client = new TransactionClient(world, workload, { id, who: id });
  }

  act(): void {
    if (this.#client.busy || this.#world.dead) return;
    const haunts = this.#notes.length > 0 && this.#world.prng.next() < 0.3;
    this.#client.start(() => {
      if (this.#state === undefined) return this.#init();
      return haunts ? this.#haunt(new Set(this.#workload.partitionIds)) : this.#race();
    });
  }

  /** True once nothing of it is open any more. */
  finish(): boolean {
    if (this.#client.busy) return false;
    if (this.#state !== undefined) return true;
    this.#client.start(() => this.#init());
    return false;
  }

  /** The node died. */
  forget(): void {
    this.#giveUp('lost');
    this.#client.forget();
  }

  #giveUp(outcome: Transaction['outcome']): void {
    if (this.#transaction?.outcome === 'open') this.#transaction.outcome = outcome;
    this.#transaction = undefined;
    this.#state = undefined;
  }

  async #init(): Promise<void> {
    const outcome = await this.#client.apply({ type: 'init', timeoutMs: TIMEOUT_MS });
    if (outcome === undefined) return;
    this.#take(outcome.state!);
  }

  #take(state: TransactionState): void {
    if (this.#state?.producerEpoch !== state.producerEpoch) this.#sequences.clear();
    this.#state = state;
  }

  #identity() {
    const { producerId, producerEpoch } = this.#state!;
    return { producerId, producerEpoch };
  }

  /** A whole transaction, ended while its last batches are on their way. */
  async #race(): Promise<void> {
    const { prng } = this.#world;
    const { partitionIds } = this.#workload;
    const chosen = new Set(
      Array.from({ length: 1 + prng.int(2) }, () => partitionIds[prng.int(partitionIds.length)]!),
    );
    const transaction: Transaction = { outcome: 'open' };
    this.#transaction = transaction;
    if (this.#mode === 'verify') {
      const event = {
        type: 'add-partitions',
        partitionIds: [...chosen],
      } as const;
      const added = await this.#client.apply({ ...event, ...this.#identity() });
      if (added?.errorCode !== 0) return this.#giveUp('aborted');
      await this.#haunt(chosen);
    }
    const early = [...chosen].map((partitionId) =>
      this.#batch(this.#note(partitionId, transaction)),
    );
    if (prng.next() < 0.8) {
      await this.#workload.append(early, this.#world);
      if (!this.#count(early)) return this.#giveUp('aborted');
    }
    const committed = prng.next() < 0.6;
    const notes = [...chosen].map((partitionId) => this.#note(partitionId, transaction));
    const late = notes.map((note) => this.#batch(note));
    const sent = this.#workload.append(late, this.#world);
    // Some of the time the flush is on its way already.
    if (prng.next() < 0.5) await this.#client.pause(prng.int(3));
    transaction.outcome = 'lost';
    const bump = this.#mode === 'implicit';
    const ended = await this.#client.apply({
      type: 'end',
      committed,
      bump,
      ...this.#identity(),
    });
    await sent;
    this.#notes.push(...notes);
    this.#notes.splice(0, this.#notes.length - MAX_NOTES);
    if (ended === undefined) return this.#giveUp('lost');
    if (ended.errorCode !== 0) {
      // Nothing of it had arrived.
      transaction.outcome = 'aborted';
      return this.#giveUp('aborted');
    }
    transaction.outcome = committed ? 'committed' : 'aborted';
    this.#transaction = undefined;
    this.#count(late);
    this.#take(ended.state!);
    if (late.some(({ state }) => state === 'unknown')) this.#giveUp('lost');
  }

  /** A batch of a transaction that has ended, to one of these partitions: it would fit the present one. */
  async #haunt(partitionIds: ReadonlySet<number>): Promise<void> {
    const notes = this.#notes.filter(({ partitionId }) => partitionIds.has(partitionId));
    if (notes.length === 0) return;
    const note = notes[this.#world.prng.int(notes.length)]!;
    const batch = this.#batch(note);
    await this.#workload.append([batch], this.#world);
    if (batch.state === 'acked')
      throw new Error(`L6: batch ${batch.id} of an ended transaction was taken at ${batch.offset}`);
  }

  #note(partitionId: number, transaction: Transaction): Note {
    const { producerId, producerEpoch: epoch, incarnation } = this.#state!;
    const admission = { incarnation, mode: this.#mode };
    return { partitionId, producerId, epoch, admission, transaction };
  }

  #batch({ partitionId, ...sender }: Note): SentBatch {
    const sequence = this.#sequences.get(partitionId) ?? 0;
    return this.#workload.make(partitionId, { ...sender, sequence });
  }

  /** Sequences go on after what was taken. False unless all was. */
  #count(batches: readonly SentBatch[]): boolean {
    for (const { state, partitionId, sequence, records } of batches)
      if (state === 'acked') this.#sequences.set(partitionId, sequence + records);
    return batches.every(({ state }) => state === 'acked');
  }
}
