// Takes requests to the metadata store in order, all that queued up meanwhile in one call: the ends of many
// transactions share one fsync. Each asserts the lease under which it is made. Not for: what outcomes mean (coordinator.ts).
import { FloeError } from '../../base/error.ts';
import { BatchQueue } from '../../base/queue.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import type {
  TransactionOutcome,
  TransactionRequest,
  TransactionsMetadata,
} from '../../metadata/transactions.ts';

/** An outcome; an error when the request failed, or nobody knows; `conflict`: the lease is another's, nothing happened. */
export type WriteResult = TransactionOutcome | FloeError;

interface Queued {
  readonly request: TransactionRequest;
  /** Undefined for what needs none: an operator's abort. */
  readonly lease: LeaseToken | undefined;
  resolve(result: WriteResult): void;
}

/** Requests in one metadata transaction: bounds how long flushes wait for the store. */
const MAX_BATCH = 500;

export class TransactionWriter {
  readonly #metadata: Pick<TransactionsMetadata, 'apply'>;
  readonly #now: () => number;
  readonly #queue = new BatchQueue<Queued>(MAX_BATCH, (batch) => this.#writeBatch(batch));
  /** Not yet answered, those under way among them. */
  readonly #open = new Set<Queued>();
  #underWay: Promise<unknown> = Promise.resolve();

  constructor(metadata: Pick<TransactionsMetadata, 'apply'>, now: () => number) {
    this.#metadata = metadata;
    this.#now = now;
  }

  /** Resolves when the outcome is durable or the request has failed; never rejects. In order of calls. */
  write(request: TransactionRequest, lease: LeaseToken | undefined): Promise<WriteResult> {
    return new Promise((resolve) => {
      const queued: Queued = { request, lease, resolve };
      this.#open.add(queued);
      this.#queue.push(queued);
    });
  }

  /** The lease is over: nobody waits for what was asked under it, nor learns what became of what is under way. */
  drop(lease: LeaseToken): void {
    for (const queued of this.#open) if (queued.lease === lease) this.#answer(queued, lost(lease));
  }

  /** Resolves when nothing is queued. */
  idle(): Promise<void> {
    return this.#queue.idle();
  }

  /** Resolves when what is under way now has ended. */
  async settled(): Promise<void> {
    await this.#underWay;
  }

  async #writeBatch(queued: readonly Queued[]): Promise<void> {
    const batch = queued.filter((each) => this.#open.has(each));
    if (batch.length === 0) return;
    const error = await this.#attempt(batch);
    if (error === undefined) return;
    const runs = byLease(batch);
    // One lease that is another's is no fault of the others; the order stays.
    if (error.code === 'conflict' && runs.length > 1)
      for (const run of runs) await this.#writeBatch(run);
    else for (const each of batch) this.#answer(each, error);
  }

  /** Undefined when it was applied, and answered. */
  async #attempt(batch: readonly Queued[]): Promise<FloeError | undefined> {
    try {
      const requests = batch.map(({ request }) => request);
      const applying = this.#metadata.apply(requests, this.#now(), tokensOf(batch));
      this.#underWay = applying.catch(() => {});
      const results = await applying;
      for (const [n, each] of batch.entries()) this.#answer(each, results[n]!);
      return undefined;
    } catch (caught) {
      return FloeError.from(caught);
    }
  }

  #answer(queued: Queued, result: WriteResult): void {
    if (this.#open.delete(queued)) queued.resolve(result);
  }
}

/** In the order in which stores lock them. */
function tokensOf(batch: readonly Queued[]): readonly LeaseToken[] {
  const tokens = new Set<LeaseToken>();
  for (const { lease } of batch) if (lease !== undefined) tokens.add(lease);
  return tokens.size < 2 ? [...tokens] : [...tokens].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Neighbours under one lease together. */
function byLease(batch: readonly Queued[]): readonly (readonly Queued[])[] {
  const runs: Queued[][] = [];
  for (const queued of batch) {
    const run = runs.at(-1);
    if (run !== undefined && run[0]!.lease === queued.lease) run.push(queued);
    else runs.push([queued]);
  }
  return runs;
}

const lost = ({ name }: LeaseToken) =>
  new FloeError('conflict', `lease ${name} is no longer held by this node`);
