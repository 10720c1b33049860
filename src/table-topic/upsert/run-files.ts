// Run files in a local folder, and in memory for tests and simulation.
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { RunFiles } from './run.ts';

export class FolderRunFiles implements RunFiles {
  readonly #folder: string;
  readonly #open = new Map<string, number>();

  constructor(folder: string) {
    fs.mkdirSync(folder, { recursive: true });
    this.#folder = folder;
  }

  write(name: string, parts: readonly Uint8Array[]): void {
    const fd = fs.openSync(join(this.#folder, name), 'w');
    try {
      for (const part of parts) {
        for (let at = 0; at < part.length; ) at += fs.writeSync(fd, part, at);
      }
      fs.fdatasyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  }

  read(name: string, into: Uint8Array, position: number): number {
    const fd = this.#fd(name);
    let at = 0;
    while (at < into.length) {
      const read = fs.readSync(fd, into, at, into.length - at, position + at);
      if (read === 0) break;
      at += read;
    }
    return at;
  }

  #fd(name: string): number {
    let fd = this.#open.get(name);
    if (fd === undefined) {
      fd = fs.openSync(join(this.#folder, name), 'r');
      this.#open.set(name, fd);
    }
    return fd;
  }

  size(name: string): number | undefined {
    return fs.statSync(join(this.#folder, name), { throwIfNoEntry: false })?.size;
  }

  remove(name: string): void {
    const fd = this.#open.get(name);
    if (fd !== undefined) fs.closeSync(fd);
    this.#open.delete(name);
    fs.rmSync(join(this.#folder, name), { force: true });
  }

  names(): readonly string[] {
    return fs.readdirSync(this.#folder).filter((name) => name.endsWith('.run'));
  }

  close(): void {
    for (const fd of this.#open.values()) fs.closeSync(fd);
    this.#open.clear();
  }
}

export class MemoryRunFiles implements RunFiles {
  readonly #files = new Map<string, Uint8Array>();

  write(name: string, parts: readonly Uint8Array[]): void {
    this.#files.set(name, new Uint8Array(Buffer.concat(parts)));
  }

  read(name: string, into: Uint8Array, position: number): number {
    const part = this.#files.get(name)!.subarray(position, position + into.length);
    into.set(part);
    return part.length;
  }

  size(name: string): number | undefined {
    return this.#files.get(name)?.length;
  }

  remove(name: string): void {
    this.#files.delete(name);
  }

  names(): readonly string[] {
    return [...this.#files.keys()];
  }

  close(): void {}
}
