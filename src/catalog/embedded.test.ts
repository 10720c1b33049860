import { beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import { silentLogger } from '../base/log.ts';
import { seededIds, seededPrng } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import { parseTableMetadata, type Schema } from '../formats/iceberg/index.ts';
import type { CatalogMetadata } from '../metadata/catalog.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import { MemoryObjectStore } from '../storage/objects/memory.ts';
import { catalogContract } from './contract.ts';
import { EmbeddedCatalog } from './embedded.ts';
import { catalogSettings } from './settings.ts';
import { Warehouse } from './warehouse.ts';

function make(wrap: (pointers: CatalogMetadata) => CatalogMetadata = (pointers) => pointers) {
  const clock = new ManualClock();
  const store = new MemoryObjectStore(clock);
  const warehouse = new Warehouse(store, 'warehouse/');
  const catalog = new EmbeddedCatalog({
    metadata: wrap(openSqliteMetadata(':memory:').catalog),
    warehouse,
    clock,
    ids: seededIds(seededPrng(5)),
    logger: silentLogger,
    settings: resolveSettings(catalogSettings, {}),
  });
  const badTables = ['', 'a\u0000b', 'x'.repeat(600)].map((name) => ({
    identifier: { namespace: ['kafka'], name },
    partitionSources: [],
  }));
  return { store, warehouse, catalog, files: warehouse, badTables };
}

describe('contract', () => catalogContract('embedded', async () => make()));

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [{ id: 1, name: 'id', required: false, type: 'long' }],
};
const t = { namespace: ['kafka'], name: 't' };
const setA = { requirements: [], updates: [{ action: 'set-properties', updates: { a: 'b' } }] };

async function keys(store: MemoryObjectStore): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of store.list('')) found.push(key);
  return found;
}

describe('metadata files', () => {
  test('are named by version, hold the table, and know the one before', async () => {
    const { catalog, warehouse } = make();
    await catalog.ensureNamespace(['kafka']);
    const created = await catalog.createTable(['kafka'], { name: 't', schema });
    expect(created.metadataLocation).toMatch(
      /^memory:\/\/floe\/warehouse\/kafka\/t-[0-9a-f]{12}\/metadata\/00000-[0-9a-f-]{36}\.metadata\.json$/,
    );
    const committed = await catalog.commitTable(t, setA);
    expect(committed.metadataLocation).toMatch(/\/00001-/);
    const bytes = await warehouse.read(committed.metadataLocation);
    const stored = parseTableMetadata(new TextDecoder().decode(bytes));
    expect(stored).toEqual(committed.metadata);
    expect(stored['metadata-log']).toMatchObject([{ 'metadata-file': created.metadataLocation }]);
  });

  test('that leave the log are deleted where the table asks for it', async () => {
    const { catalog, store } = make();
    await catalog.ensureNamespace(['kafka']);
    const properties = {
      'write.metadata.previous-versions-max': '2',
      'write.metadata.delete-after-commit.enabled': 'true',
    };
    await catalog.createTable(['kafka'], { name: 't', schema, properties });
    for (let n = 0; n < 5; n += 1) await catalog.commitTable(t, setA);
    expect(await keys(store)).toHaveLength(3);
  });
});

describe('a commit whose pointer did not move', () => {
  const failing = (error: FloeError) =>
    make((pointers) => {
      let calls = 0;
      return new Proxy(pointers, {
        get(target, property) {
          const value = Reflect.get(target, property) as unknown;
          if (typeof value !== 'function') return value;
          return async (...args: unknown[]) => {
            // The first move creates the table.
            if (property === 'movePointers' && ++calls > 1) throw error;
            return Reflect.apply(value as () => unknown, target, args);
          };
        },
      });
    });

  test('leaves no file when that is certain', async () => {
    const { catalog, store } = failing(
      new FloeError('conflict', 'moved', { details: { thing: 'table', reason: 'moved' } }),
    );
    await catalog.ensureNamespace(['kafka']);
    await catalog.createTable(['kafka'], { name: 't', schema });
    await expect(catalog.commitTable(t, setA)).rejects.toMatchObject({ code: 'conflict' });
    expect(await keys(store)).toHaveLength(1);
  });

  test('keeps its file when nobody knows (T5)', async () => {
    const { catalog, store } = failing(new FloeError('timeout', 'no answer'));
    await catalog.ensureNamespace(['kafka']);
    await catalog.createTable(['kafka'], { name: 't', schema });
    await expect(catalog.commitTable(t, setA)).rejects.toMatchObject({ code: 'timeout' });
    expect(await keys(store)).toHaveLength(2);
  });
});

describe('several tables, locations, purge', () => {
  let made: ReturnType<typeof make>;
  beforeEach(async () => {
    made = make();
    await made.catalog.ensureNamespace(['kafka']);
    await made.catalog.createTable(['kafka'], { name: 't', schema });
    await made.catalog.createTable(['kafka'], { name: 'u', schema });
  });

  test('a commit over tables is all or nothing and leaves no stray file', async () => {
    const { catalog, store } = made;
    const before = await keys(store);
    const bad = { type: 'assert-table-uuid', uuid: 'another' };
    await expect(
      catalog.commitTables([
        { ...setA, identifier: t },
        { ...setA, identifier: { ...t, name: 'u' }, requirements: [bad] },
      ]),
    ).rejects.toMatchObject({ code: 'conflict' });
    expect((await catalog.loadTable(t)).metadata.properties).toEqual({});
    expect(await keys(store)).toEqual(before);
  });

  test.each([
    'memory://floe/elsewhere/t',
    'memory://floe/warehouse/../secret',
    's3://other/t',
    'relative/path',
    'file:///etc',
  ])('a location outside the warehouse is refused: %s', async (location) => {
    await expect(
      made.catalog.createTable(['kafka'], { name: 'x', schema, location }),
    ).rejects.toMatchObject({ code: 'invalid' });
    const move = { requirements: [], updates: [{ action: 'set-location', location }] };
    await expect(made.catalog.commitTable(t, move)).rejects.toMatchObject({ code: 'invalid' });
    await expect(
      made.catalog.registerTable({ ...t, name: 'x' }, `${location}/00000-x.metadata.json`),
    ).rejects.toMatchObject({ code: 'invalid' });
  });

  test('purge deletes what is the table’s and nothing else', async () => {
    const { catalog, warehouse, store } = made;
    const { metadata } = await catalog.loadTable(t);
    await warehouse.write(`${metadata.location}/data/left-over.parquet`, Uint8Array.of(1));
    const other = (await keys(store)).filter((key) => key.includes('/u-'));
    await catalog.dropTable(t, { purge: true });
    expect(await keys(store)).toEqual(other);
  });
});
