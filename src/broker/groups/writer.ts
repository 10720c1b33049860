// Writes group changes in order, all that queued up meanwhile in one transaction: commits of many groups share one
// fsync. Not for: what the changes mean (coordinator.ts).
import { FloeError } from '../../base/error.ts';
import type { GroupChange, GroupsMetadata } from '../../metadata/groups.ts';
import type { CoordinatorLease } from './lease.ts';

interface Queued {
  readonly change: GroupChange;
  resolve(result: WriteResult): void;
}

export interface WriteResult {
  /** Set when it was not written, or nobody knows. */
  readonly error: FloeError | undefined;
  /** Partition ids whose topic was deleted meanwhile: their offsets were left out. */
  readonly gone: readonly number[];
}

/** Whoever takes changes to the store. */
export interface ChangeWriter {
  /** Resolves when the change is durable or has failed; never rejects. Changes land in order of calls. */
  write(change: GroupChange): Promise<WriteResult>;
}

/** Changes in one transaction: bounds how long others wait for the store. */
const MAX_BATCH = 1_000;

export class GroupWriter implements ChangeWriter {
  readonly #metadata: GroupsMetadata;
  readonly #lease: CoordinatorLease;
  readonly #queue: Queued[] = [];
  #running: Promise<void> | undefined;

  constructor(metadata: GroupsMetadata, lease: CoordinatorLease) {
    this.#metadata = metadata;
    this.#lease = lease;
  }

  write(change: GroupChange): Promise<WriteResult> {
    return new Promise((resolve) => {
      this.#queue.push({ change, resolve });
      this.#running ??= this.#drain();
    });
  }

  /** Resolves when nothing is queued. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #drain(): Promise<void> {
    // Lets calls of the same turn join the first transaction.
    await Promise.resolve();
    while (this.#queue.length > 0) await this.#writeBatch(this.#queue.splice(0, MAX_BATCH));
    this.#running = undefined;
  }

  async #writeBatch(batch: readonly Queued[]): Promise<void> {
    let result: WriteResult;
    try {
      const changes = batch.map(({ change }) => change);
      const gone = await this.#metadata.write(changes, this.#lease.lease);
      result = { error: undefined, gone };
    } catch (caught) {
      const error = FloeError.from(caught);
      if (error.code === 'conflict') this.#lease.lose();
      result = { error, gone: [] };
    }
    for (const { resolve } of batch) resolve(result);
  }
}
