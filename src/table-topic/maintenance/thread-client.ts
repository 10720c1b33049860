// The maintenance worker in a thread, as its callers see it. Started with the first call; one that dies fails what was
// under way with `unavailable` and is started anew: its rewrites are lost, their files are swept.
import { Worker } from 'node:worker_threads';
import { type ErrorShape, errorFromShape, FloeError } from '../../base/error.ts';
import type { Component } from '../../base/lifecycle.ts';
import type { Logger } from '../../base/log.ts';
import type { WorkerData } from '../pool.ts';
import type { MaintenanceTasks } from './task.ts';

const SCRIPT = new URL('./thread.ts', import.meta.url);

/** Columns, files and dictionaries are outside the heap that V8 counts; this bounds what is in it. */
const HEAP_MEGABYTES = 1_024;

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: FloeError) => void;
}

type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: ErrorShape };

export class MaintenanceThread implements MaintenanceTasks, Component {
  readonly #data: WorkerData;
  readonly #logger: Logger;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #calls = 0;
  #stopped = false;

  constructor(data: WorkerData, logger: Logger) {
    this.#data = data;
    this.#logger = logger;
  }

  plan = this.#method('plan');
  rewrite = this.#method('rewrite');
  derive = this.#method('derive');
  forget = this.#method('forget');
  merge = this.#method('merge');
  unreachable = this.#method('unreachable');
  expired = this.#method('expired');
  orphans = this.#method('orphans');

  async stop(): Promise<void> {
    this.#stopped = true;
    const worker = this.#worker;
    this.#worker = undefined;
    this.#fail(new FloeError('cancelled', 'table maintenance stops'));
    await worker?.terminate();
  }

  #method<K extends keyof MaintenanceTasks>(method: K): MaintenanceTasks[K] {
    const call = (argument: unknown) =>
      new Promise<never>((resolve, reject) => {
        if (this.#stopped) {
          reject(new FloeError('cancelled', 'table maintenance stops'));
          return;
        }
        const id = ++this.#calls;
        this.#waiting.set(id, { resolve, reject });
        this.#worker ??= this.#start();
        this.#worker.postMessage({ id, method, argument });
      });
    return call as unknown as MaintenanceTasks[K];
  }

  #start(): Worker {
    const worker = new Worker(SCRIPT, {
      workerData: this.#data,
      name: 'floe-upkeep',
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MEGABYTES },
    });
    worker.unref();
    worker.on('message', (answer: Answer) => {
      const waiting = this.#waiting.get(answer.id);
      this.#waiting.delete(answer.id);
      if ('error' in answer) waiting?.reject(errorFromShape(answer.error));
      else waiting?.resolve(answer.value as never);
    });
    worker.on('error', (error) => this.#died(worker, String(error)));
    worker.on('exit', (code) => this.#died(worker, `exit code ${code}`));
    return worker;
  }

  #died(worker: Worker, why: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#logger.error({ error: why }, 'the table maintenance thread died');
    this.#fail(new FloeError('unavailable', `the table maintenance thread died: ${why}`));
  }

  #fail(error: FloeError): void {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(error);
  }
}
