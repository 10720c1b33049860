// The table as lanes see it on a node that doesn't coordinate it: bound from what the catalog says, by the same code as the
// coordinator's, and whatever would change the table is asked of the coordinator. Once it has, the table is loaded anew
// and what was asked for is there (rule T10: a worker writes with committed ids only).
// Not for: how an ask gets there (lane-host.ts).
import { FloeError } from '../base/error.ts';
import { Mutex } from '../base/queue.ts';
import type { TableBinding } from './binding.ts';
import type { JobNeeds } from './job.ts';
import type { LaneBinding } from './lane.ts';
import { needsCoordinator } from './read-only-catalog.ts';

/** Asks for the same needs: somebody else may change the table in between. */
const MAX_ASKS = 4;

export class AskingBinding implements LaneBinding {
  readonly #inner: TableBinding;
  readonly #ask: (needs: JobNeeds) => Promise<void>;
  /** Lanes need the same things at the same time: one asks, and the others find them there. */
  readonly #mutex = new Mutex();

  /** `inner` works on a read-only catalog. `ask` returns once the coordinator has answered. */
  constructor(inner: TableBinding, ask: (needs: JobNeeds) => Promise<void>) {
    this.#inner = inner;
    this.#ask = ask;
  }

  get inner(): TableBinding {
    return this.#inner;
  }

  get identifier() {
    return this.#inner.identifier;
  }

  get table() {
    return this.#inner.table;
  }

  jobTable() {
    return this.#inner.jobTable();
  }

  jobDeadLetters() {
    return this.#inner.jobDeadLetters();
  }

  deadLettersFrom(partition: number): number {
    return this.#inner.deadLettersFrom(partition);
  }

  /** As the coordinator's. @throws FloeError also what kept the coordinator from answering. */
  satisfy(needs: JobNeeds): Promise<boolean> {
    return this.#mutex.run(async () => {
      const before = this.#schemaId();
      for (let asks = 0; ; asks += 1) {
        try {
          const changed = await this.#inner.satisfy(needs);
          return changed || before !== this.#schemaId();
        } catch (caught) {
          if (!needsCoordinator(caught)) throw caught;
          if (asks === MAX_ASKS) {
            throw new FloeError('unavailable', 'the table lacks what its coordinator has added');
          }
        }
        await this.#ask(needs);
        await this.#inner.reload();
      }
    });
  }

  #schemaId(): number | undefined {
    return this.#inner.table?.metadata['current-schema-id'];
  }
}
