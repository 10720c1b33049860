// A disk that keeps its word and nothing more: what was not synced may be lost, reordered or torn by a crash, sector by
// sector, file entries of directories included; a failed sync drops what it should have written (as Linux does).
// Reads see what was written last until the crash, as a page cache shows it. Seeded.
import type { Prng } from '../../src/base/prng.ts';
import type { Disk, DiskFile } from '../../src/storage/log/disk.ts';

const SECTOR = 512;

interface PendingWrite {
  readonly position: number;
  readonly bytes: Uint8Array;
}

/** A file's content, apart from its names. */
class Inode {
  /** What survives a crash for sure. */
  durable = new Uint8Array(0);
  /** What a read sees now. */
  current = new Uint8Array(0);
  /** Since the last sync, in order. */
  readonly pending: PendingWrite[] = [];

  write(position: number, bytes: Uint8Array): void {
    this.current = extended(this.current, position + bytes.length);
    this.current.set(bytes, position);
    this.pending.push({ position, bytes: bytes.slice() });
  }

  sync(): void {
    this.durable = this.current.slice();
    this.pending.length = 0;
  }

  /** Each sector that was written since the last sync has any of its versions. */
  crash(prng: Prng): void {
    for (const { position, bytes } of this.pending) {
      for (let at = 0; at < bytes.length; ) {
        const length = Math.min(SECTOR - ((position + at) % SECTOR), bytes.length - at);
        if (prng.next() < 0.5) {
          this.durable = extended(this.durable, position + at + length);
          this.durable.set(bytes.subarray(at, at + length), position + at);
        }
        at += length;
      }
    }
    this.pending.length = 0;
    this.current = this.durable.slice();
  }
}

function extended(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  if (bytes.length >= length) return bytes;
  const longer = new Uint8Array(length);
  longer.set(bytes);
  return longer;
}

/** Thrown by every call once the power is out: nothing that follows can matter to the disk. */
export class PowerOut extends Error {
  override readonly name = 'PowerOut';
}

interface EntryChange {
  readonly directory: string;
  readonly apply: (names: Map<string, Inode>) => void;
}

export class SimulatedDisk implements Disk {
  readonly #prng: Prng;
  #durableNames = new Map<string, Inode>();
  #names = new Map<string, Inode>();
  #pendingEntries: EntryChange[] = [];
  #callsUntilCrash = Infinity;
  #dead = false;
  syncs = 0;
  /** Chances per call while faults are on. */
  faults = { sync: 0, write: 0 };
  /** Bytes that may still be written before the disk is full. */
  room = Infinity;

  constructor(prng: Prng) {
    this.#prng = prng;
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** The power goes out before the n-th call from now. */
  crashAfter(calls: number): void {
    this.#callsUntilCrash = calls;
  }

  /** Power goes out now, if it has not yet, and comes back: what was not synced is decided by chance. */
  restart(): void {
    const { next } = this.#prng;
    // A directory's changes reach the disk in order, up to some point; a rename is atomic.
    const kept = Math.floor(next() * (this.#pendingEntries.length + 1));
    for (const change of this.#pendingEntries.slice(0, kept)) change.apply(this.#durableNames);
    this.#pendingEntries = [];
    this.#names = new Map(this.#durableNames);
    for (const inode of new Set(this.#names.values())) inode.crash(this.#prng);
    this.#dead = false;
    this.#callsUntilCrash = Infinity;
  }

  /** Bytes of `name` that a crash could lose now. */
  unsyncedWrites(name: string): number {
    return this.#names.get(name)?.pending.length ?? 0;
  }

  /** True when a crash could lose the file's very name. */
  isNameDurable(name: string): boolean {
    return this.#durableNames.get(name) === this.#names.get(name);
  }

  /** Every call passes here: a moment at which the power may go. */
  step(): void {
    this.#callsUntilCrash -= 1;
    if (this.#callsUntilCrash < 0) this.#dead = true;
    if (this.#dead) throw new PowerOut('the power is out');
  }

  open(name: string, mode: 'existing' | 'create'): DiskFile {
    this.step();
    const found = this.#names.get(name);
    if (mode === 'create') {
      if (found !== undefined) throw systemError('EEXIST', name);
      const inode = new Inode();
      this.#change(directoryOf(name), (names) => names.set(name, inode));
      return this.#file(inode);
    }
    if (found === undefined) throw systemError('ENOENT', name);
    return this.#file(found);
  }

  #change(directory: string, apply: (names: Map<string, Inode>) => void): void {
    apply(this.#names);
    this.#pendingEntries.push({ directory, apply });
  }

  #file(inode: Inode): DiskFile {
    return {
      pwritev: (parts, position) => {
        this.step();
        if (this.#prng.next() < this.faults.write) throw systemError('EIO', 'write');
        for (const part of parts) {
          if (part.length > this.room) throw systemError('ENOSPC', 'write');
          this.room -= part.length;
          inode.write(position, part);
          position += part.length;
        }
      },
      pread: (into, position) => {
        this.step();
        const found = inode.current.subarray(position, position + into.length);
        into.set(found);
        return found.length;
      },
      fdatasync: () => {
        this.step();
        if (this.#prng.next() < this.faults.sync) {
          // The pages count as clean though they never reached the disk: a later sync will not write them.
          inode.pending.length = 0;
          throw systemError('EIO', 'fdatasync');
        }
        inode.sync();
        this.syncs += 1;
        this.step();
      },
      size: () => inode.current.length,
      truncate: (bytes) => {
        this.step();
        inode.current = extended(inode.current.slice(0, bytes), bytes);
      },
      close: () => {},
    };
  }

  rename(from: string, to: string): void {
    this.step();
    const inode = this.#names.get(from);
    if (inode === undefined) throw systemError('ENOENT', from);
    this.#change(directoryOf(to), (names) => {
      names.delete(from);
      names.set(to, inode);
    });
  }

  unlink(name: string): void {
    this.step();
    if (this.#names.has(name)) this.#change(directoryOf(name), (names) => names.delete(name));
  }

  syncDirectory(name: string): void {
    this.step();
    // Journals commit in order: all earlier changes of any directory go along.
    const last = this.#pendingEntries.findLastIndex(({ directory }) => directory === name);
    for (const change of this.#pendingEntries.splice(0, last + 1)) change.apply(this.#durableNames);
  }

  makeDirectory(): void {
    this.step();
  }

  list(directory: string): readonly string[] {
    this.step();
    const prefix = directory === '' ? '' : `${directory}/`;
    return [...this.#names.keys()]
      .filter((name) => name.startsWith(prefix) && !name.slice(prefix.length).includes('/'))
      .map((name) => name.slice(prefix.length))
      .sort();
  }

  freeBytes(): number {
    return this.room;
  }
}

function directoryOf(name: string): string {
  return name.includes('/') ? name.slice(0, name.lastIndexOf('/')) : '';
}

function systemError(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code });
}
