// The front's end of the sequencer's thread: the same port as the plain object, by messages.
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import { errorFromShape, FloeError } from '../../base/error.ts';
import { THREAD_LIMITS } from '../../base/thread-memory.ts';
import type { FlushRow } from '../../metadata/log.ts';
import type { FlushReply, FlushRequest, SequencerPort } from './sequencer-port.ts';
import type { FromSequencer, SequencerThreadData, ToSequencer } from './sequencer-thread.ts';

interface Waiter {
  readonly resolve: (reply: FlushReply | undefined) => void;
  readonly reject: (error: FloeError) => void;
}

export interface SequencerClientOptions {
  readonly data: SequencerThreadData;
  /** The thread died of a bug: nothing can be promised any more. */
  readonly onFatal: (error: Error) => void;
}

export class SequencerClient implements SequencerPort {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiter>();
  #nextId = 0;
  #stopped = false;
  /** Told of sealed objects. */
  onSealed: (objectId: number) => void = () => {};
  /** Told of the ends of transactions, in commit order. */
  onMarkers: (commit: FlushRow) => void = () => {};
  #phase: { resolve: () => void; reject: (error: Error) => void } | undefined;

  private constructor(options: SequencerClientOptions) {
    this.#worker = new Worker(new URL('./sequencer-thread.ts', import.meta.url), {
      resourceLimits: THREAD_LIMITS,
      workerData: options.data,
      name: 'sequencer',
    });
    this.#worker.on('message', (message: FromSequencer) => this.#receive(message));
    this.#worker.on('error', (error: Error) => this.#died(error, options.onFatal));
    this.#worker.on('exit', (code) => {
      if (!this.#stopped)
        this.#died(new Error(`sequencer thread ended (${code})`), options.onFatal);
    });
  }

  /** Starts the thread, which takes the lock and opens the metadata. @throws FloeError `conflict` when in use. */
  static async open(options: SequencerClientOptions): Promise<SequencerClient> {
    const client = new SequencerClient(options);
    await client.#await();
    return client;
  }

  /** A port for `connectMetadata`, to be used here or handed to another thread. */
  connect(): MessagePort {
    const { port1, port2 } = new MessageChannel();
    this.#worker.postMessage({ kind: 'metadata', port: port1 } satisfies ToSequencer, [port1]);
    return port2;
  }

  /** Recovers the WAL and lets flushes in. */
  start(message: Omit<Extract<ToSequencer, { kind: 'start' }>, 'kind'>): Promise<void> {
    this.#worker.postMessage({ kind: 'start', ...message } satisfies ToSequencer);
    return this.#await();
  }

  submit(request: FlushRequest): Promise<FlushReply> {
    return this.#ask(
      (id) => ({ kind: 'flush', id, request }),
      [request.columns.buffer],
    ) as Promise<FlushReply>;
  }

  async retireFiles(keys: readonly string[]): Promise<void> {
    await this.#ask((id) => ({ kind: 'retire', id, keys }));
  }

  async roll(): Promise<void> {
    await this.#ask((id) => ({ kind: 'roll', id }));
  }

  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#worker.postMessage({ kind: 'stop' } satisfies ToSequencer);
    await this.#await();
    await this.#worker.terminate();
    this.#failAll(new FloeError('cancelled', 'the sequencer has stopped'));
  }

  #ask(message: (id: number) => ToSequencer, transfer: ArrayBuffer[] = []) {
    return new Promise<FlushReply | undefined>((resolve, reject) => {
      if (this.#stopped) {
        reject(new FloeError('cancelled', 'the sequencer has stopped'));
        return;
      }
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage(message(id), transfer);
    });
  }

  /** The next step of the thread's life: opened, started, stopped. */
  #await(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#phase = { resolve, reject };
    });
  }

  #receive(message: FromSequencer): void {
    switch (message.kind) {
      case 'opened':
      case 'started':
      case 'stopped':
        this.#phase?.resolve();
        return;
      case 'refused':
        this.#stopped = true;
        void this.#worker.terminate();
        this.#phase?.reject(errorFromShape(message.error));
        return;
      case 'reply':
        this.#take(message.id)?.resolve(message.reply);
        return;
      case 'error':
        this.#take(message.id)?.reject(errorFromShape(message.error));
        return;
      case 'sealed':
        this.onSealed(message.objectId);
        return;
      case 'markers':
        this.onMarkers(message.commit);
        return;
    }
  }

  #take(id: number): Waiter | undefined {
    const waiter = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiter;
  }

  #died(error: Error, onFatal: (error: Error) => void): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#phase?.reject(error);
    this.#failAll(new FloeError('unavailable', 'the sequencer thread has died', { cause: error }));
    onFatal(error);
  }

  #failAll(error: FloeError): void {
    for (const waiter of this.#waiting.values()) waiter.reject(error);
    this.#waiting.clear();
  }
}
