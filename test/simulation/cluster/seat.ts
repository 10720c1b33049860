// Where a simulated client sits: at one broker of several, until it goes to another. What was under way at the one it
// left is heard of no more, though it may well happen: it is sent again elsewhere.
import type { Surroundings } from '../surroundings.ts';
import type { SimulatedBroker } from './broker.ts';

/** What is the same at every broker. */
type Around = Pick<
  Surroundings,
  'prng' | 'ids' | 'clock' | 'metadata' | 'compacted' | 'violations' | 'seat' | 'settle' | 'drive'
>;

/** More lives than any broker has. */
const LIVES = 100_000;

export class Seat implements Surroundings {
  readonly #world: Around;
  #broker: SimulatedBroker;
  #moves = 1;

  constructor(world: Around, broker: SimulatedBroker) {
    this.#world = world;
    this.#broker = broker;
  }

  get broker(): SimulatedBroker {
    return this.#broker;
  }

  move(broker: SimulatedBroker): void {
    this.#broker = broker;
    this.#moves += 1;
  }

  get prng() {
    return this.#world.prng;
  }

  get ids() {
    return this.#world.ids;
  }

  get clock() {
    return this.#world.clock;
  }

  get metadata() {
    return this.#world.metadata;
  }

  get node() {
    return this.#broker.node;
  }

  get server() {
    return this.#broker;
  }

  get transactions() {
    return this.#broker.transactions;
  }

  get compacted() {
    return this.#world.compacted;
  }

  get violations() {
    return this.#world.violations;
  }

  get lives(): number {
    return this.#moves * LIVES + this.#broker.lives;
  }

  get dead(): boolean {
    return this.#broker.dead;
  }

  seat(): Surroundings {
    return this.#world.seat();
  }

  settle(turns?: number): Promise<void> {
    return this.#world.settle(turns);
  }

  drive<T>(work: Promise<T>, limitMs?: number): Promise<T> {
    return this.#world.drive(work, limitMs);
  }
}
