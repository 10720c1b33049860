// Producers that do to transactions what clients should not: batches are under way while the end is asked for, and come
// again long after it (L6). With the epochs of KIP-890, which the end raises, and the old way, where only the
// transaction's incarnation tells a late batch from one of the next transaction.
import { FloeError } from '../../src/base/error.ts';
import type {
  TransactionAdmission,
  TransactionEvent,
  TransactionState,
} from '../../src/metadata/transactions.ts';
import type { SentBatch, Transaction, Workload } from './workload.ts';
import type { World } from './world.ts';

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
  readonly #world: World;
  readonly #workload: Workload;
  readonly #id: string;
  readonly #mode: 'verify' | 'implicit';
  #state: TransactionState | undefined;
  readonly #sequences = new Map<number, number>();
  /** Of ended transactions. */
  readonly #notes: Note[] = [];
  #transaction: Transaction | undefined;
  #busyIn = 0;

  constructor(world: World, workload: Workload, mode: 'verify' | 'implicit') {
    this.#world = world;
    this.#workload = workload;
    this.#mode = mode;
    this.#id = `racing-${mode}`;
  }

  act(): void {
    if (this.#busyIn === this.#world.lives || this.#world.dead) return;
    const haunts = this.#notes.length > 0 && this.#world.prng.next() < 0.3;
    this.#start(() => {
      if (this.#state === undefined) return this.#init();
      return haunts ? this.#haunt(new Set(this.#workload.partitionIds)) : this.#race();
    });
  }

  /** True once nothing of it is open any more. */
  finish(): boolean {
    if (this.#busyIn === this.#world.lives) return false;
    if (this.#state !== undefined) return true;
    this.#start(() => this.#init());
    return false;
  }

  /** The node died. */
  forget(): void {
    this.#giveUp('lost');
    this.#busyIn = 0;
  }

  #start(work: () => Promise<void>): void {
    const life = this.#world.lives;
    this.#busyIn = life;
    this.#workload.pending += 1;
    const done = () => {
      if (life !== this.#world.lives || this.#world.dead) return;
      this.#workload.pending -= 1;
      this.#busyIn = 0;
    };
    void work().then(done, (caught) => {
      this.#world.violations.push(`${this.#id}: ${String(caught)}`);
      done();
    });
  }

  #giveUp(outcome: Transaction['outcome']): void {
    if (this.#transaction?.outcome === 'open') this.#transaction.outcome = outcome;
    this.#transaction = undefined;
    this.#state = undefined;
  }

  /** Undefined: no answer came. Never resolves if the node died. */
  async #apply(event: TransactionEvent) {
    const world = this.#world;
    const life = world.lives;
    const request = { transactionalId: this.#id, event };
    const outcome = await world.transactions
      .apply([request], world.clock.now())
      .then(([only]) => only!)
      .catch((caught: unknown) => {
        if (world.dead || life !== world.lives || caught instanceof FloeError) return undefined;
        throw caught;
      });
    if (world.dead || life !== world.lives) return await new Promise<never>(() => {});
    this.#workload.trace.push(`${this.#id}:${event.type}:${outcome?.errorCode}`);
    return outcome;
  }

  async #init(): Promise<void> {
    const outcome = await this.#apply({ type: 'init', timeoutMs: TIMEOUT_MS });
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
      const added = await this.#apply({ ...event, ...this.#identity() });
      if (added?.errorCode !== 0) return this.#giveUp('aborted');
      await this.#haunt(chosen);
    }
    const early = [...chosen].map((partitionId) =>
      this.#batch(this.#note(partitionId, transaction)),
    );
    if (prng.next() < 0.8) {
      await this.#workload.append(early);
      if (!this.#count(early)) return this.#giveUp('aborted');
    }
    const committed = prng.next() < 0.6;
    const notes = [...chosen].map((partitionId) => this.#note(partitionId, transaction));
    const late = notes.map((note) => this.#batch(note));
    const sent = this.#workload.append(late);
    // Some of the time the flush is on its way already.
    if (prng.next() < 0.5) await this.#world.settle(prng.int(3));
    transaction.outcome = 'lost';
    const bump = this.#mode === 'implicit';
    const ended = await this.#apply({
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
    await this.#workload.append([batch]);
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
