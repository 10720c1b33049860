// One transactional id of the simulated workload: one thing at a time, and nothing is heard after its node has died.
// Not for: what is done and remembered (transactional.ts, racing.ts).
import { FloeError } from '../../src/base/error.ts';
import type { TransactionEvent } from '../../src/metadata/transactions.ts';
import type { Surroundings } from './surroundings.ts';
import type { Workload } from './workload.ts';

export class TransactionClient {
  readonly #world: Surroundings;
  readonly #workload: Workload;
  readonly #id: string;
  readonly #who: string;
  /** The life in which something is under way. */
  #busyIn = 0;

  /** `who` names it in violations. */
  constructor(
    world: Surroundings,
    workload: Workload,
    names: { readonly id: string; readonly who: string },
  ) {
    this.#world = world;
    this.#workload = workload;
    this.#id = names.id;
    this.#who = names.who;
  }

  get busy(): boolean {
    return this.#busyIn === this.#world.lives;
  }

  /** The node died. */
  forget(): void {
    this.#busyIn = 0;
  }

  start(work: () => Promise<void>): void {
    this.#busyIn = this.#world.lives;
    const heard = this.#workload.begin(this.#world);
    const done = () => {
      if (heard()) this.#busyIn = 0;
    };
    void work().then(done, (caught) => {
      this.#world.violations.push(`${this.#who}: ${String(caught)}`);
      done();
    });
  }

  /** Lets turns pass. Never resolves if the node died. */
  async pause(turns: number): Promise<void> {
    const life = this.#world.lives;
    await this.#world.settle(turns);
    if (this.#world.dead || life !== this.#world.lives) await new Promise<never>(() => {});
  }

  /** Undefined: no answer came, whatever happened. Never resolves if the node died. */
  async apply(event: TransactionEvent) {
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
}
