// Takes requests to the metadata store in order, all that queued up meanwhile in one call: the ends of many
// transactions share one fsync. Not for: what the outcomes mean (coordinator.ts).
import { FloeError } from '../../base/error.ts';
import { BatchQueue } from '../../base/queue.ts';
import type {
  TransactionOutcome,
  TransactionRequest,
  TransactionsMetadata,
} from '../../metadata/transactions.ts';

/** An outcome; an error when the request failed, or nobody knows. */
export type WriteResult = TransactionOutcome | FloeError;

interface Queued {
  readonly request: TransactionRequest;
  resolve(result: WriteResult): void;
}

/** Requests in one metadata transaction: bounds how long flushes wait for the store. */
const MAX_BATCH = 500;

export class TransactionWriter {
  readonly #metadata: TransactionsMetadata;
  readonly #now: () => number;
  readonly #queue = new BatchQueue<Queued>(MAX_BATCH, (batch) => this.#writeBatch(batch));

  constructor(metadata: TransactionsMetadata, now: () => number) {
    this.#metadata = metadata;
    this.#now = now;
  }

  /** Resolves when the outcome is durable or the request has failed; never rejects. In order of calls. */
  write(request: TransactionRequest): Promise<WriteResult> {
    return new Promise((resolve) => this.#queue.push({ request, resolve }));
  }

  /** Resolves when nothing is queued. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  async #writeBatch(batch: readonly Queued[]): Promise<void> {
    let results: readonly WriteResult[];
    try {
      const requests = batch.map(({ request }) => request);
      results = await this.#metadata.apply(requests, this.#now());
    } catch (caught) {
      const error = FloeError.from(caught);
      results = batch.map(() => error);
    }
    for (const [n, { resolve }] of batch.entries()) resolve(results[n]!);
  }
}
