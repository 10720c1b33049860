// Lives of a node under simulation: a life ends at any call to disk, store or metadata, and what an old life still has
// in flight touches nothing any more.
import type { SqliteMetadata } from '../../src/metadata/sqlite/index.ts';
import type { Disk, DiskFile } from '../../src/storage/log/disk.ts';
import type { ObjectStore } from '../../src/storage/objects/object-store.ts';
import { PowerOut, type SimulatedDisk } from './simulated-disk.ts';

/** Ends with its node: whatever an old life still has in flight touches nothing any more. */
export class Life {
  over = false;
  check(): void {
    if (this.over) throw new PowerOut('this life is over');
  }
}

/** Any domain whose calls end with its life, and may be the moment of a crash, before or after they happened. */
export function living<T extends object>(domain: T, life: Life, disk: SimulatedDisk): T {
  return new Proxy(domain, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...args: unknown[]) => Promise<unknown>;
      return async (...args: unknown[]) => {
        life.check();
        disk.step();
        const result = await method.apply(target, args);
        life.check();
        return result;
      };
    },
  });
}

type GuardedMethod = 'sealNow' | 'checkpoint' | 'pruneFlushes';

export function guard(
  log: SqliteMetadata['log'],
  name: GuardedMethod,
  life: Life,
  disk: SimulatedDisk,
): void {
  const original = (log[name] as (...args: unknown[]) => unknown).bind(log);
  (log as unknown as Record<string, unknown>)[name] = (...args: unknown[]) => {
    life.check();
    disk.step();
    return original(...args);
  };
}

export function livingDisk(disk: SimulatedDisk, life: Life): Disk {
  const guarded = <F extends (...args: never[]) => unknown>(action: F): F =>
    ((...args: Parameters<F>) => {
      life.check();
      return action(...args);
    }) as F;
  const file = (inner: DiskFile): DiskFile => ({
    pwritev: guarded((parts, position) => inner.pwritev(parts, position)),
    pread: guarded((into, position) => inner.pread(into, position)),
    fdatasync: guarded(() => inner.fdatasync()),
    size: guarded(() => inner.size()),
    truncate: guarded((bytes) => inner.truncate(bytes)),
    close: () => inner.close(),
  });
  return {
    open: guarded((name, mode) => file(disk.open(name, mode))),
    rename: guarded((from, to) => disk.rename(from, to)),
    unlink: guarded((name) => disk.unlink(name)),
    syncDirectory: guarded((name) => disk.syncDirectory(name)),
    makeDirectory: guarded(() => disk.makeDirectory()),
    list: guarded((directory) => disk.list(directory)),
    freeBytes: guarded(() => disk.freeBytes()),
  };
}

/** A store whose calls end with a life, and may be the moment of a crash, before or after they happened. */
export function livingStore(store: ObjectStore, life: Life, disk: SimulatedDisk): ObjectStore {
  return {
    uri: store.uri,
    put: async (key, body, options) => {
      life.check();
      disk.step();
      await store.put(key, body, options);
      life.check();
      disk.step();
    },
    get: (key, options) => store.get(key, options),
    head: (key) => store.head(key),
    list: (prefix, options) => store.list(prefix, options),
    delete: async (keys) => {
      life.check();
      disk.step();
      await store.delete(keys);
    },
  };
}
