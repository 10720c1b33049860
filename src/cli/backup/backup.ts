// floe backup and floe restore: the metadata of a cluster or of a node alone, as of one moment, and back into an empty
// place. The log and the files of tables stay in their store, which keeps what a backup refers to for
// log.delete.grace.ms. Not for: copies of the store itself (versioning and replication of the bucket).
import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { noMetrics } from '../../base/metrics.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import { openPostgresMetadata } from '../../metadata/postgres/index.ts';
import { Database as SqliteDatabase } from '../../metadata/sqlite/database.ts';
import { openDatabase } from '../../metadata/sqlite/index.ts';
import {
  noteRecovered,
  RESTORED,
  readSnapshot,
  SKIPPED_IDS,
  writeSnapshot,
} from '../../metadata/transfer/index.ts';
import { lockDataDir, makeDataDir } from '../../storage/log/data-dir-lock.ts';
import { localRoot } from '../../storage/log/open-front.ts';
import { METADATA_FILE } from '../../storage/log/sequencer-backend.ts';
import { type ObjectStore, openObjectStore } from '../../storage/objects/index.ts';
import { filePrefix } from '../../storage/paths.ts';
import type { ServerSettings } from '../compose/node.ts';
import { openAsked } from '../fsck/metadata.ts';
import { openPostgres } from '../stores.ts';
import { BackupWriter, MANIFEST_KEY, partsOf, readManifest } from './files.ts';
import { type Proof, prove } from './prove.ts';

export interface BackupOptions {
  /** Folder or URI of a store. */
  readonly place: string;
  readonly dataDir: string;
  /** `postgres://…`; undefined: SQLite in the data directory. */
  readonly metadata: string | undefined;
  readonly storage: string | undefined;
  readonly settings: ServerSettings;
  /** For tests: a server that would lose acked commits is taken. */
  readonly unsafeServer?: boolean;
}

export interface Taken {
  readonly clusterId: string;
  readonly lastCommit: number;
  readonly takenMs: number;
  readonly bytes: number;
}

/** Bytes of a file in one part. */
const PART_BYTES = 64 * 1024 * 1024;

/** While brokers run, or not. @throws FloeError `conflict` when there is a backup in that place. */
export async function backup(options: BackupOptions): Promise<Taken> {
  const place = await openStore(options.place, options.settings);
  if ((await place.head(MANIFEST_KEY)) !== undefined)
    throw new FloeError('conflict', `${place.uri} holds a backup already: name an empty place`);
  const writer = new BackupWriter(place);
  return options.metadata === undefined
    ? backupSqlite(options, writer)
    : backupPostgres(options, writer);
}

function openStore(place: string, settings: ServerSettings): Promise<ObjectStore> {
  const uri = /^[a-z0-9]+:\/\//.test(place) ? place : pathToFileURL(place).href;
  return openObjectStore(uri, {
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    metrics: noMetrics,
    settings,
  });
}

async function backupPostgres(options: BackupOptions, writer: BackupWriter): Promise<Taken> {
  const { metadata, settings } = options;
  const database = openPostgres(metadata!, { settings, applicationName: 'floe backup' });
  try {
    const facts = await readSnapshot(database, (table, rows) =>
      writer.add(table, Buffer.from(rows.join('\n'))),
    );
    const bytes = await writer.finish({ kind: 'postgres', facts });
    const { clusterId, lastCommit, takenMs } = facts;
    return { clusterId, lastCommit, takenMs, bytes };
  } finally {
    await database.close();
  }
}

async function backupSqlite({ dataDir }: BackupOptions, writer: BackupWriter): Promise<Taken> {
  const path = join(dataDir, METADATA_FILE);
  if (!existsSync(path))
    throw new FloeError('not-found', `--data-dir ${dataDir} holds no ${METADATA_FILE}`);
  const folder = mkdtempSync(join(tmpdir(), 'floe-backup-'));
  try {
    const copy = join(folder, METADATA_FILE);
    const takenMs = systemClock.now();
    const source = new SqliteDatabase(path, []);
    // One read transaction: whole, whatever a running node commits meanwhile.
    source.prepare('VACUUM INTO ?').run(copy);
    source.close();
    const facts = { ...factsOf(copy), takenMs };
    for (const part of readParts(copy)) await writer.add(METADATA_FILE, part);
    const bytes = await writer.finish({ kind: 'sqlite', facts });
    return { ...facts, bytes };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function factsOf(path: string): { readonly clusterId: string; readonly lastCommit: number } {
  const database = new SqliteDatabase(path, []);
  const cluster = database.prepare('SELECT cluster_id FROM cluster').get();
  const last = database.prepare('SELECT max(commit_number) AS last FROM flushes').get();
  database.close();
  if (cluster === undefined)
    throw new FloeError('not-found', 'the data directory belongs to no cluster yet');
  return { clusterId: cluster['cluster_id'] as string, lastCommit: Number(last?.['last'] ?? 0) };
}

function* readParts(path: string): Generator<Uint8Array> {
  const file = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(PART_BYTES);
    for (let n: number; (n = readSync(file, buffer, 0, PART_BYTES, null)) > 0; )
      yield buffer.subarray(0, n);
  } finally {
    closeSync(file);
  }
}

/** What a restore brought back, and how it fits the store. */
export interface Restored extends Omit<Taken, 'bytes'> {
  readonly proof: Proof;
}

/**
 * Into an empty database or directory; the store's incarnation rises, so nothing is swept until it is confirmed.
 * @throws FloeError `conflict`: there is something; `corrupt`: the backup is damaged.
 */
export async function restore(options: BackupOptions): Promise<Restored> {
  const place = await openStore(options.place, options.settings);
  const manifest = await readManifest(place);
  const kind = options.metadata === undefined ? 'sqlite' : 'postgres';
  if (manifest.kind !== kind) {
    const remedy = kind === 'sqlite' ? 'name the database by --metadata' : 'leave --metadata out';
    throw new FloeError('invalid', `${place.uri} is a backup of ${manifest.kind}: ${remedy}`);
  }
  if (manifest.kind === 'postgres') {
    const metadata = await openMetadata(options);
    try {
      await writeSnapshot(metadata.database, manifest.facts, async function* (table) {
        for await (const part of partsOf(place, manifest, table))
          yield Buffer.from(part).toString().split('\n');
      });
    } finally {
      await metadata.close();
    }
  } else {
    await restoreSqlite(options, partsOf(place, manifest, METADATA_FILE), manifest.facts.clusterId);
  }
  const { clusterId, lastCommit, takenMs } = manifest.facts;
  return { clusterId, lastCommit, takenMs, proof: await proveStore(options, clusterId) };
}

/** The database was brought back by its own means (point-in-time recovery): the same proof, the same caution. */
export async function noteRestored(options: BackupOptions): Promise<Proof> {
  const metadata = await openMetadata(options);
  try {
    const clusterId = await metadata.cluster.clusterId();
    if (clusterId === undefined)
      throw new FloeError('not-found', 'the database belongs to no cluster yet');
    await noteRecovered(metadata.database);
    return await proveStore(options, clusterId);
  } finally {
    await metadata.close();
  }
}

function openMetadata({ metadata, settings, unsafeServer }: BackupOptions) {
  return openPostgresMetadata({
    url: metadata!,
    clock: systemClock,
    prng: systemPrng,
    settings,
    applicationName: 'floe restore',
    ...(unsafeServer === undefined ? {} : { unsafeServer }),
  });
}

async function restoreSqlite(
  { dataDir, storage, settings }: BackupOptions,
  parts: AsyncIterable<Uint8Array>,
  clusterId: string,
): Promise<void> {
  const path = join(dataDir, METADATA_FILE);
  makeDataDir(dataDir);
  const lock = lockDataDir(dataDir);
  try {
    if (existsSync(path))
      throw new FloeError(
        'conflict',
        `${path} is there: move it away, with its -wal and -shm, or name another --data-dir`,
      );
    const arriving = `${path}.arriving`;
    const file = openSync(arriving, 'w');
    for await (const part of parts) writeSync(file, part);
    fsyncSync(file);
    closeSync(file);
    const database = openDatabase(arriving);
    database.transaction(() => {
      for (const sql of RESTORED) database.prepare(sql).run();
      database.prepare('UPDATE sqlite_sequence SET seq = seq + ?').run(SKIPPED_IDS);
    });
    const store = await openStore(storage ?? join(dataDir, 'storage'), settings);
    keepLocalFiles(database, localRoot(store), clusterId);
    database.checkpoint();
    database.close();
    renameSync(arriving, path);
  } finally {
    lock.release();
  }
}

/** A start takes back write-ahead files without a row, and seals open ones after their last commit: kept aside, as they are. */
function keepLocalFiles(
  database: SqliteDatabase,
  root: string | undefined,
  clusterId: string,
): void {
  if (root === undefined) return;
  const folder = join(root, filePrefix(clusterId));
  if (!existsSync(folder)) return;
  const states = new Map(
    database
      .prepare('SELECT key, state FROM log_objects')
      .all()
      .map(({ key, state }) => [key as string, state as string]),
  );
  const aside = join(root, '..', `after-backup-${systemClock.now()}`);
  for (const name of readdirSync(folder)) {
    const state = states.get(`${filePrefix(clusterId)}${name}`);
    if (!name.endsWith('.wal') || state === 'sealed') continue;
    mkdirSync(aside, { recursive: true });
    if (state === 'open') copyFileSync(join(folder, name), join(aside, name));
    else renameSync(join(folder, name), join(aside, name));
  }
  if (existsSync(aside))
    writeFileSync(
      join(aside, 'README'),
      'Write-ahead files as they were when a backup was restored; what they hold beyond it is not in the log.\n',
    );
}

async function proveStore(options: BackupOptions, clusterId: string): Promise<Proof> {
  const { dataDir, storage, settings } = options;
  const store = await openStore(storage ?? join(dataDir, 'storage'), settings);
  const metadata = openAsked({ ...options, applicationName: 'floe restore' });
  return prove(metadata, store, clusterId).finally(() => metadata.close());
}
