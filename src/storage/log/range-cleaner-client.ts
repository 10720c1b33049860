// The other end of the cleaner's thread. It is started by the first partition that is compacted: a broker without
// compacted topics has none. A thread that dies fails the call under way; the next one starts another.
import { Worker } from 'node:worker_threads';
import { errorFromShape, FloeError } from '../../base/error.ts';
import { THREAD_LIMITS } from '../../base/thread-memory.ts';
import type { AbortedTransaction } from '../../metadata/log.ts';
import type {
  CleanedRange,
  CleanRequest,
  KeysReply,
  KeysRequest,
  RangeCleaner,
} from './range-cleaner.ts';
import type { CleanerCall, CleanerReply, CleanerThreadData } from './range-cleaner-thread.ts';

interface Waiter {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: FloeError) => void;
}

/** A RangeCleaner in a thread of its own. */
export function startRangeCleaner(data: CleanerThreadData): RangeCleaner {
  return new RangeCleanerClient(data);
}

class RangeCleanerClient implements RangeCleaner {
  readonly #data: CleanerThreadData;
  #worker: Worker | undefined;
  /** In the order of calls, which is that of replies. */
  readonly #waiting: Waiter[] = [];

  constructor(data: CleanerThreadData) {
    this.#data = data;
  }

  async begin(seed: Uint8Array, maxBytes: number): Promise<void> {
    await this.#call('begin', [seed, maxBytes]);
  }

  async pass(aborted: readonly AbortedTransaction[]): Promise<void> {
    await this.#call('pass', [aborted]);
  }

  async addKeys(request: KeysRequest): Promise<KeysReply> {
    return (await this.#call('addKeys', [request])) as KeysReply;
  }

  async clean(request: CleanRequest): Promise<CleanedRange> {
    return (await this.#call('clean', [request])) as CleanedRange;
  }

  async end(): Promise<void> {
    if (this.#worker !== undefined) await this.#call('end', []);
  }

  async stop(): Promise<void> {
    const worker = this.#worker;
    this.#died(new FloeError('cancelled', 'the cleaner has stopped'));
    await worker?.terminate();
  }

  #call(method: CleanerCall['method'], args: readonly unknown[]): Promise<unknown> {
    this.#worker ??= this.#start();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#worker!.postMessage({ method, args } satisfies CleanerCall);
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL('./range-cleaner-thread.ts', import.meta.url), {
      resourceLimits: THREAD_LIMITS,
      workerData: this.#data,
      name: 'cleaner',
    });
    worker.on('message', (reply: CleanerReply) => {
      const waiter = this.#waiting.shift();
      if ('error' in reply) waiter?.reject(errorFromShape(reply.error));
      else waiter?.resolve(reply.value);
    });
    const lost = (cause: unknown) => {
      if (this.#worker === worker)
        this.#died(new FloeError('unavailable', 'the cleaner thread has died', { cause }));
    };
    worker.on('error', lost);
    worker.on('exit', lost);
    return worker;
  }

  #died(error: FloeError): void {
    this.#worker = undefined;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
