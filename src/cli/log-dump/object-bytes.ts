// The bytes of one object of the log, from a local file or a store, read front to back through one window, so that looking
// at header after header is no request each. Not for: what the bytes mean (walk.ts).
import { open, stat } from 'node:fs/promises';
import { FloeError } from '../../base/error.ts';
import type { ObjectStore } from '../../storage/objects/index.ts';

export interface ObjectBytes {
  /** Path or key, for people. */
  readonly name: string;
  readonly size: number;
  /** Bytes `[position, position + length)`, as far as the object goes. */
  read(position: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** @throws FloeError the system's, naming the file; `invalid` for what is no plain file. */
export async function openFile(path: string): Promise<ObjectBytes> {
  try {
    // Before it is opened: of a pipe that would wait for a writer.
    const stats = await stat(path);
    if (!stats.isFile())
      throw new FloeError('invalid', `${path} is no file: name an object of the log`);
    const file = await open(path, 'r');
    return {
      name: path,
      size: stats.size,
      async read(position, length) {
        const into = new Uint8Array(Math.max(0, Math.min(length, stats.size - position)));
        const { bytesRead } = await file.read(into, 0, into.length, position);
        return into.subarray(0, bytesRead);
      },
      close: () => file.close(),
    };
  } catch (caught) {
    throw FloeError.from(caught, path);
  }
}

/** @throws FloeError `not-found`. */
export async function openObject(store: ObjectStore, key: string): Promise<ObjectBytes> {
  const head = await store.head(key);
  if (head === undefined)
    throw new FloeError(
      'not-found',
      `there is neither a file ${key} here nor an object of that key in ${store.uri}: name one of them (--storage, --data-dir)`,
    );
  return {
    name: key,
    size: head.size,
    read: (start, length) =>
      start >= head.size ? Promise.resolve(new Uint8Array(0)) : store.get(key, { start, length }),
    close: async () => {},
  };
}

const WINDOW_BYTES = 1024 * 1024;

/** Reads that mostly go forward, each served from what was read last where it can be. */
export class Window {
  readonly size: number;
  readonly #bytes: ObjectBytes;
  #start = 0;
  #window: Uint8Array = new Uint8Array(0);

  constructor(bytes: ObjectBytes) {
    this.#bytes = bytes;
    this.size = bytes.size;
  }

  /** As {@link ObjectBytes.read}; a view that stays as it is. */
  async at(position: number, length: number): Promise<Uint8Array> {
    const end = Math.min(position + length, this.size);
    if (position < this.#start || end > this.#start + this.#window.length) {
      this.#window = await this.#bytes.read(position, Math.max(length, WINDOW_BYTES));
      this.#start = position;
    }
    const from = position - this.#start;
    return this.#window.subarray(from, Math.max(from, from + Math.min(length, end - position)));
  }
}
