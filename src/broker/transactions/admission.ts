// Admission of batches to transactions that another node coordinates: what a batch takes along to its commit, the
// incarnation of its transaction as it is now, is read from the store, with one question for all that wait at the
// moment. A write admitted before EndTxn never lands after it (L6), since the commit holds the note against the state
// under its lock, whoever gave the note. With KIP-890 an epoch belongs to one transaction, so its note is kept.
// Not for: ids of this node's shards, which are in memory (mirror.ts).
import { BatchQueue } from '../../base/queue.ts';
import type {
  Producer,
  TransactionState,
  TransactionsMetadata,
} from '../../metadata/transactions.ts';

/** A state as of a question asked after the request had arrived; undefined where the store had no answer. */
export type Learnt =
  | { readonly kind: 'state'; readonly state: TransactionState | undefined }
  | { readonly kind: 'failed' };

interface Question {
  readonly transactionalId: string;
  resolve(learnt: Learnt): void;
}

/** Ids in one question. */
const MAX_QUESTION = 1_000;

/** Notes that are kept: of the producers that write through this node while their coordinator is elsewhere. */
const MAX_NOTES = 10_000;

interface Note extends Producer {
  readonly incarnation: number;
}

export class Admissions {
  readonly #metadata: Pick<TransactionsMetadata, 'describe'>;
  readonly #queue = new BatchQueue<Question>(MAX_QUESTION, (asked) => this.#ask(asked));
  /** Latest note of each id; the least recently made first. */
  readonly #notes = new Map<string, Note>();

  constructor(metadata: Pick<TransactionsMetadata, 'describe'>) {
    this.#metadata = metadata;
  }

  /** The incarnation that belongs to this epoch, if it is known. */
  noted(transactionalId: string, { producerId, producerEpoch }: Producer): number | undefined {
    const note = this.#notes.get(transactionalId);
    return note?.producerId === producerId && note.producerEpoch === producerEpoch
      ? note.incarnation
      : undefined;
  }

  /** Keeps what was learnt, for clients whose every transaction has an epoch of its own (KIP-890). */
  note(
    transactionalId: string,
    { producerId, producerEpoch, incarnation }: TransactionState,
  ): void {
    this.#notes.delete(transactionalId);
    this.#notes.set(transactionalId, { producerId, producerEpoch, incarnation });
    if (this.#notes.size > MAX_NOTES) this.forget(this.#notes.keys().next().value!);
  }

  /** A batch was refused at its commit: what is noted may be wrong. */
  forget(transactionalId: string): void {
    this.#notes.delete(transactionalId);
  }

  /** The state as of now or later. Never rejects. */
  learn(transactionalId: string): Promise<Learnt> {
    return new Promise((resolve) => this.#queue.push({ transactionalId, resolve }));
  }

  async #ask(asked: readonly Question[]): Promise<void> {
    const ids = [...new Set(asked.map(({ transactionalId }) => transactionalId))];
    try {
      const states = await this.#metadata.describe(ids);
      const byId = new Map(ids.map((id, n) => [id, states[n]]));
      for (const { transactionalId, resolve } of asked)
        resolve({ kind: 'state', state: byId.get(transactionalId) });
    } catch {
      for (const { resolve } of asked) resolve({ kind: 'failed' });
    }
  }
}
