// The files of a table: all there, each of them gone or short, a commit between two looks, a table that is dropped meanwhile.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { EmbeddedCatalog, type TableIdentifier, Warehouse } from '../../catalog/index.ts';
import { currentSnapshot, newSnapshotId, prepareAppend } from '../../formats/iceberg/index.ts';
import { NO_METRICS, TEST_SCHEMA } from '../../formats/iceberg/test-table.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { MemoryObjectStore } from '../../storage/objects/memory.ts';
import { serverSettings } from '../settings.ts';
import { checkTables } from './tables.ts';

const ORDERS: TableIdentifier = { namespace: ['kafka'], name: 'orders' };
const clock = new ManualClock();
const ids = seededIds(seededPrng(1));

let metadata: SqliteMetadata;
let store: MemoryObjectStore;
let warehouse: Warehouse;
let catalog: EmbeddedCatalog;

beforeEach(async () => {
  metadata = openSqliteMetadata(':memory:');
  store = new MemoryObjectStore(clock);
  warehouse = new Warehouse(store, 'warehouse/');
  catalog = open();
  await catalog.ensureNamespace(ORDERS.namespace);
  await catalog.createTable(ORDERS.namespace, { name: ORDERS.name, schema: TEST_SCHEMA });
  await append('a');
  await append('b');
});

afterEach(() => metadata.close());

/** As another process has it, which has read nothing yet. */
function open(): EmbeddedCatalog {
  const settings = resolveSettings(serverSettings, {});
  const options = { clock, prng: seededPrng(1), ids, logger: silentLogger, settings };
  const { catalog: pointers } = metadata;
  return new EmbeddedCatalog({ ...options, metadata: pointers, warehouse });
}

/** One data file more, of ten bytes. */
async function append(name: string): Promise<void> {
  const { metadata: table } = await catalog.loadTable(ORDERS);
  const filePath = `${table.location}/data/${name}.parquet`;
  await warehouse.write(filePath, new Uint8Array(10));
  const prepared = await prepareAppend({
    metadata: table,
    io: warehouse,
    snapshotId: newSnapshotId(ids, table),
    commitUuid: ids.uuid(),
    nowMs: clock.now(),
    added: [
      {
        content: 0,
        filePath,
        fileFormat: 'PARQUET',
        specId: 0,
        partition: [],
        recordCount: 1,
        fileSizeInBytes: 10,
        metrics: NO_METRICS,
      },
    ],
    summary: {},
  });
  for (const { path, bytes } of prepared.objects) await warehouse.write(path, bytes);
  await catalog.commitTable(ORDERS, prepared);
}

async function check(pause: () => Promise<void> = async () => {}) {
  async function* tables() {
    yield ORDERS;
  }
  return checkTables({ catalog: open(), warehouse, tables: tables(), pause });
}

async function keyOf(end: string): Promise<string> {
  for await (const { key } of store.list('')) if (key.includes(end)) return key;
  throw new Error(`no ${end}`);
}

async function broken(): Promise<readonly string[]> {
  return (await check()).broken.first;
}

test('all there: metadata, list, manifests, data', async () => {
  expect(await check()).toMatchObject({ tables: 1, files: 6, broken: { count: 0 } });
});

test('a data file that is gone, or shorter than its manifest says', async () => {
  await store.delete([await keyOf('/a.parquet')]);
  await store.put(await keyOf('/b.parquet'), new Uint8Array(9));
  const [gone, short] = await broken();
  expect(gone).toMatch(/^kafka\.orders: memory:.*\/a\.parquet: missing$/);
  expect(short).toMatch(/^kafka\.orders: memory:.*\/b\.parquet: 9 bytes of 10$/);
});

test('a manifest, the manifest list, the metadata file', async () => {
  const { metadata: table, metadataLocation } = await catalog.loadTable(ORDERS);
  const list = currentSnapshot(table)!['manifest-list'];
  const content = await warehouse.read(list);
  await store.put(warehouse.keyOf(list), Buffer.from('no avro'));
  expect(await broken()).toEqual([expect.stringContaining(list)]);
  await store.delete([warehouse.keyOf(list)]);
  expect(await broken()).toEqual([`kafka.orders: ${list}: missing`]);
  await store.put(warehouse.keyOf(list), content);
  expect(await broken()).toEqual([]);
  await store.delete([await keyOf('-m0.avro')]);
  expect(await broken()).toEqual([expect.stringMatching(/-m0\.avro: missing$/)]);
  await store.delete([warehouse.keyOf(metadataLocation)]);
  expect(await broken()).toEqual([expect.stringMatching(/^kafka\.orders: metadata file: /)]);
});

test('what a commit put back, or took away with the table, is no finding', async () => {
  const key = await keyOf('/a.parquet');
  const content = await store.get(key);
  await store.delete([key]);
  const back = async () => {
    await append('c');
    await store.put(key, content);
  };
  expect(await check(back)).toMatchObject({ broken: { count: 0 } });
  await store.delete([key]);
  const dropped = await check(() => catalog.dropTable(ORDERS, { purge: true }).then(() => {}));
  expect(dropped).toMatchObject({ tables: 0, broken: { count: 0 } });
});

test('a file that stays lost while the table changes is told', async () => {
  await store.delete([await keyOf('/a.parquet')]);
  let n = 0;
  const found = await check(() => append(`later-${(n += 1)}`));
  expect(found.broken.first).toEqual([expect.stringMatching(/a\.parquet: missing$/)]);
  expect(n).toBeLessThan(10);
});
