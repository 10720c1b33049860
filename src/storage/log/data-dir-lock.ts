// Who may write in a data directory: one process, by a SQLite lock on a file of its own. The lock is the operating
// system's, so a process that was killed holds none.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { FloeError } from '../../base/error.ts';

export interface DataDirLock {
  release(): void;
}

/** @throws FloeError `conflict` when another process holds the directory. */
export function lockDataDir(dataDir: string): DataDirLock {
  mkdirSync(dataDir, { recursive: true });
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
