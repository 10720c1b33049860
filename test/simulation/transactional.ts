// Transactional producers under simulation: begin, send, commit or abort, lose answers, die with the node, and fence one
// another (two of them share an id). What each was told of its transactions stands in the batches it sent.
import { FloeError } from '../../src/base/error.ts';
import type { TransactionEvent, TransactionState } from '../../src/metadata/transactions.ts';
import type { Transaction, Workload } from './workload.ts';
import type { World } from './world.ts';

const TIMEOUT_MS = 60_000;

export class TransactionalProducer {
  readonly id: string;
  readonly #world: World;
  readonly #workload: Workload;
  #identity: TransactionState | undefined;
  readonly #sequences = new Map<number, number>();
  #transaction: Transaction | undefined;
  /** A batch of the transaction was refused: it can only be aborted. */
  #broken = false;
  /** The life in which something is under way. */
  #busyIn = 0;

  constructor(world: World, workload: Workload, id: string) {
    this.#world = world;
    this.#workload = workload;
    this.id = id;
  }

  get #busy(): boolean {
    return this.#busyIn === this.#world.lives;
  }

  /** The next thing a client would do. */
  act(): void {
    if (this.#busy || this.#world.dead) return;
    const dice = this.#world.prng.next();
    if (this.#identity === undefined || dice < 0.03) this.#start(() => this.#init());
    else if (dice < 0.65 && !this.#broken) this.#start(() => this.#send());
    else this.#start(() => this.#end(!this.#broken && dice < 0.88));
  }

  /** True once nothing of it is open any more: what is left is aborted by a new beginning. */
  finish(): boolean {
    if (this.#busy) return false;
    if (this.#identity !== undefined && this.#transaction === undefined) return true;
    this.#start(() => this.#init());
    return false;
  }

  /** The node died. An open transaction can't be committed any more: the next thing is a new beginning. */
  forget(): void {
    if (this.#transaction?.outcome === 'open') this.#transaction.outcome = 'aborted';
    this.#transaction = undefined;
    this.#identity = undefined;
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
      this.#world.violations.push(`transactional producer ${this.id}: ${String(caught)}`);
      done();
    });
  }

  /** Undefined: no answer came, whatever happened. Never resolves if the node died. */
  async #apply(event: TransactionEvent) {
    const { world } = { world: this.#world };
    const life = world.lives;
    try {
      const [outcome] = await world.transactions.apply(
        [{ transactionalId: this.id, event }],
        world.clock.now(),
      );
      if (life !== world.lives || world.dead) return await new Promise<undefined>(() => {});
      this.#workload.trace.push(`${this.id}:${event.type}:${outcome!.errorCode}`);
      return outcome!;
    } catch (caught) {
      if (life !== world.lives || world.dead) return await new Promise<undefined>(() => {});
      if (caught instanceof FloeError) return undefined;
      throw caught;
    }
  }

  async #init(): Promise<void> {
    const outcome = await this.#apply({ type: 'init', timeoutMs: TIMEOUT_MS });
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
    await this.#workload.append(batches);
    if (batches.some((batch) => batch.state !== 'acked')) this.#broken = true;
  }

  async #end(committed: boolean): Promise<void> {
    const { producerId, producerEpoch } = this.#identity!;
    const transaction = this.#transaction;
    if (transaction === undefined) return;
    transaction.outcome = 'lost';
    const event = { type: 'end', committed, bump: true, producerId, producerEpoch } as const;
    const outcome = await this.#apply(event);
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
