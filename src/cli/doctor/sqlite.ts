// The database of a node alone under `floe doctor`: whole, and with room. May be asked while the node runs.
import { statfsSync } from 'node:fs';
import type { Database } from '../../metadata/sqlite/database.ts';
import { openDatabase } from '../../metadata/sqlite/index.ts';
import { type Finding, findingsOf } from './finding.ts';

const { ok, warning, wrong } = findingsOf('database');
/** Below it a broker soon refuses to write. */
const LEAST_FREE = 0.05;

export function checkSqlite(database: Database, dataDir: string): readonly Finding[] {
  return [integrity(database), migrations(database), room(dataDir), ...moved(database)];
}

function integrity(database: Database): Finding {
  const found = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check'];
  if (found === 'ok') return ok('metadata.db', 'whole');
  return wrong('metadata.db', String(found), 'restore it from a backup: floe restore');
}

function migrations(database: Database): Finding {
  const memory = openDatabase(':memory:');
  const names = (of: Database) =>
    of
      .prepare('SELECT name FROM migrations')
      .all()
      .map((row) => row['name'] as string);
  const applied = new Set(names(database));
  const pending = names(memory).filter((name) => !applied.delete(name));
  memory.close();
  if (applied.size > 0)
    return warning(
      'migrations',
      `newer: ${[...applied].join(', ')}`,
      'use the version of floe that serves this directory',
    );
  if (pending.length === 0) return ok('migrations', 'current');
  return warning('migrations', `pending: ${pending.join(', ')}`, 'the next start applies them');
}

function room(dataDir: string): Finding {
  const { bavail, blocks, bsize } = statfsSync(dataDir);
  const value = `${Math.floor((bavail * bsize) / 2 ** 20)} MiB free`;
  if (bavail >= blocks * LEAST_FREE) return ok('disk', value);
  return warning('disk', value, 'make room, or shorten retention: a full disk refuses produce');
}

function moved(database: Database): readonly Finding[] {
  const has = database.prepare("SELECT 1 FROM migrations WHERE name = 'cluster-3'").get();
  const to = has && database.prepare('SELECT moved_to FROM cluster').get()?.['moved_to'];
  if (!to) return [];
  return [
    warning(
      'moved',
      `to ${to}`,
      'this directory is the past of that cluster and is served no more',
    ),
  ];
}
