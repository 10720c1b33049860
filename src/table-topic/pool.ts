// The worker threads of this process, as one job runner. Jobs of different tables take turns, so that one table's
// backlog never starves another (rule T9). A thread that dies fails its job with `unavailable` and is replaced.
import { Worker } from 'node:worker_threads';
import { errorToShape, FloeError } from '../base/error.ts';
import type { Component } from '../base/lifecycle.ts';
import type { Logger } from '../base/log.ts';
import { THREAD_LIMITS } from '../base/thread-memory.ts';
import type { JobResult, JobRunner, JobSlice, TableJob } from './job.ts';

/** What a worker thread is started with: how it opens the warehouse's store for itself. */
export interface WorkerData {
  readonly storeUri: string;
  readonly storeSettings: Readonly<Record<string, unknown>>;
}

export interface PoolOptions {
  readonly threads: number;
  readonly worker: WorkerData;
  readonly logger: Logger;
  /** What a thread runs; the default serves table jobs. */
  readonly script?: URL;
}

interface Waiting {
  readonly job: TableJob;
  readonly resolve: (result: JobResult) => void;
}

interface Thread {
  readonly worker: Worker;
  busy: Waiting | undefined;
}

const WORKER_THREAD = new URL('./worker-thread.ts', import.meta.url);

export class WorkerPool implements JobRunner, Component {
  readonly #options: PoolOptions;
  readonly #threads: Thread[] = [];
  /** Jobs by table, tables in the order of their turn. */
  readonly #queues = new Map<string, Waiting[]>();
  #stopping = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  run(job: TableJob): Promise<JobResult> {
    if (this.#stopping) return Promise.resolve(failure('cancelled', 'the table workers stop'));
    return new Promise((resolve) => {
      const waiting = { job: { ...job, slices: job.slices.map(shared) }, resolve };
      const queue = this.#queues.get(job.topic);
      if (queue === undefined) this.#queues.set(job.topic, [waiting]);
      else queue.push(waiting);
      this.#dispatch();
    });
  }

  /** Starts a first thread ahead of the first job: loading takes longer than a short commit interval. */
  warm(): void {
    if (!this.#stopping && this.#threads.length === 0) this.#startThread();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    for (const queue of this.#queues.values()) {
      for (const { resolve } of queue) resolve(failure('cancelled', 'the table workers stop'));
    }
    this.#queues.clear();
    const threads = this.#threads.splice(0);
    await Promise.all(threads.map(({ worker }) => worker.terminate()));
    for (const { busy } of threads) busy?.resolve(failure('cancelled', 'the table workers stop'));
  }

  #dispatch(): void {
    for (;;) {
      const thread = this.#idleThread();
      if (thread === undefined) return;
      const next = this.#next();
      if (next === undefined) return;
      thread.busy = next;
      thread.worker.postMessage(next.job);
    }
  }

  /** The first job of the table whose turn it is; that table goes to the end of the line. */
  #next(): Waiting | undefined {
    for (const [topic, queue] of this.#queues) {
      this.#queues.delete(topic);
      const job = queue.shift();
      if (queue.length > 0) this.#queues.set(topic, queue);
      if (job !== undefined) return job;
    }
    return undefined;
  }

  /** Threads start when first needed: a broker without tables has none. */
  #idleThread(): Thread | undefined {
    const idle = this.#threads.find((thread) => thread.busy === undefined);
    if (idle !== undefined) return idle;
    if (this.#stopping || this.#queues.size === 0) return undefined;
    return this.#threads.length < this.#options.threads ? this.#startThread() : undefined;
  }

  #startThread(): Thread {
    const worker = new Worker(this.#options.script ?? WORKER_THREAD, {
      resourceLimits: THREAD_LIMITS,
      workerData: this.#options.worker,
      name: 'floe-table',
    });
    const thread: Thread = { worker, busy: undefined };
    worker.unref();
    worker.on('message', (result: JobResult) => {
      const done = thread.busy;
      thread.busy = undefined;
      done?.resolve(result);
      this.#dispatch();
    });
    worker.on('error', (error) => this.#died(thread, error));
    worker.on('exit', (code) => this.#died(thread, new Error(`exit code ${code}`)));
    this.#threads.push(thread);
    return thread;
  }

  #died(thread: Thread, error: unknown): void {
    const at = this.#threads.indexOf(thread);
    if (at === -1) return;
    this.#threads.splice(at, 1);
    this.#options.logger.error({ error: String(error) }, 'a table worker died');
    thread.busy?.resolve(failure('unavailable', `a table worker died: ${String(error)}`));
    this.#dispatch();
  }
}

function failure(code: 'cancelled' | 'unavailable', message: string): JobResult {
  return { kind: 'failed', error: errorToShape(new FloeError(code, message)) };
}

/** Bytes that aren't in shared memory are copied into it: a clone would copy their whole backing buffer. */
function shared(slice: JobSlice): JobSlice {
  if (slice.runs.every((run) => run.bytes.buffer instanceof SharedArrayBuffer)) return slice;
  return {
    ...slice,
    runs: slice.runs.map((run) => {
      if (run.bytes.buffer instanceof SharedArrayBuffer) return run;
      const bytes = new Uint8Array(new SharedArrayBuffer(run.bytes.length));
      bytes.set(run.bytes);
      return { ...run, bytes };
    }),
  };
}
