// Who may write in a data directory: one process, by a SQLite lock on a file of its own. The lock is the operating
// system's, so a process that was killed holds none.

import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { FloeError } from '../../base/error.ts';

export interface DataDirLock {
  release(): void;
}

/** Makes the directory, durably: a crash may not forget what acknowledged records lie in. @throws the system's error. */
export function makeDataDir(dataDir: string): void {
  const path = resolve(dataDir);
  const first = mkdirSync(path, { recursive: true });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    const parent = openSync(dirname(made), 'r');
    fsyncSync(parent);
    closeSync(parent);
  }
}

/** @throws FloeError `conflict` when another process holds the directory. */
export function lockDataDir(dataDir: string): DataDirLock {
  makeDataDir(dataDir);
  const db = new DatabaseSync(join(dataDir, 'lock'));
  try {
    db.exec('PRAGMA busy_timeout = 0; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (cause) {
    db.close();
    if (!/locked|busy/i.test(String(cause))) throw FloeError.from(cause, `lock of ${dataDir}`);
    throw new FloeError(
      'conflict',
      `${dataDir} is in use by another process: stop it, or choose another --data-dir`,
      { cause },
    );
  }
  return { release: () => db.close() };
}
