// Commits a second of the embedded catalog: writers on as many tables, each loading its table and appending one snapshot
// at a time, in the process itself and over HTTP. Metadata in SQLite on disk, files in a local folder: all is synced.
//   node bench/catalog.ts [TABLES=10] [COMMITS_PER_TABLE=200]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { systemClock } from '../src/base/clock.ts';
import { silentLogger } from '../src/base/log.ts';
import { noMetrics } from '../src/base/metrics.ts';
import { systemIds, systemPrng } from '../src/base/prng.ts';
import { resolveSettings } from '../src/base/settings.ts';
import {
  type Catalog,
  CatalogTokens,
  catalogSettings,
  createCatalogServer,
  EmbeddedCatalog,
  openCatalog,
  Warehouse,
} from '../src/catalog/index.ts';
import { newSnapshotId, type Schema } from '../src/formats/iceberg/index.ts';
import { openSqliteMetadata } from '../src/metadata/sqlite/index.ts';
import { objectSettings, openObjectStore } from '../src/storage/objects/index.ts';

const [tables = 10, commits = 200] = process.argv.slice(2).map(Number);
const COLUMNS = 30;
const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: Array.from({ length: COLUMNS }, (_, n) => ({
    id: n + 1,
    name: `column_${n}`,
    required: false,
    type: 'string',
  })),
};

/** Loads and commits, as a table topic does; the snapshot's files are left out, they aren't the catalog's. */
async function write(catalog: Catalog, name: string): Promise<void> {
  const identifier = { namespace: ['bench'], name };
  for (let n = 0; n < commits; n += 1) {
    const { metadata } = await catalog.loadTable(identifier);
    const parent = metadata['current-snapshot-id'];
    const id = newSnapshotId(systemIds, metadata);
    await catalog.commitTable(identifier, {
      requirements: [
        { type: 'assert-table-uuid', uuid: metadata['table-uuid'] },
        { type: 'assert-ref-snapshot-id', ref: 'main', 'snapshot-id': parent ?? null },
      ],
      updates: [
        {
          action: 'add-snapshot',
          snapshot: {
            'snapshot-id': id,
            ...(parent === undefined ? {} : { 'parent-snapshot-id': parent }),
            'sequence-number': metadata['last-sequence-number'] + 1,
            'timestamp-ms': systemClock.now(),
            'manifest-list': `${metadata.location}/metadata/snap-${id}.avro`,
            summary: { operation: 'append', 'added-records': '1000', 'total-records': '1000000' },
            'schema-id': 0,
          },
        },
        { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': id },
        { action: 'set-properties', updates: { 'floe.watermark': `{"n":${n}}` } },
      ],
    });
  }
}

async function measure(way: string, catalog: Catalog): Promise<void> {
  await catalog.ensureNamespace(['bench']);
  const names = Array.from({ length: tables }, (_, n) => `${way}_${n}`);
  const properties = { 'write.metadata.delete-after-commit.enabled': 'true' };
  for (const name of names) await catalog.createTable(['bench'], { name, schema, properties });
  const cpu = process.cpuUsage();
  const from = systemClock.monotonic();
  await Promise.all(names.map((name) => write(catalog, name)));
  const seconds = (systemClock.monotonic() - from) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  const row = {
    suite: 'catalog',
    way,
    tables,
    snapshots: commits,
    commitsPerSecond: Math.round((tables * commits) / seconds),
    cpuMsPerCommit: Number(((user + system) / 1000 / (tables * commits)).toFixed(2)),
  };
  process.stdout.write(`${JSON.stringify(row)}\n`);
}

const folder = mkdtempSync(join(tmpdir(), 'floe-bench-catalog-'));
const settings = {
  ...resolveSettings(catalogSettings, {}),
  ...resolveSettings(objectSettings, {}),
};
const node = {
  settings,
  clock: systemClock,
  prng: systemPrng,
  ids: systemIds,
  logger: silentLogger,
  metrics: noMetrics,
};
const store = await openObjectStore(pathToFileURL(join(folder, 'storage')).href, node);
const metadata = openSqliteMetadata(join(folder, 'metadata.db'));
const embedded = new EmbeddedCatalog({
  ...node,
  metadata: metadata.catalog,
  warehouse: new Warehouse(store),
});
const app = createCatalogServer({
  ...node,
  catalog: embedded,
  s3: {
    endpoint: '',
    region: '',
    pathStyle: true,
    accessKeyId: '',
    secretAccessKey: '',
    sessionToken: '',
  },
  tokens: new CatalogTokens({ ...node, metadata: metadata.catalog, lifetimeMs: 3_600_000 }),
});
const uri = await app.listen({ host: '127.0.0.1', port: 0 });
try {
  await measure('process', embedded);
  const remote = { ...settings, 'catalog.type': 'rest', 'catalog.uri': uri } as typeof settings;
  const { catalog } = await openCatalog({
    ...node,
    settings: { ...remote, 'catalog.storage': store.uri },
    embedded,
    store,
  });
  await measure('http', catalog);
} finally {
  await app.close();
  metadata.close();
  rmSync(folder, { recursive: true, force: true });
}
