// Objects in a folder: durable when `put` resolves, never visible in part, exclusive also between processes.
// Write a temporary file, sync it, link (exclusive) or rename (overwriting) it to its name, sync the folder.
// Not for: the write-ahead log's own files (storage/log), which grow and are recycled.
import { constants } from 'node:fs';
import * as fs from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Clock } from '../../base/clock.ts';
import { FloeError, isFloeError } from '../../base/error.ts';
import type { IdSource } from '../../base/prng.ts';
import {
  bodyParts,
  bodySize,
  checkKey,
  clampRange,
  compareKeys,
  RESERVED_SEGMENT,
} from './keys.ts';
import type { GetOptions, ObjectInfo, ObjectStore, PutOptions } from './object-store.ts';

/** Linux' limit of buffers in one writev. */
const MAX_IOV = 1024;
/** A temporary file this old belongs to a process that died. */
const STALE_TEMPORARY_MS = 60 * 60_000;
/** How often a put makes its folder again after a delete removed it in between. */
const FOLDER_ATTEMPTS = 10;

/** A folder as an object store. Two processes may use the same folder. */
export class LocalObjectStore implements ObjectStore {
  readonly uri: string;
  readonly #root: string;
  readonly #ids: IdSource;

  private constructor(root: string, ids: IdSource) {
    this.#root = root;
    this.uri = pathToFileURL(root).href.replace(/\/$/, '');
    this.#ids = ids;
  }

  /** Makes the folder if need be and removes what dead processes left half-written. `root` is absolute. */
  static async open(root: string, { clock, ids }: { clock: Clock; ids: IdSource }) {
    const store = new LocalObjectStore(root, ids);
    const temporary = join(root, RESERVED_SEGMENT);
    await store.#makeFolder(temporary);
    for (const name of await fs.readdir(temporary)) {
      const path = join(temporary, name);
      const found = await fs.stat(path).catch(() => undefined);
      if (found !== undefined && clock.now() - found.mtimeMs > STALE_TEMPORARY_MS)
        await fs.rm(path, { force: true });
    }
    return store;
  }

  async put(
    key: string,
    body: Uint8Array | readonly Uint8Array[],
    options: PutOptions = {},
  ): Promise<void> {
    checkKey(key);
    options.signal?.throwIfAborted();
    const temporary = join(this.#root, RESERVED_SEGMENT, this.#ids.uuid());
    try {
      await writeSynced(temporary, bodyParts(body), options.signal);
      await this.#publish(temporary, key, options.ifNoneMatch === true);
    } catch (caught) {
      throw localError(caught, 'put', key);
    } finally {
      await fs.rm(temporary, { force: true });
    }
  }

  /** Gives the synced temporary file its name; the name is durable when this resolves. */
  async #publish(temporary: string, key: string, exclusive: boolean): Promise<void> {
    const path = this.#path(key);
    for (let attempt = 1; ; attempt += 1) {
      await this.#makeFolder(dirname(path));
      try {
        if (exclusive) await fs.link(temporary, path);
        else await fs.rename(temporary, path);
        return await syncFolder(dirname(path));
      } catch (caught) {
        // A delete may have removed the folder as empty, between making and using it.
        const missing = (caught as NodeJS.ErrnoException).code === 'ENOENT';
        if (!missing || attempt >= FOLDER_ATTEMPTS) throw caught;
      }
    }
  }

  /** Makes the folder and syncs every parent that got a new entry. */
  async #makeFolder(folder: string): Promise<void> {
    const first = await fs.mkdir(folder, { recursive: true }).catch((caught) => {
      // EEXIST: a file stands in a folder's place.
      if (caught.code === 'EEXIST') throw Object.assign(caught, { code: 'ENOTDIR' });
      throw caught;
    });
    if (first === undefined) return;
    for (let made = folder; made.length >= first.length; made = dirname(made))
      await syncFolder(dirname(made));
  }

  async get(key: string, options: GetOptions = {}): Promise<Uint8Array> {
    checkKey(key);
    options.signal?.throwIfAborted();
    let handle: fs.FileHandle | undefined;
    try {
      handle = await fs.open(this.#path(key), constants.O_RDONLY);
      const stat = await handle.stat();
      if (!stat.isFile()) throw new FloeError('not-found', `there is no object "${key}"`);
      const { start, length } = clampRange(options, stat.size);
      const target =
        options.into?.subarray(0, length) ?? new Uint8Array(Buffer.allocUnsafeSlow(length).buffer);
      return target.subarray(0, await readFully(handle, target, start));
    } catch (caught) {
      throw localError(caught, 'get', key);
    } finally {
      await handle?.close();
    }
  }

  async head(key: string): Promise<ObjectInfo | undefined> {
    checkKey(key);
    try {
      const stat = await fs.stat(this.#path(key));
      return stat.isFile() ? { key, size: stat.size, modifiedMs: stat.mtimeMs } : undefined;
    } catch (caught) {
      const error = localError(caught, 'head', key);
      if (error.code === 'not-found') return undefined;
      throw error;
    }
  }

  async *list(
    prefix: string,
    options: { readonly after?: string } = {},
  ): AsyncGenerator<ObjectInfo> {
    const parent = prefix.includes('/') ? prefix.slice(0, prefix.lastIndexOf('/')) : '';
    if (parent !== '') checkKey(parent);
    yield* this.#walk(parent, prefix, options.after ?? '');
  }

  /** Depth first; a folder sorts as its name plus `/`, which makes the whole walk ascend by key. */
  async *#walk(folder: string, prefix: string, after: string): AsyncGenerator<ObjectInfo> {
    for (const { key, isFolder } of await this.#children(folder)) {
      if (isFolder) {
        const matches = key.startsWith(prefix) || prefix.startsWith(key);
        const passed = compareKeys(key, after) < 0 && !after.startsWith(key);
        if (matches && !passed) yield* this.#walk(key.slice(0, -1), prefix, after);
      } else if (key.startsWith(prefix) && compareKeys(key, after) > 0) {
        const info = await this.head(key);
        if (info !== undefined) yield info;
      }
    }
  }

  async #children(folder: string): Promise<{ key: string; isFolder: boolean }[]> {
    const base = folder === '' ? '' : `${folder}/`;
    try {
      const entries = await fs.readdir(join(this.#root, folder), { withFileTypes: true });
      return entries
        .filter((entry) => base !== '' || entry.name !== RESERVED_SEGMENT)
        .map((entry) => ({
          key: `${base}${entry.name}${entry.isDirectory() ? '/' : ''}`,
          isFolder: entry.isDirectory(),
        }))
        .sort((a, b) => compareKeys(a.key, b.key));
    } catch (caught) {
      const error = localError(caught, 'list', folder);
      if (error.code === 'not-found') return [];
      throw error;
    }
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) checkKey(key);
    const folders = new Set<string>();
    for (const key of keys) {
      const path = this.#path(key);
      try {
        await fs.unlink(path);
        folders.add(dirname(path));
      } catch (caught) {
        const error = localError(caught, 'delete', key);
        if (error.code !== 'not-found') throw error;
      }
    }
    for (const folder of folders) await this.#afterDelete(folder);
  }

  /** Makes the deletion durable and removes folders that became empty, as S3 has none. */
  async #afterDelete(folder: string): Promise<void> {
    await syncFolder(folder).catch(ignoreMissing);
    for (let empty = folder; empty.length > this.#root.length; empty = dirname(empty)) {
      const removed = await fs.rmdir(empty).then(
        () => true,
        () => false,
      );
      if (!removed) return;
    }
  }

  #path(key: string): string {
    return join(this.#root, key);
  }
}

async function writeSynced(
  path: string,
  parts: readonly Uint8Array[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const handle = await fs.open(path, 'wx');
  try {
    for (let from = 0; from < parts.length; from += MAX_IOV) {
      signal?.throwIfAborted();
      await writeFully(handle, parts.slice(from, from + MAX_IOV));
    }
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

/** A writev may write less than asked: the rest is written again from where it stopped. */
async function writeFully(handle: fs.FileHandle, parts: readonly Uint8Array[]): Promise<void> {
  let rest = parts.filter((part) => part.length > 0);
  while (rest.length > 0) {
    let { bytesWritten } = await handle.writev(rest);
    if (bytesWritten === bodySize(rest)) return;
    let whole = 0;
    while (bytesWritten >= rest[whole]!.length) bytesWritten -= rest[whole++]!.length;
    rest = [rest[whole]!.subarray(bytesWritten), ...rest.slice(whole + 1)];
  }
}

/** Fills `target` from position `start`; returns how many bytes there were. */
async function readFully(
  handle: fs.FileHandle,
  target: Uint8Array,
  start: number,
): Promise<number> {
  let filled = 0;
  while (filled < target.length) {
    const { bytesRead } = await handle.read(target, filled, target.length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

/** Makes the entries of a folder durable. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await fs.open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function ignoreMissing(caught: unknown): void {
  if ((caught as NodeJS.ErrnoException).code !== 'ENOENT') throw caught;
}

function localError(caught: unknown, doing: string, key: string): FloeError {
  const { code } = caught as NodeJS.ErrnoException;
  if (isFloeError(caught)) return caught;
  if (code === 'ENOENT') {
    return new FloeError('not-found', `there is no object "${key}"`, { cause: caught });
  }
  if (code === 'ENOTDIR' || code === 'EISDIR') {
    // Keys "a" and "a/b" exclude each other in a folder. A put of one says so; the other does not exist.
    return doing === 'put'
      ? new FloeError('invalid', `object "${key}": another object's name is a folder of this one`, {
          cause: caught,
        })
      : new FloeError('not-found', `there is no object "${key}"`, { cause: caught });
  }
  if (code === 'EEXIST')
    return new FloeError('conflict', `object "${key}" already exists`, { cause: caught });
  return FloeError.from(caught, `${doing} object "${key}"`);
}
