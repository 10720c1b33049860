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
import { THREAD_LIMITS } from '../../base/thread-memory.ts';
import { isFileKey } from '../paths.ts';
import { type ByteRead, type ByteSource, type ReadPurpose, tooShort } from './byte-source.ts';
import { type Disk, type DiskFile, nodeDisk, PAGE_BYTES } from './disk.ts';

/** Files kept open. */
const MAX_OPEN_FILES = 64;
/** Threads of libuv's pool, which the reads run in and others need as well: eight as `npm start` has it, four by default. */
const POOL_THREADS = Number(process.env['UV_THREADPOOL_SIZE']) || 4;
/** Reads under way at once: a disk wants several, above all where the processors are busy and each waits to be noticed. */
const MAX_READS = POOL_THREADS >= 8 ? 6 : 3;

interface OpenFile {
  readonly file: DiskFile;
  /** Calls under way. */
  users: number;
  /** No further call gets it; closed when unused. */
  gone: boolean;
}

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
  readonly #open = new Map<string, OpenFile>();
  readonly #queues: Record<ReadPurpose, ReadCall[]> = { consumer: [], table: [], maintenance: [] };
  #underWay = 0;
  readonly #replies: ReadReply[] = [];

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
    this.#start();
  }

  /** Starts what may be under way at once, consumers' first. */
  #start(): void {
    for (const purpose of PURPOSES) {
      // A read of tables or maintenance leaves room for a consumer's that may come.
      const limit = purpose === 'consumer' ? MAX_READS : MAX_READS - 1;
      const queue = this.#queues[purpose];
      while (queue.length > 0 && this.#underWay < limit) {
        const call = queue.shift()!;
        this.#underWay += 1;
        this.#answer(call).then((reply) => {
          this.#underWay -= 1;
          this.#reply(reply);
          this.#start();
        });
      }
    }
  }

  /** Answers of one turn cross together: waking the other thread costs more than a small read. */
  #reply(reply: ReadReply): void {
    if (this.#replies.length === 0)
      setImmediate(() => this.#port.postMessage(this.#replies.splice(0)));
    this.#replies.push(reply);
  }

  async #answer({ id, key, reads }: ReadCall): Promise<ReadReply> {
    let open: OpenFile | undefined;
    try {
      open = this.#file(key);
      open.users += 1;
      for (const read of reads) await readWhole(open.file, key, read);
      return { id };
    } catch (caught) {
      this.#close(key);
      return { id, error: errorToShape(caught) };
    } finally {
      if (open !== undefined) {
        open.users -= 1;
        closeUnused(open);
      }
    }
  }

  #file(key: string): OpenFile {
    let open = this.#open.get(key);
    if (open === undefined) {
      const disk = isFileKey(key) ? this.#files : this.#objects;
      open = { file: disk.open(key, 'existing', this.#direct), users: 0, gone: false };
      if (this.#open.size >= MAX_OPEN_FILES) this.#close(this.#open.keys().next().value!);
    }
    // Set again: insertion order is order of use.
    this.#open.delete(key);
    this.#open.set(key, open);
    return open;
  }

  #close(key: string): void {
    const open = this.#open.get(key);
    if (open === undefined) return;
    this.#open.delete(key);
    open.gone = true;
    closeUnused(open);
  }

  #closeAll(): void {
    for (const key of [...this.#open.keys()]) this.#close(key);
  }
}

/** A closed descriptor's number may be another file's by the time that a read under way gets to it. */
function closeUnused({ file, users, gone }: OpenFile): void {
  if (gone && users === 0) file.close();
}

async function readWhole(
  file: DiskFile,
  key: string,
  { position, into, need = into.length }: ByteRead,
): Promise<void> {
  let filled = 0;
  while (filled < need) {
    const rest = filled === 0 ? into : into.subarray(filled);
    const later = file.preadLater?.(rest, position + filled);
    const read = later === undefined ? file.pread(rest, position + filled) : await later;
    if (read === 0) throw tooShort(key, position, need);
    filled += read;
  }
}

/** The caller's side: a source whose reads cross `port`. Closing the port fails what is under way. */
export function threadSource(
  port: Pick<MessagePort, 'on' | 'postMessage'>,
  alignment = 1,
): ByteSource {
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
    alignment,
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
    resourceLimits: THREAD_LIMITS,
    workerData: { floeReaderRoots: roots },
    name: 'reader',
  });
  // A read under way keeps the process alive through its caller; the idle thread does not.
  worker.unref();
  const source = threadSource(asPort(worker), roots.direct ? PAGE_BYTES : 1);
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
