// The stores of a node or a cluster as commands open them while brokers may be running, of another version perhaps: without
// migrations. Not for: a broker's own way to them (compose/), what is asked of them.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { systemClock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import { silentLogger } from '../base/log.ts';
import { noMetrics } from '../base/metrics.ts';
import { systemIds, systemPrng } from '../base/prng.ts';
import { EmbeddedCatalog, openCatalog, Warehouse } from '../catalog/index.ts';
import type { CatalogMetadata } from '../metadata/catalog.ts';
import { Database } from '../metadata/postgres/database.ts';
import type { PostgresSettings } from '../metadata/postgres/settings.ts';
import { Database as SqliteDatabase } from '../metadata/sqlite/database.ts';
import { METADATA_FILE } from '../storage/log/sequencer-backend.ts';
import { type ObjectStore, openObjectStore } from '../storage/objects/index.ts';
import { warehousePrefix } from '../storage/paths.ts';
import type { ServerSettings } from './compose/node.ts';

/** Where they are, as the options say. */
export interface StorePlace {
  readonly dataDir: string;
  /** `postgres://…`; undefined: SQLite in the data directory. */
  readonly metadata: string | undefined;
  readonly storage: string | undefined;
  readonly settings: ServerSettings;
}

/** @throws FloeError `not-found` when the directory holds no metadata. */
export function openSqlite(dataDir: string): SqliteDatabase {
  const path = join(dataDir, METADATA_FILE);
  if (existsSync(path)) return new SqliteDatabase(path, []);
  throw new FloeError(
    'not-found',
    `--data-dir ${dataDir} holds no ${METADATA_FILE}: name the directory of a node, or --metadata and --storage of a cluster`,
  );
}

/** @param applicationName as the server shows who asks */
export function openPostgres(
  url: string,
  { settings, applicationName }: { settings: PostgresSettings; applicationName: string },
): Database {
  return new Database({ url, clock: systemClock, prng: systemPrng, settings, applicationName });
}

type Stored = Pick<StorePlace, 'storage' | 'dataDir' | 'settings'>;

const uriOf = ({ storage, dataDir }: Stored): string =>
  storage ?? pathToFileURL(join(dataDir, 'storage')).href;

/** {@link openStore} for who writes nothing. @throws FloeError `not-found`: a folder that isn't there is not made. */
export async function openStoreToRead(place: Stored): Promise<ObjectStore> {
  const url = URL.canParse(uriOf(place)) ? new URL(uriOf(place)) : undefined;
  if (url?.protocol === 'file:' && url.host === '' && !existsSync(fileURLToPath(url)))
    throw new FloeError(
      'not-found',
      `storage ${url}: there is no such folder; name the one that the node or cluster stores in`,
    );
  return openStore(place);
}

/** The store of the log and of the embedded catalog's tables. */
export function openStore(place: Stored): Promise<ObjectStore> {
  const { settings } = place;
  return openObjectStore(uriOf(place), {
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    metrics: noMetrics,
    settings,
  });
}

export interface TablesPlace {
  readonly settings: ServerSettings;
  readonly metadata: CatalogMetadata;
  readonly store: ObjectStore;
  readonly clusterId: string;
}

/** The catalog that holds the tables, embedded or elsewhere. Stop it afterwards. */
export function openTables({ settings, metadata, store, clusterId }: TablesPlace) {
  const common = {
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    logger: silentLogger,
    settings,
  };
  const warehouse = new Warehouse(store, warehousePrefix(clusterId));
  const embedded = new EmbeddedCatalog({ ...common, metadata, warehouse });
  return openCatalog({ ...common, metrics: noMetrics, embedded, store });
}
