// floe doctor: asks store, database, clocks and catalog the questions whose answers an operator would want before
// trouble comes. Each part is asked although another failed. Writes nothing but probes that it deletes at once.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import { type Catalog, EmbeddedCatalog, openCatalog, Warehouse } from '../../catalog/index.ts';
import type { CatalogMetadata } from '../../metadata/catalog.ts';
import type { ClusterMetadata } from '../../metadata/cluster.ts';
import { PostgresCatalog } from '../../metadata/postgres/catalog.ts';
import { PostgresCluster } from '../../metadata/postgres/cluster.ts';
import { Database } from '../../metadata/postgres/database.ts';
import { SqliteCatalog } from '../../metadata/sqlite/catalog.ts';
import { SqliteCluster } from '../../metadata/sqlite/cluster.ts';
import { Database as SqliteDatabase } from '../../metadata/sqlite/database.ts';
import { METADATA_FILE } from '../../storage/log/sequencer-backend.ts';
import { type ObjectStore, openObjectStore } from '../../storage/objects/index.ts';
import { warehousePrefix } from '../../storage/paths.ts';
import type { ServerSettings } from '../compose/node.ts';
import { type Finding, findingsOf } from './finding.ts';
import { checkDatabase } from './postgres.ts';
import { checkSqlite } from './sqlite.ts';
import { checkStore } from './store.ts';

export interface DoctorOptions {
  readonly dataDir: string;
  /** `postgres://…`; undefined: SQLite in the data directory. */
  readonly metadata: string | undefined;
  readonly storage: string | undefined;
  readonly settings: ServerSettings;
  /** A restore was looked at and is well: deletion may go on. */
  readonly confirm: boolean;
}

/** The metadata store, as far as the doctor asks it. */
interface Metadata {
  readonly cluster: ClusterMetadata;
  readonly catalog: CatalogMetadata;
  check(): Promise<readonly Finding[]>;
  close(): Promise<void>;
}

const cluster = findingsOf('cluster');

/** @throws FloeError only for what the options say wrong. */
export async function examine(options: DoctorOptions): Promise<readonly Finding[]> {
  const metadata = options.metadata === undefined ? sqlite(options) : postgres(options);
  try {
    const findings = [...(await metadata.check())];
    const there = !findings.some(({ what }) => what === 'reachable');
    const clusterId = there ? await orUndefined(metadata.cluster.clusterId()) : null;
    if (there) findings.push(...(await incarnation(metadata, options.confirm)));
    const store = await openStore(options);
    if (store instanceof FloeError) {
      const remedy = 'name it by --storage file:///folder or s3://bucket/prefix';
      return [...findings, findingsOf('store').wrong('reachable', store.message, remedy)];
    }
    const uploadAgeMs = options.settings['log.orphan.age.ms'];
    const parts = { store, clock: systemClock, ids: systemIds, clusterId, uploadAgeMs };
    const stored = await checkStore(parts);
    findings.push(...stored);
    const readable = !stored.some(
      ({ what, severity }) => what === 'reachable' && severity !== 'ok',
    );
    if (readable && typeof clusterId === 'string')
      findings.push(await checkCatalog(options, { metadata, store, clusterId }));
    return findings;
  } finally {
    await metadata.close();
  }
}

function sqlite({ dataDir }: DoctorOptions): Metadata {
  const path = join(dataDir, METADATA_FILE);
  if (!existsSync(path)) {
    throw new FloeError(
      'not-found',
      `--data-dir ${dataDir} holds no ${METADATA_FILE}: name the directory of a node, or --metadata and --storage of a cluster`,
    );
  }
  // Without migrations: a node may be running, of another version.
  const database = new SqliteDatabase(path, []);
  return {
    cluster: new SqliteCluster(database, systemClock),
    catalog: new SqliteCatalog(database),
    check: async () => checkSqlite(database, dataDir),
    close: async () => database.close(),
  };
}

function postgres({ metadata: url, settings }: DoctorOptions): Metadata {
  const database = new Database({
    url: url!,
    clock: systemClock,
    prng: systemPrng,
    settings,
    applicationName: 'floe doctor',
  });
  return {
    cluster: new PostgresCluster(database),
    catalog: new PostgresCatalog(database),
    check: () => checkDatabase({ database, settings, clock: systemClock }),
    close: () => database.close(),
  };
}

async function openStore({
  storage,
  dataDir,
  settings,
}: DoctorOptions): Promise<ObjectStore | FloeError> {
  try {
    return await openObjectStore(storage ?? pathToFileURL(join(dataDir, 'storage')).href, {
      clock: systemClock,
      prng: systemPrng,
      ids: systemIds,
      metrics: noMetrics,
      // An operator waits: what doesn't answer is told soon.
      settings: { ...settings, 'objects.retry.attempts': 1 },
    });
  } catch (caught) {
    return FloeError.from(caught);
  }
}

/** Tables that a first start has yet to make. */
async function orUndefined<T>(asked: Promise<T | undefined>): Promise<T | undefined> {
  return asked.catch(() => undefined);
}

async function incarnation(
  { cluster: asked }: Metadata,
  confirm: boolean,
): Promise<readonly Finding[]> {
  const found = await orUndefined(asked.incarnation());
  if (found === undefined || found.restores === 0) return [];
  if (confirm && !found.confirmed) await asked.confirmIncarnation();
  if (confirm || found.confirmed)
    return [cluster.ok('restored', `${found.restores} times, confirmed`)];
  return [
    cluster.wrong(
      'restored',
      'from a backup, not confirmed',
      'nothing is swept or deleted meanwhile: see what floe restore listed, then say floe doctor --confirm',
    ),
  ];
}

interface CatalogParts {
  readonly metadata: Metadata;
  readonly store: ObjectStore;
  readonly clusterId: string;
}

/** Reachable, and one of its tables can be read. */
async function checkCatalog(
  { settings }: DoctorOptions,
  { metadata, store, clusterId }: CatalogParts,
): Promise<Finding> {
  const { ok, wrong } = findingsOf('catalog');
  const kind = settings['catalog.type'];
  const common = {
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    logger: silentLogger,
    settings,
  };
  try {
    const warehouse = new Warehouse(store, warehousePrefix(clusterId));
    const embedded = new EmbeddedCatalog({ ...common, metadata: metadata.catalog, warehouse });
    const opened = await openCatalog({ ...common, metrics: noMetrics, embedded, store });
    try {
      const loaded = await loadOne(opened.catalog);
      return ok(kind, loaded === undefined ? 'reachable, no tables' : `reachable, ${loaded} loads`);
    } finally {
      await opened.stop();
    }
  } catch (caught) {
    const remedy =
      'see catalog.* in docs/settings.md; of a file that is gone, restore its version in the bucket';
    return wrong(kind, FloeError.from(caught).message, remedy);
  }
}

async function loadOne(catalog: Catalog): Promise<string | undefined> {
  for (const namespace of await catalog.listNamespaces([])) {
    const [first] = await catalog.listTables(namespace);
    if (first === undefined) continue;
    await catalog.loadTable(first);
    return `${[...first.namespace, first.name].join('.')}`;
  }
  return undefined;
}
