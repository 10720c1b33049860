// floe migrate: the cluster of one node, with SQLite in its data directory, becomes one of many brokers over PostgreSQL
// and shared storage. Offline, under the directory's lock. In an order that leaves no half: objects and table files first
// (copied again where they aren't whole), then all rows in one transaction, then the proof that both are equal, and only
// then is the directory marked as moved. What broke off goes on with the next run.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { createLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import { Warehouse } from '../../catalog/warehouse.ts';
import { openPostgresMetadata, type PostgresMetadata } from '../../metadata/postgres/index.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { compareRows, copyRows, type TransferSource } from '../../metadata/transfer/index.ts';
import { claimCluster } from '../../storage/cluster.ts';
import { lockDataDir } from '../../storage/log/data-dir-lock.ts';
import { METADATA_FILE } from '../../storage/log/sequencer-backend.ts';
import {
  type ObjectStore,
  openObjectStore,
  probeConditionalWrites,
} from '../../storage/objects/index.ts';
import { probeKey } from '../../storage/paths.ts';
import type { ServerSettings } from '../compose/node.ts';
import { assertTiled, copyObjects, sealedObjects } from './objects.ts';
import { sealLog } from './seal.ts';
import { compareTables, copyWarehouse, relocation, type TablePair } from './warehouse.ts';

export interface MigrateOptions {
  readonly dataDir: string;
  /** Of the data directory's node; undefined: its folder `storage`. */
  readonly fromStorage: string | undefined;
  readonly storage: string;
  readonly metadata: string;
  readonly settings: ServerSettings;
  /** CRCs of the batches of one of so many objects; 1: of all. */
  readonly checkOneOf: number;
  /** `copy`: files of tables move with the log; `keep`: there are none in this storage. */
  readonly warehouse: 'copy' | 'keep';
  /** Told of each step that is done. */
  readonly say: (line: string) => void;
  /** For tests: a server that would lose acked commits is taken. */
  readonly unsafeServer?: boolean;
}

interface Stores {
  readonly from: ObjectStore;
  readonly to: ObjectStore;
}

/** @throws FloeError of one clear line; both sides are as they were, or as far as the text says. */
export async function migrate(options: MigrateOptions): Promise<void> {
  const { dataDir } = options;
  if (!existsSync(join(dataDir, METADATA_FILE)))
    throw new FloeError(
      'not-found',
      `--data-dir ${dataDir} holds no ${METADATA_FILE}: nothing to move`,
    );
  const lock = lockDataDir(dataDir);
  try {
    const stores = await openStores(options);
    const target = await openPostgresMetadata({
      url: options.metadata,
      clock: systemClock,
      prng: systemPrng,
      settings: options.settings,
      applicationName: 'floe migrate',
      ...(options.unsafeServer === undefined ? {} : { unsafeServer: options.unsafeServer }),
    });
    try {
      await move(options, stores, target);
    } finally {
      await target.close();
    }
  } finally {
    lock.release();
  }
}

async function openStores({
  dataDir,
  fromStorage,
  storage,
  settings,
}: MigrateOptions): Promise<Stores> {
  const opening = { clock: systemClock, prng: systemPrng, ids: systemIds, metrics: noMetrics };
  const open = (uri: string) => openObjectStore(uri, { ...opening, settings });
  const from = await open(fromStorage ?? pathToFileURL(join(dataDir, 'storage')).href);
  const to = await open(storage);
  if (!storage.startsWith('file:')) await probeConditionalWrites(to, probeKey(systemIds.uuid()));
  return { from, to };
}

async function move(
  options: MigrateOptions,
  stores: Stores,
  target: PostgresMetadata,
): Promise<void> {
  const { dataDir, settings, say } = options;
  const path = join(dataDir, METADATA_FILE);
  const clusterId = await claimBoth(clusterIdOf(path), stores, target);
  await sealLog({
    dataDir,
    clusterId,
    store: stores.from,
    settings,
    clock: systemClock,
    ids: systemIds,
    logger: createLogger('error'),
  });
  const source = openSqliteMetadata(path);
  try {
    say(
      `log sealed: commit ${source.log.lastCommit}, ${assertTiled(source.database)} partitions whole`,
    );
    await moveAll({ options, stores, source, target, clusterId });
    markMoved(source, `${withoutPassword(options.metadata)} and ${stores.to.uri}`);
  } finally {
    source.close();
  }
  say(
    `moved: start brokers with --metadata and --storage ${stores.to.uri}; ${dataDir} is served no more`,
  );
}

function clusterIdOf(path: string): string {
  const source = openSqliteMetadata(path);
  try {
    const row = source.database.prepare('SELECT cluster_id FROM cluster').get();
    if (row === undefined)
      throw new FloeError('invalid', `${path} belongs to no cluster yet: there is nothing to move`);
    return row['cluster_id'] as string;
  } finally {
    source.close();
  }
}

/** Both stores and both databases are this cluster's, or new. */
async function claimBoth(
  clusterId: string,
  { from, to }: Stores,
  target: PostgresMetadata,
): Promise<string> {
  const identity = await claimCluster(from, { expectedId: clusterId, newId: clusterId, nowMs: 0 });
  const kept = await target.cluster.clusterId();
  if (kept !== undefined && kept !== clusterId)
    throw new FloeError(
      'conflict',
      `--metadata belongs to cluster ${kept}, not ${clusterId}: name an empty database`,
    );
  const nowMs = identity.createdMs;
  const claimed = await claimCluster(to, { expectedId: undefined, newId: clusterId, nowMs });
  if (claimed.clusterId !== clusterId)
    throw new FloeError(
      'conflict',
      `--storage ${to.uri} belongs to cluster ${claimed.clusterId}, not ${clusterId}: name an empty place`,
    );
  return clusterId;
}

interface Moving {
  readonly options: MigrateOptions;
  readonly stores: Stores;
  readonly source: SqliteMetadata;
  readonly target: PostgresMetadata;
  readonly clusterId: string;
}

async function moveAll(moving: Moving): Promise<void> {
  const { options, stores, source, target, clusterId } = moving;
  const { say, checkOneOf } = options;
  const transfer: TransferSource = {
    database: source.database,
    clusterId,
    lastCommit: source.log.lastCommit,
    moved: relocation(stores.from, stores.to),
  };
  // Rows come last, in one transaction: where they are, everything was copied.
  const done = (await target.cluster.clusterId()) === clusterId;
  if (done) await proveRows(moving, transfer);
  else assertTables(moving);
  const objects = sealedObjects(source.database);
  const copied = await copyObjects(objects, { clusterId, ...stores, checkOneOf });
  say(
    `objects of the log: ${copied.objects} with ${copied.bytes} bytes, ${copied.kept} of them there before; lengths and checksums equal; batches of ${copied.checked} objects checked by CRC`,
  );
  if (!done) {
    const files = await copyWarehouse({ clusterId, ...stores });
    say(
      `files of tables: ${files.files} with ${files.bytes} bytes, ${files.rewritten} rewritten for their new place`,
    );
    const counts = await copyRows(transfer, target.database);
    const rows = [...counts.values()].reduce((sum, count) => sum + count, 0);
    say(`metadata: ${rows} rows in ${counts.size} tables`);
    await proveRows(moving, transfer);
  }
  for (const plan of await compareTables(tablePairs(moving, transfer), stores))
    say(
      `table ${plan.table}: ${plan.files} data files, ${plan.rows} rows, ${plan.deletes} deletes, as before`,
    );
}

/** Tables of another catalog aren't ours to move; those of ours can't stay behind, and lie where the catalog says. */
function assertTables({ options, stores, source: { database } }: Moving): void {
  const rows = database
    .prepare("SELECT namespace, name, metadata_location FROM catalog_tables WHERE kind = 'table'")
    .all();
  const names = rows.map(({ namespace, name }) => `${namespace}.${name}`);
  const warehouse = new Warehouse(stores.from);
  const lost = rows.findIndex((row) => !warehouse.holds(row['metadata_location'] as string));
  if (lost >= 0)
    throw new FloeError(
      'invalid',
      `table ${names[lost]} lies at ${rows[lost]!['metadata_location']}, not in ${stores.from.uri}: name that place by --from-storage, or, where the data directory itself was moved, move it back`,
    );
  if (options.warehouse === 'keep' && names.length > 0 && stores.from.uri !== stores.to.uri) {
    throw new FloeError(
      'invalid',
      `--warehouse keep: the catalog has tables in ${stores.from.uri} (${names.slice(0, 5).join(', ')}): move them too, with --warehouse copy`,
    );
  }
  const foreign = database
    .prepare(`SELECT topic_name FROM table_topics t WHERE table_uuid <> '' AND NOT EXISTS
      (SELECT 1 FROM catalog_tables c WHERE c.name = t.table_name)`)
    .all();
  if (options.warehouse === 'copy' && foreign.length > 0) {
    throw new FloeError(
      'invalid',
      `tables of ${foreign
        .map((row) => row['topic_name'])
        .slice(0, 5)
        .join(
          ', ',
        )} lie in another catalog, which goes on as it is: say --warehouse keep, and start the brokers with the same catalog`,
    );
  }
}

/** Every row, and every partition's log as the store tells it. @throws FloeError `conflict` naming what differs. */
async function proveRows(
  { options, source, target }: Moving,
  transfer: TransferSource,
): Promise<void> {
  const compared = await compareRows(transfer, target.database);
  const differs = compared.filter(({ equal }) => !equal);
  if (differs.length > 0) {
    const list = differs.map(
      ({ table, sourceRows, targetRows }) =>
        `${table} (${sourceRows} rows here, ${targetRows} there)`,
    );
    throw new FloeError(
      'conflict',
      `the database differs in ${list.join(', ')}: if brokers have used it since it was moved, that is well and this directory is its past`,
    );
  }
  const [here, there] = await Promise.all([source.log.snapshot(), target.log.snapshot()]);
  const equal =
    here.lastCommit === there.lastCommit &&
    isDeepStrictEqual(byId(here.partitions), byId(there.partitions)) &&
    isDeepStrictEqual(byId(here.transactions), byId(there.transactions));
  if (!equal)
    throw new FloeError('conflict', 'log starts, ends or transactions of partitions differ');
  options.say(
    `metadata equal: ${compared.length} tables row by row; starts, ends and transactions of ${here.partitions.length} partitions`,
  );
}

const byId = <T extends { readonly partitionId: number }>(rows: readonly T[]): readonly T[] =>
  rows.toSorted((a, b) => a.partitionId - b.partitionId);

function tablePairs({ source }: Moving, { moved }: TransferSource): TablePair[] {
  return source.database
    .prepare("SELECT namespace, name, metadata_location FROM catalog_tables WHERE kind = 'table'")
    .all()
    .map((row) => ({
      name: `${(row['namespace'] as string).replaceAll('\u001f', '.')}.${row['name']}`,
      from: row['metadata_location'] as string,
      to: moved(row['metadata_location'] as string),
    }));
}

function markMoved({ database }: SqliteMetadata, to: string): void {
  database.transaction(() => database.prepare('UPDATE cluster SET moved_to = ?').run(to));
  database.checkpoint();
}

/** What may be shown and kept. */
function withoutPassword(url: string): string {
  return url.replace(/:[^:@/]*@/, ':…@');
}
