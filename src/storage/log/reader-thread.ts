// Cold reads of local files, in a thread of their own: libuv's shared pool would make them wait for, and delay,
// everything else. The worker reads into shared memory and answers; one read at a time, consumers first.
// In simulation the worker runs in-thread behind the same port. Not for: objects of S3, and writing.
import {
  isMainThread,
  type MessagePort,
  parentPort,
  Worker,
  workerData,
} from 'node:worker_threads';
import { type ErrorShape, errorFromShape, errorToShape, FloeError } from '../../base/error.ts';
import type { Component } from '../../base/lifecycle.ts';
import { isFileKey } from '../paths.ts';
import { type ByteRead, type ByteSource, type ReadPurpose, tooShort } from './byte-source.ts';
import { type Disk, type DiskFile, nodeDisk } from './disk.ts';

/** Files kept open. */
const MAX_OPEN_FILES = 64;
/** Consumers' bytes read before the answers go and new calls are looked at: about a millisecond's worth. */
const BYTES_PER_TURN = 4 * 1024 * 1024;

interface ReadCall {
  readonly id: number;
  readonly key: string;
  readonly purpose: ReadPurpose;
  readonly reads: readonly ByteRead[];
}

/** Files that are gone. */
interface ForgetCall {
  readonly forget: readonly string[];
}

type ReadReply = { readonly id: number; readonly error?: ErrorShape };

/** Where the two kinds of local objects lie; keys are names below these folders. */
export interface ReaderRoots {
  readonly files: string;
  readonly objects: string;
  /** Past the page cache, as the files were written. */
  readonly direct: boolean;
}

const PURPOSES: readonly ReadPurpose[] = ['consumer', 'table', 'maintenance'];

export interface ReaderDisks {
  readonly files: Disk;
  readonly objects: Disk;
  readonly direct?: boolean;
}

/** The worker's side: a plain object behind a port. */
export class ReaderWorker {
  readonly #port: MessagePort;
  readonly #files: Disk;
  readonly #objects: Disk;
  readonly #direct: boolean;
  readonly #open = new Map<string, DiskFile>();
  readonly #queues: Record<ReadPurpose, ReadCall[]> = { consumer: [], table: [], maintenance: [] };
  #scheduled = false;

  constructor(port: MessagePort, disks: ReaderDisks) {
    this.#port = port;
    this.#files = disks.files;
    this.#objects = disks.objects;
    this.#direct = disks.direct ?? false;
    port.on('message', (message: readonly ReadCall[] | ForgetCall) => {
      if ('forget' in message) for (const key of message.forget) this.#close(key);
      else this.#take(message);
    });
    port.on('close', () => this.#closeAll());
  }

  #take(calls: readonly ReadCall[]): void {
    for (const call of calls) this.#queues[call.purpose].push(call);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Between two calls the event loop turns, so that a consumer's call that arrived meanwhile goes first.
    setImmediate(() => this.#work());
  }

  /** Some calls, then their answers in one message: waking the other thread costs more than a small read. */
  #work(): void {
    this.#scheduled = false;
    const replies: ReadReply[] = [];
    for (let bytes = 0; bytes < BYTES_PER_TURN; ) {
      const purpose = PURPOSES.find((candidate) => this.#queues[candidate].length > 0);
      if (purpose === undefined) break;
      const call = this.#queues[purpose].shift()!;
      replies.push(this.#answer(call));
      for (const { into } of call.reads) bytes += into.length;
      // What waits behind a slow read of tables or maintenance may be a consumer's.
      if (purpose !== 'consumer') break;
    }
    if (replies.length === 0) return;
    this.#port.postMessage(replies);
    this.#schedule();
  }

  #answer({ id, key, reads }: ReadCall): ReadReply {
    try {
      const file = this.#file(key);
      for (const { position, into } of reads) readWhole(file, key, { position, into });
      return { id };
    } catch (caught) {
      this.#close(key);
      return { id, error: errorToShape(caught) };
    }
  }

  #file(key: string): DiskFile {
    let file = this.#open.get(key);
    if (file === undefined) {
      file = (isFileKey(key) ? this.#files : this.#objects).open(key, 'existing', this.#direct);
      if (this.#open.size >= MAX_OPEN_FILES) this.#close(this.#open.keys().next().value!);
    }
    // Set again: insertion order is order of use.
    this.#open.delete(key);
    this.#open.set(key, file);
    return file;
  }

  #close(key: string): void {
    this.#open.get(key)?.close();
    this.#open.delete(key);
  }

  #closeAll(): void {
    for (const key of [...this.#open.keys()]) this.#close(key);
  }
}

function readWhole(file: DiskFile, key: string, { position, into }: ByteRead): void {
  let filled = 0;
  while (filled < into.length) {
    const read = file.pread(filled === 0 ? into : into.subarray(filled), position + filled);
    if (read === 0) throw tooShort(key, position, into.length);
    filled += read;
  }
}

/** The caller's side: a source whose reads cross `port`. Closing the port fails what is under way. */
export function threadSource(port: Pick<MessagePort, 'on' | 'postMessage'>): ByteSource {
  const waiting = new Map<number, { resolve(): void; reject(error: FloeError): void }>();
  let nextId = 0;
  let closed = false;
  /** Calls of one turn cross together: a message costs more than a small read. */
  let batch: ReadCall[] = [];
  const send = () => {
    port.postMessage(batch);
    batch = [];
  };
  port.on('message', (replies: readonly ReadReply[]) => {
    for (const { id, error } of replies) {
      const caller = waiting.get(id);
      waiting.delete(id);
      if (error === undefined) caller?.resolve();
      else caller?.reject(errorFromShape(error));
    }
  });
  port.on('close', () => {
    closed = true;
    for (const caller of waiting.values()) caller.reject(gone());
    waiting.clear();
  });
  return {
    read(object, reads, { purpose, signal }) {
      if (closed) return Promise.reject(gone());
      if (signal?.aborted === true) return Promise.reject(FloeError.from(signal.reason));
      const id = nextId++;
      const done = new Promise<void>((resolve, reject) => waiting.set(id, { resolve, reject }));
      if (batch.length === 0) queueMicrotask(send);
      batch.push({ id, key: object.key, purpose, reads });
      return done;
    },
    forget(keys) {
      if (!closed) port.postMessage({ forget: keys } satisfies ForgetCall);
    },
  };
}

const gone = () => new FloeError('unavailable', 'the reader thread has stopped');

/** A reader thread that runs until stopped. */
export interface ReaderThread extends Component {
  readonly source: ByteSource;
}

/** Starts the thread. */
export function startReaderThread(roots: ReaderRoots): ReaderThread {
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { floeReaderRoots: roots },
    name: 'reader',
  });
  // A read under way keeps the process alive through its caller; the idle thread does not.
  worker.unref();
  const source = threadSource(asPort(worker));
  return {
    source,
    async stop() {
      await worker.terminate();
    },
  };
}

/** A worker as the port it is, with `close` for its end. */
function asPort(worker: Worker): Pick<MessagePort, 'on' | 'postMessage'> {
  return {
    postMessage: (message: unknown) => worker.postMessage(message),
    on(event: string, listener: (...args: never[]) => void) {
      worker.on(event === 'close' ? 'exit' : event, listener as (...args: unknown[]) => void);
      return this as never;
    },
  };
}

if (!isMainThread && parentPort !== null) {
  const roots = (workerData as { floeReaderRoots?: ReaderRoots } | null)?.floeReaderRoots;
  if (roots !== undefined) {
    new ReaderWorker(parentPort, {
      files: nodeDisk(roots.files),
      objects: nodeDisk(roots.objects),
      direct: roots.direct,
    });
  }
}
