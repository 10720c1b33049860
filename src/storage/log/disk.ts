// The file system as the write-ahead log sees it: few calls, all synchronous, so that a simulated disk can stand in
// and lose, reorder or tear whatever was not synced. Names are relative to the data directory, with `/`.
// Not for: objects of a store (storage/objects) and SQLite's own files.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import { assert } from '../../base/assert.ts';
import { asBuffer } from '../../protocol/bytes.ts';

export interface DiskFile {
  /** Writes all parts end to end at `position`. @throws the system's error; some bytes may have been written. */
  pwritev(parts: readonly Uint8Array[], position: number): void;
  /** Bytes read; fewer than asked at the file's end. */
  pread(into: Uint8Array, position: number): number;
  /** The same without holding up the thread; undefined when this read can't be done so: then `pread` does it. */
  preadLater?(into: Uint8Array, position: number): Promise<number> | undefined;
  /** Makes contents and size durable. After a failure nothing about unsynced bytes is known. */
  fdatasync(): void;
  size(): number;
  truncate(bytes: number): void;
  close(): void;
}

export interface Disk {
  /**
   * Opens for reading and writing; `create` fails when the file exists. `direct` asks for I/O past the page cache,
   * where the file system has it: writes then begin at multiples of {@link PAGE_BYTES} and are filled up with zeros.
   */
  open(name: string, mode: 'existing' | 'create', direct?: boolean): DiskFile;
  rename(from: string, to: string): void;
  unlink(name: string): void;
  /** Makes the directory's entries durable: creations, renames, removals. */
  syncDirectory(name: string): void;
  makeDirectory(name: string): void;
  /** Names within the directory, in byte order; empty when it doesn't exist. */
  list(directory: string): readonly string[];
  /** Bytes that an unprivileged process may still write. */
  freeBytes(): number;
}

/** Alignment of direct I/O: no block device in use has larger blocks. */
export const PAGE_BYTES = 4096;

/** The kernel's limit of parts per call. */
const MAX_PARTS = 1024;

class NodeDiskFile implements DiskFile {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  get fd(): number {
    return this.#fd;
  }

  pwritev(parts: readonly Uint8Array[], position: number): void {
    let queue = parts;
    while (queue.length > 0) {
      const now = queue.length <= MAX_PARTS ? queue : queue.slice(0, MAX_PARTS);
      const written = fs.writevSync(this.#fd, now as Uint8Array[], position);
      position += written;
      queue = after(queue, written);
    }
  }

  pread(into: Uint8Array, position: number): number {
    return fs.readSync(this.#fd, into, 0, into.length, position);
  }

  preadLater(into: Uint8Array, position: number): Promise<number> | undefined {
    return new Promise((resolve, reject) => {
      fs.read(this.#fd, into, 0, into.length, position, (error, read) => {
        if (error === null) resolve(read);
        else reject(error);
      });
    });
  }

  fdatasync(): void {
    fs.fdatasyncSync(this.#fd);
  }

  size(): number {
    return fs.fstatSync(this.#fd).size;
  }

  truncate(bytes: number): void {
    fs.ftruncateSync(this.#fd, bytes);
  }

  close(): void {
    fs.closeSync(this.#fd);
  }
}

/** Bytes that go through the staging memory at a time: few calls, and still at home in a processor's cache. */
const STAGING_BYTES = 2 * 1024 * 1024;
const WASM_PAGE_BYTES = 64 * 1024;

/** As much of WebAssembly's interface as we use; Node's types leave it to the browser's. */
declare const WebAssembly: {
  readonly Memory: new (size: { initial: number }) => { readonly buffer: ArrayBuffer };
};

let stagingMemory: Buffer | undefined;

/** Page-aligned memory of this thread. Buffers and typed arrays promise no alignment; WebAssembly memory has it. */
function staging(): Buffer {
  stagingMemory ??= Buffer.from(
    new WebAssembly.Memory({ initial: STAGING_BYTES / WASM_PAGE_BYTES }).buffer,
  );
  return stagingMemory;
}

/**
 * A file past the page cache (O_DIRECT). Writing fresh pages through the cache costs ten times the processor time of
 * this and a quarter of its speed where a hypervisor has to find memory for each page (docs/decisions/0013).
 */
class DirectDiskFile extends NodeDiskFile {
  /** Whether the device still takes aligned reads without the staging memory. */
  #straight = true;

  override pwritev(parts: readonly Uint8Array[], position: number): void {
    assert(position % PAGE_BYTES === 0, 'direct writes begin at a page');
    const into = staging();
    let filled = 0;
    for (const part of parts) {
      for (let at = 0; at < part.length; ) {
        const length = Math.min(part.length - at, into.length - filled);
        // Buffer.copy is memmove; Uint8Array.set takes ten times as long for shared memory that isn't aligned.
        asBuffer(part).copy(into, filled, at, at + length);
        at += length;
        filled += length;
        if (filled < into.length) continue;
        this.#writeStaged(filled, position);
        position += filled;
        filled = 0;
      }
    }
    const whole = Math.ceil(filled / PAGE_BYTES) * PAGE_BYTES;
    into.fill(0, filled, whole);
    this.#writeStaged(whole, position);
  }

  #writeStaged(length: number, position: number): void {
    for (let done = 0; done < length; )
      done += fs.writeSync(this.fd, staging(), done, length - done, position + done);
  }

  override pread(into: Uint8Array, position: number): number {
    if (this.#straight && aligned(into, position)) {
      try {
        return super.pread(into, position);
      } catch (caught) {
        // The memory wasn't aligned after all, or the device wants larger blocks.
        if ((caught as NodeJS.ErrnoException).code !== 'EINVAL') throw caught;
        this.#straight = false;
      }
    }
    return this.#preadStaged(into, position);
  }

  override preadLater(into: Uint8Array, position: number): Promise<number> | undefined {
    if (!this.#straight || !aligned(into, position)) return undefined;
    return super.preadLater(into, position)?.catch((caught: NodeJS.ErrnoException) => {
      if (caught.code !== 'EINVAL') throw caught;
      return this.pread(into, position);
    });
  }

  #preadStaged(into: Uint8Array, position: number): number {
    const stage = staging();
    let read = 0;
    while (read < into.length) {
      const skip = (position + read) % PAGE_BYTES;
      const wanted = Math.ceil((skip + into.length - read) / PAGE_BYTES) * PAGE_BYTES;
      const length = Math.min(wanted, stage.length);
      const got = fs.readSync(this.fd, stage, 0, length, position + read - skip) - skip;
      if (got <= 0) break;
      const useful = Math.min(got, into.length - read);
      stage.copy(into, read, skip, skip + useful);
      read += useful;
      if (got < length - skip) break;
    }
    return read;
  }
}

/** Whether a read may go straight into `into`; that its memory as a whole begins at a page is for the device to say. */
function aligned(into: Uint8Array, position: number): boolean {
  return (
    position % PAGE_BYTES === 0 &&
    into.byteOffset % PAGE_BYTES === 0 &&
    into.length % PAGE_BYTES === 0
  );
}

/** What is left of `parts` after `written` bytes of them. */
function after(parts: readonly Uint8Array[], written: number): readonly Uint8Array[] {
  let n = 0;
  while (n < parts.length && written >= parts[n]!.length) {
    written -= parts[n]!.length;
    n += 1;
  }
  const rest = parts.slice(n);
  if (written > 0) rest[0] = rest[0]!.subarray(written);
  return rest;
}

function openFile(path: string, mode: 'existing' | 'create', direct: boolean): DiskFile {
  if (direct && fs.constants.O_DIRECT !== undefined) {
    const create = mode === 'create' ? fs.constants.O_CREAT | fs.constants.O_EXCL : 0;
    try {
      return new DirectDiskFile(
        fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_DIRECT | create, 0o644),
      );
    } catch (caught) {
      // A file system without direct I/O says so at open; it may have created the file by then.
      if ((caught as NodeJS.ErrnoException).code !== 'EINVAL') throw caught;
      if (mode === 'create') fs.rmSync(path, { force: true });
    }
  }
  return new NodeDiskFile(fs.openSync(path, mode === 'create' ? 'wx+' : 'r+'));
}

/** The machine's file system below `root`. */
export function nodeDisk(root: string): Disk {
  const path = (name: string) => join(root, name);
  return {
    open: (name, mode, direct = false) => openFile(path(name), mode, direct),
    rename: (from, to) => fs.renameSync(path(from), path(to)),
    unlink: (name) => fs.rmSync(path(name), { force: true }),
    syncDirectory(name) {
      const fd = fs.openSync(path(name), 'r');
      try {
        fs.fsyncSync(fd);
      } finally {
        fs.closeSync(fd);
      }
    },
    makeDirectory(name) {
      fs.mkdirSync(path(name), { recursive: true });
      // The new entry lies in the parent: sync it, or a crash may forget the whole directory.
      for (let up = path(name); up.length > root.length; ) {
        up = dirname(up);
        const fd = fs.openSync(up, 'r');
        fs.fsyncSync(fd);
        fs.closeSync(fd);
      }
    },
    list: (directory) =>
      fs.existsSync(path(directory)) ? fs.readdirSync(path(directory)).sort() : [],
    freeBytes() {
      const stat = fs.statfsSync(root);
      return stat.bavail * stat.bsize;
    },
  };
}
