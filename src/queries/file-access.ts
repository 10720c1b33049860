// Where DuckDB finds the files of a plan: a local warehouse's own files, or copies of remote ones in a bounded folder.
// DuckDB's httpfs is an extension that would have to be downloaded at run time; data files never change, so whole
// copies are safe, and the second query over them is local.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs/promises';
import { join } from 'node:path';
import { FloeError } from '../base/error.ts';
import { Semaphore, SingleFlight } from '../base/queue.ts';
import type { FileReader } from '../formats/iceberg/index.ts';

export interface NeededFile {
  readonly uri: string;
  readonly bytes: number;
}

/** Makes files readable by path for as long as a query runs. */
export interface FileAccess {
  /** Folders that DuckDB may read. */
  readonly folders: readonly string[];
  /** @throws FloeError `exhausted` when they don't fit, or the store's errors. */
  open(files: readonly NeededFile[]): Promise<OpenFiles>;
}

export interface OpenFiles {
  pathOf(uri: string): string;
  close(): void;
}

/** Files of a warehouse that is a local folder, where they are. */
export class LocalFiles implements FileAccess {
  readonly folders: readonly string[];
  readonly #root: string;

  /** `root`: the warehouse's URI, `file:///…`, with its path as it is. */
  constructor(root: string) {
    this.#root = root;
    this.folders = [root.slice('file://'.length)];
  }

  async open(files: readonly NeededFile[]): Promise<OpenFiles> {
    for (const { uri } of files) this.#path(uri);
    return { pathOf: (uri) => this.#path(uri), close() {} };
  }

  #path(uri: string): string {
    const plain = uri.replace(/^file:\/(?!\/)/, 'file:///');
    if (!plain.startsWith(`${this.#root}/`) || plain.split('/').includes('..'))
      throw new FloeError('invalid', `${uri} lies outside the warehouse ${this.#root}`);
    return plain.slice('file://'.length);
  }
}

/** Downloads at once: enough to fill a link, few enough to bound memory. */
const CONCURRENT_DOWNLOADS = 4;

interface Copy {
  readonly path: string;
  readonly bytes: number;
  users: number;
}

/** Copies of remote files in a folder of our own; those not used longest go first. */
export class CopiedFiles implements FileAccess {
  readonly folders: readonly string[];
  readonly #folder: string;
  readonly #io: FileReader;
  readonly #limit: number;
  readonly #copies = new Map<string, Copy>();
  readonly #downloads = new SingleFlight<string, Copy>();
  readonly #slots = new Semaphore(CONCURRENT_DOWNLOADS);
  #bytes = 0;

  private constructor(folder: string, io: FileReader, maxBytes: number) {
    this.#folder = folder;
    this.folders = [folder];
    this.#io = io;
    this.#limit = maxBytes;
  }

  /** Empties the folder: what an earlier process left is not known to be whole. */
  static async create(folder: string, io: FileReader, maxBytes: number): Promise<CopiedFiles> {
    await fs.rm(folder, { recursive: true, force: true });
    await fs.mkdir(folder, { recursive: true });
    return new CopiedFiles(folder, io, maxBytes);
  }

  async open(files: readonly NeededFile[]): Promise<OpenFiles> {
    const needed = files.reduce((sum, file) => sum + file.bytes, 0);
    if (needed > this.#limit) {
      throw new FloeError(
        'exhausted',
        `the query needs ${needed} bytes of data files, sql.cache.bytes allows ${this.#limit}: add conditions on partition columns, or raise it`,
      );
    }
    const held: Copy[] = [];
    const close = () => {
      for (const copy of held.splice(0)) copy.users -= 1;
    };
    try {
      await Promise.all(
        files.map(async ({ uri }) => {
          let copy = await this.#copy(uri);
          // Another query's eviction may have come in between: only what is still kept can be held.
          while (this.#copies.get(uri) !== copy) copy = await this.#copy(uri);
          copy.users += 1;
          held.push(copy);
        }),
      );
    } catch (caught) {
      close();
      throw caught;
    }
    await this.#evict();
    return { pathOf: (uri) => this.#pathOf(uri), close };
  }

  #pathOf(uri: string): string {
    const name = createHash('sha256').update(uri).digest('hex').slice(0, 40);
    return join(this.#folder, name);
  }

  async #copy(uri: string): Promise<Copy> {
    const present = this.#copies.get(uri);
    if (present !== undefined) {
      this.#copies.delete(uri);
      this.#copies.set(uri, present);
      return present;
    }
    return this.#downloads.run(uri, () => this.#slots.run(() => this.#download(uri)));
  }

  async #download(uri: string): Promise<Copy> {
    const bytes = await this.#io.read(uri);
    const path = this.#pathOf(uri);
    await fs.writeFile(path, bytes);
    const copy = { path, bytes: bytes.length, users: 0 };
    this.#copies.set(uri, copy);
    this.#bytes += bytes.length;
    return copy;
  }

  async #evict(): Promise<void> {
    for (const [uri, copy] of this.#copies) {
      if (this.#bytes <= this.#limit) return;
      if (copy.users > 0) continue;
      this.#copies.delete(uri);
      this.#bytes -= copy.bytes;
      await fs.rm(copy.path, { force: true });
    }
  }
}
