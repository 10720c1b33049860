// The file system as the write-ahead log sees it: few calls, all synchronous, so that a simulated disk can stand in
// and lose, reorder or tear whatever was not synced. Names are relative to the data directory, with `/`.
// Not for: objects of a store (storage/objects) and SQLite's own files.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';

export interface DiskFile {
  /** Writes all parts end to end at `position`. @throws the system's error; some bytes may have been written. */
  pwritev(parts: readonly Uint8Array[], position: number): void;
  /** Bytes read; fewer than asked at the file's end. */
  pread(into: Uint8Array, position: number): number;
  /** Makes contents and size durable. After a failure nothing about unsynced bytes is known. */
  fdatasync(): void;
  size(): number;
  truncate(bytes: number): void;
  close(): void;
}

export interface Disk {
  /** Opens for reading and writing; `create` fails when the file exists. */
  open(name: string, mode: 'existing' | 'create'): DiskFile;
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

/** The kernel's limit of parts per call. */
const MAX_PARTS = 1024;

class NodeDiskFile implements DiskFile {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
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

/** The machine's file system below `root`. */
export function nodeDisk(root: string): Disk {
  const path = (name: string) => join(root, name);
  return {
    open: (name, mode) =>
      new NodeDiskFile(fs.openSync(path(name), mode === 'create' ? 'wx+' : 'r+')),
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
