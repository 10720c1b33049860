// Key indexes in a thread of their own, seen from the front: each call is a message and its answer. A thread that dies
// fails its calls with `unavailable` and is started again by the next one; the indexes are on disk.
import { Worker } from 'node:worker_threads';
import { type ErrorShape, errorFromShape, FloeError } from '../../base/error.ts';
import type { Logger } from '../../base/log.ts';
import type {
  CheckpointRequest,
  KeyIndexes,
  LandedRequest,
  LookedUp,
  LookupRequest,
  NeedsHistory,
  PreparedChanges,
  PrepareRequest,
} from './key-index.ts';

/** How the thread opens the warehouse's store, and where it keeps its indexes. */
export interface KeyIndexData {
  readonly storeUri: string;
  readonly storeSettings: Readonly<Record<string, unknown>>;
  readonly folder: string;
}

export type KeyIndexCall =
  | { readonly id: number; readonly method: 'prepare'; readonly request: PrepareRequest }
  | { readonly id: number; readonly method: 'landed'; readonly request: LandedRequest }
  | { readonly id: number; readonly method: 'lookup'; readonly request: LookupRequest }
  | { readonly id: number; readonly method: 'checkpoint'; readonly request: CheckpointRequest }
  | {
      readonly id: number;
      readonly method: 'release';
      readonly request: { readonly tableUuid: string; readonly forget: boolean };
    }
  | { readonly id: number; readonly method: 'stop'; readonly request: undefined };

export type KeyIndexAnswer =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: ErrorShape };

const THREAD = new URL('./key-index-thread.ts', import.meta.url);

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: FloeError) => void;
}

type Call = KeyIndexCall extends infer C ? (C extends KeyIndexCall ? Omit<C, 'id'> : never) : never;

export class KeyIndexClient implements KeyIndexes {
  readonly #data: KeyIndexData;
  readonly #logger: Logger;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #nextId = 1;
  #stopped = false;

  constructor(data: KeyIndexData, logger: Logger) {
    this.#data = data;
    this.#logger = logger;
  }

  prepare(request: PrepareRequest): Promise<PreparedChanges | NeedsHistory> {
    return this.#call({ method: 'prepare', request });
  }

  landed(request: LandedRequest): Promise<void> {
    return this.#call({ method: 'landed', request });
  }

  lookup(request: LookupRequest): Promise<LookedUp | NeedsHistory | undefined> {
    return this.#call({ method: 'lookup', request });
  }

  checkpoint(request: CheckpointRequest): Promise<void> {
    return this.#call({ method: 'checkpoint', request });
  }

  async release(tableUuid: string, forget = false): Promise<void> {
    if (this.#worker === undefined && !forget) return;
    await this.#call({ method: 'release', request: { tableUuid, forget } });
  }

  async stop(): Promise<void> {
    const worker = this.#worker;
    if (worker !== undefined) {
      await this.#call({ method: 'stop', request: undefined }).catch(() => {});
    }
    this.#stopped = true;
    await worker?.terminate();
  }

  #call<T>(call: Call): Promise<T> {
    if (this.#stopped)
      return Promise.reject(new FloeError('cancelled', 'the key indexes are stopped'));
    this.#worker ??= this.#start();
    const id = this.#nextId;
    this.#nextId += 1;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker!.postMessage({ id, ...call });
    });
  }

  #start(): Worker {
    const worker = new Worker(THREAD, { workerData: this.#data, name: 'floe-keys' });
    worker.unref();
    worker.on('message', (answer: KeyIndexAnswer) => {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('error' in answer) waiting?.reject(errorFromShape(answer.error));
      else waiting?.resolve(answer.result as never);
    });
    worker.on('error', (error) => this.#died(worker, String(error)));
    worker.on('exit', (code) => this.#died(worker, `exit code ${code}`));
    return worker;
  }

  #died(worker: Worker, why: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    if (!this.#stopped) this.#logger.error({ error: why }, 'the thread of key indexes died');
    const error = new FloeError('unavailable', `the thread of key indexes died: ${why}`);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
