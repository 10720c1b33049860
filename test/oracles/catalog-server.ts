// Starts the embedded catalog alone, with SQL on the same port, for checkers:
//   catalog-server.ts [STORAGE_URI] [PORT] [WAREHOUSE_PREFIX]
// Iceberg's compatibility kit chooses locations of its own below /tmp: give it `file:///tmp PORT ''`.
// Prints `catalog http://127.0.0.1:PORT` when ready; ends with SIGTERM. Metadata is in memory.
// S3 storage takes endpoint and keys from AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../../src/base/clock.ts';
import { createLogger } from '../../src/base/log.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { systemIds, systemPrng } from '../../src/base/prng.ts';
import { resolveSettings } from '../../src/base/settings.ts';
import {
  CatalogTokens,
  catalogSettings,
  createCatalogServer,
  EmbeddedCatalog,
  Warehouse,
} from '../../src/catalog/index.ts';
import { openSqliteMetadata } from '../../src/metadata/sqlite/index.ts';
import { openQueries, querySettings, sqlRoutes } from '../../src/queries/index.ts';
import { objectSettings, openObjectStore } from '../../src/storage/objects/index.ts';

const [
  uri = pathToFileURL(mkdtempSync(join(tmpdir(), 'floe-catalog-'))).href,
  port = '0',
  prefix = 'warehouse/',
] = process.argv.slice(2);
const env = process.env;
const s3 = {
  endpoint: env['AWS_ENDPOINT_URL'] ?? '',
  region: env['AWS_REGION'] ?? '',
  accessKeyId: env['AWS_ACCESS_KEY_ID'] ?? '',
  secretAccessKey: env['AWS_SECRET_ACCESS_KEY'] ?? '',
};
const store = await openObjectStore(uri, {
  clock: systemClock,
  prng: systemPrng,
  ids: systemIds,
  metrics: noMetrics,
  settings: resolveSettings(objectSettings, {
    's3.endpoint': s3.endpoint,
    's3.region': s3.region,
    's3.access.key.id': s3.accessKeyId,
    's3.secret.access.key': s3.secretAccessKey,
  }),
});
const logger = createLogger('warn');
const settings = resolveSettings(catalogSettings, {
  'catalog.vend.credentials': 'true',
  // The kit takes a metadata file away and wants that to be noticed.
  ...(prefix === '' ? { 'catalog.metadata.cache.bytes': '0' } : {}),
});
const metadata = openSqliteMetadata(':memory:').catalog;
const catalog = new EmbeddedCatalog({
  metadata,
  warehouse: new Warehouse(store, prefix),
  clock: systemClock,
  ids: systemIds,
  logger,
  settings,
});
const app = createCatalogServer({
  catalog,
  s3: { ...s3, pathStyle: true, sessionToken: '' },
  settings,
  logger,
  metrics: noMetrics,
  tokens: new CatalogTokens({
    metadata,
    clock: systemClock,
    ids: systemIds,
    lifetimeMs: settings['catalog.token.lifetime.ms'],
  }),
});
const sqlSettings = resolveSettings(querySettings, {});
const service = await openQueries({
  catalog,
  warehouse: catalog.warehouse,
  dataDir: mkdtempSync(join(tmpdir(), 'floe-sql-')),
  settings: sqlSettings,
  clock: systemClock,
  metrics: noMetrics,
});
void app.register(async (scope) =>
  sqlRoutes(scope, {
    service,
    settings: sqlSettings,
    logger,
    metrics: noMetrics,
    clock: systemClock,
  }),
);
const address = await app.listen({ host: '127.0.0.1', port: Number(port) });
process.stdout.write(`catalog ${address}\n`);
process.once('SIGTERM', () => void app.close().then(() => process.exit(0)));
