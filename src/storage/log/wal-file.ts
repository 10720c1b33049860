// The local write-ahead log: one file at a time, filled by flushes, sealed with a footer, named by a number that is
// its generation and never used again. Deleted files are kept for new use: overwriting beats allocating.
// A file whose write or sync failed is never written again: what the kernel dropped can't be known (fsyncgate).
// Not for: which flushes count (the metadata store decides; bytes after the last committed flush are ignored).
import { assert } from '../../base/assert.ts';
import type { Logger } from '../../base/log.ts';
import { clusterPrefix, fileKey, filePrefix, parseKey } from '../paths.ts';
import { type Disk, type DiskFile, PAGE_BYTES } from './disk.ts';
import type { FlushLayout } from './layout.ts';

export interface WalOptions {
  readonly disk: Disk;
  readonly clusterId: string;
  readonly fileBytes: number;
  readonly extendBytes: number;
  readonly recycleFiles: number;
  /** Past the page cache. */
  readonly direct: boolean;
  /** Numbers below this have been used. */
  readonly firstNumber: number;
  readonly logger: Logger;
}

/** The file that flushes are written to now. */
interface CurrentFile {
  readonly key: string;
  readonly number: number;
  readonly file: DiskFile;
  /** Where the next flush begins. */
  position: number;
  /** The file's size, as far as we extended it or found it. */
  size: number;
}

const ZEROS = new Uint8Array(1024 * 1024);

export class WalFiles {
  readonly #options: WalOptions;
  readonly #disk: Disk;
  readonly #free: string[] = [];
  #next: number;
  #current: CurrentFile | undefined;
  #syncs = 0;

  constructor(options: WalOptions) {
    this.#options = options;
    this.#disk = options.disk;
    this.#next = options.firstNumber;
    this.#disk.makeDirectory(this.#directory);
    this.#disk.makeDirectory(this.#freeDirectory);
    for (const name of this.#disk.list(this.#freeDirectory)) {
      this.#next = Math.max(this.#next, Number.parseInt(name, 10) + 1);
      this.#free.push(`${this.#freeDirectory}/${name}`);
    }
    for (const name of this.names()) this.#next = Math.max(this.#next, numberOf(name) + 1);
    this.#trimFree();
  }

  get #directory(): string {
    return filePrefix(this.#options.clusterId).slice(0, -1);
  }

  get #freeDirectory(): string {
    return `${clusterPrefix(this.#options.clusterId)}free`;
  }

  /** Keys of the files in the directory. */
  names(): string[] {
    const prefix = filePrefix(this.#options.clusterId);
    return this.#disk
      .list(this.#directory)
      .map((name) => prefix + name)
      .filter((key) => parseKey(this.#options.clusterId, key)?.kind === 'file');
  }

  /** Successful syncs so far: acks must never outrun them (L11). */
  get syncs(): number {
    return this.#syncs;
  }

  /** The file for the next flush, opened if need be. @throws the system's error. */
  current(): { readonly key: string; readonly number: number; readonly position: number } {
    this.#current ??= this.#open();
    return this.#current;
  }

  /** True when the current file has reached its size. */
  get full(): boolean {
    return this.#current !== undefined && this.#current.position >= this.#options.fileBytes;
  }

  /** Writes blocks at the current position, not yet durable. @throws the system's error: then abandon the file. */
  write({ parts, bytes }: FlushLayout): void {
    const current = this.#current;
    assert(current !== undefined, 'a file is open when a flush is written');
    const end = current.position + bytes;
    this.#extend(current, end, bytes);
    // Flushes begin at pages, as direct I/O asks; a page is never written again once it was acknowledged.
    const padding = (PAGE_BYTES - (end % PAGE_BYTES)) % PAGE_BYTES;
    const padded = padding === 0 ? parts : [...parts, ZEROS.subarray(0, padding)];
    current.file.pwritev(padded, current.position);
    current.position = end + padding;
    current.size = Math.max(current.size, current.position);
  }

  /** Makes all written flushes durable. @throws the system's error: then abandon the file. */
  sync(): void {
    assert(this.#current !== undefined, 'a file is open when it is synced');
    this.#current.file.fdatasync();
    this.#syncs += 1;
  }

  /**
   * Gives the current file up after a failed write, sync or commit; what was committed in it stays.
   * @returns its key, if there was one.
   */
  abandon(reason: unknown): string | undefined {
    const current = this.#current;
    if (current === undefined) return undefined;
    this.#current = undefined;
    const error = reason instanceof Error ? reason.message : String(reason);
    this.#options.logger.warn({ file: current.key, error }, 'write-ahead file abandoned');
    quietly(() => current.file.close());
    return current.key;
  }

  /** Removes an abandoned file in which nothing was committed. It isn't used anew: its disk may be at fault. */
  remove(key: string): void {
    quietly(() => this.#disk.unlink(key));
  }

  /** Takes no more flushes into the current file; the next one opens another. */
  finish(): void {
    this.#current?.file.close();
    this.#current = undefined;
  }

  /**
   * Ends a finished or abandoned file durably with `footer` at `position`; whatever lay there vanishes.
   * A file that is missing is made anew, so that its index exists where its bytes are lost.
   * @returns its size. @throws the system's error.
   */
  seal(key: string, position: number, footer: Uint8Array): number {
    const exists = this.names().includes(key);
    const file = this.#disk.open(key, exists ? 'existing' : 'create');
    try {
      file.pwritev([footer], position);
      const bytes = position + footer.length;
      file.truncate(bytes);
      file.fdatasync();
      this.#syncs += 1;
      if (!exists) this.#disk.syncDirectory(this.#directory);
      return bytes;
    } finally {
      file.close();
    }
  }

  /** The bytes of a file from `position`, for recovery. @throws the system's error. */
  read(key: string, position: number, length: number): Uint8Array {
    const file = this.#disk.open(key, 'existing');
    try {
      const into = new Uint8Array(length);
      return into.subarray(0, file.pread(into, position));
    } finally {
      file.close();
    }
  }

  /** Takes a file that nothing refers to: kept for new use, or removed. One that is gone already is fine. */
  retire(key: string): void {
    if (key === this.#current?.key || !this.names().includes(key)) return;
    const to = `${this.#freeDirectory}/${key.slice(key.lastIndexOf('/') + 1)}`;
    if (this.#free.length >= this.#options.recycleFiles) {
      this.#disk.unlink(key);
      return;
    }
    this.#disk.rename(key, to);
    this.#free.push(to);
  }

  /** Gives the space of kept files back. */
  dropFree(): void {
    for (const name of this.#free.splice(0)) this.#disk.unlink(name);
  }

  #trimFree(): void {
    for (const name of this.#free.splice(this.#options.recycleFiles)) this.#disk.unlink(name);
  }

  #open(): CurrentFile {
    const number = this.#next;
    this.#next += 1;
    const key = fileKey(this.#options.clusterId, number);
    const recycled = this.#free.pop();
    if (recycled !== undefined) this.#disk.rename(recycled, key);
    const mode = recycled === undefined ? 'create' : 'existing';
    const file = this.#disk.open(key, mode, this.#options.direct);
    this.#disk.syncDirectory(this.#directory);
    // Both ends of a rename: under its old name, too, the file would be taken for new use while it holds records.
    if (recycled !== undefined) this.#disk.syncDirectory(this.#freeDirectory);
    return { key, number, file, position: 0, size: file.size() };
  }

  /** Small flushes find zeros ahead of them, so that their sync needn't change the file's size. */
  #extend(current: CurrentFile, end: number, bytes: number): void {
    const { extendBytes } = this.#options;
    if (end <= current.size || bytes >= extendBytes / 4) return;
    const from = Math.ceil(end / PAGE_BYTES) * PAGE_BYTES;
    const zeros: Uint8Array[] = [];
    for (let left = extendBytes; left > 0; left -= ZEROS.length)
      zeros.push(ZEROS.subarray(0, Math.min(left, ZEROS.length)));
    current.file.pwritev(zeros, from);
    current.size = from + extendBytes;
  }
}

function numberOf(key: string): number {
  return Number.parseInt(key.slice(key.lastIndexOf('/') + 1), 10);
}

function quietly(action: () => void): void {
  try {
    action();
  } catch {
    // Closing or removing a broken file may fail too; it is given up either way, and a start takes it back.
  }
}
