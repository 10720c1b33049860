import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { seededIds, seededPrng } from '../base/prng.ts';
import { resolveSettings } from '../base/settings.ts';
import { parseViewMetadata, type Schema, type ViewVersion } from '../formats/iceberg/index.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import { MemoryObjectStore } from '../storage/objects/memory.ts';
import { EmbeddedCatalog } from './embedded.ts';
import { catalogSettings } from './settings.ts';
import { Warehouse } from './warehouse.ts';

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [{ id: 1, name: 'id', required: false, type: 'long' }],
};
const wider: Schema = {
  ...schema,
  fields: [...schema.fields, { id: 2, name: 'n', required: false, type: 'string' }],
};
const v = { namespace: ['n'], name: 'v' };

function version(id: number, sql: string, ...dialects: string[]): ViewVersion {
  return {
    'version-id': id,
    'timestamp-ms': 1_000 + id,
    'schema-id': 0,
    summary: { engine: 'test' },
    representations: (dialects.length === 0 ? ['spark'] : dialects).map((dialect) => ({
      type: 'sql',
      sql,
      dialect,
    })),
    'default-namespace': ['n'],
  };
}

const replace = (next: ViewVersion) => ({
  requirements: [],
  updates: [
    { action: 'add-view-version', 'view-version': next },
    { action: 'set-current-view-version', 'view-version-id': -1 },
  ],
});

let catalog: EmbeddedCatalog;
let store: MemoryObjectStore;

beforeEach(async () => {
  const clock = new ManualClock();
  store = new MemoryObjectStore(clock);
  catalog = new EmbeddedCatalog({
    metadata: openSqliteMetadata(':memory:').catalog,
    warehouse: new Warehouse(store, 'w/'),
    clock,
    ids: seededIds(seededPrng(4)),
    logger: silentLogger,
    settings: resolveSettings(catalogSettings, {}),
  });
  await catalog.createNamespace(['n']);
});

const create = (name = 'v', properties: Readonly<Record<string, string>> = {}) =>
  catalog.views.create(['n'], { name, schema, version: version(1, 'select 1'), properties });

async function files(): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of store.list('')) found.push(key);
  return found;
}

test('a view is created, loaded from its file, listed, renamed, dropped, registered again', async () => {
  const created = await create();
  expect(created.metadata).toMatchObject({
    'current-version-id': 1,
    'version-log': [{ 'version-id': 1, 'timestamp-ms': 1_001 }],
  });
  const bytes = await catalog.warehouse.read(created.location);
  expect(parseViewMetadata(new TextDecoder().decode(bytes))).toEqual(created.metadata);
  expect(await catalog.views.list(['n'])).toEqual([v]);
  expect(await catalog.listTables(['n'])).toEqual([]);
  await catalog.views.rename(v, { ...v, name: 'w' });
  await expect(catalog.views.load(v)).rejects.toThrow('View does not exist: n.v');
  expect((await catalog.views.load({ ...v, name: 'w' })).metadata).toEqual(created.metadata);
  await catalog.views.drop({ ...v, name: 'w' });
  expect(await catalog.views.exists({ ...v, name: 'w' })).toBe(false);
  expect((await catalog.views.register(v, created.location)).metadata).toEqual(created.metadata);
});

test('tables and views keep each other’s names free', async () => {
  await create();
  await catalog.createTable(['n'], { name: 't', schema });
  await expect(catalog.createTable(['n'], { name: 'v', schema })).rejects.toThrow(
    'View with same name already exists: n.v',
  );
  await expect(create('t')).rejects.toThrow('Table with same name already exists: n.t');
  await expect(create()).rejects.toThrow('View already exists: n.v');
  await expect(catalog.views.rename(v, { ...v, name: 't' })).rejects.toMatchObject({
    code: 'conflict',
    message: 'Cannot rename n.v to n.t. Table already exists',
  });
  await expect(catalog.loadTable(v)).rejects.toMatchObject({ code: 'not-found' });
  await expect(catalog.dropTable(v, { purge: true })).rejects.toMatchObject({ code: 'not-found' });
  await expect(catalog.dropNamespace(['n'])).rejects.toMatchObject({ code: 'conflict' });
  await expect(
    catalog.views.create(['m'], { name: 'v', schema, version: version(1, ''), properties: {} }),
  ).rejects.toMatchObject({ code: 'not-found' });
});

test('a replaced view keeps its history; an equal version or schema is used again', async () => {
  await create();
  await catalog.views.commit(v, replace(version(9, 'select 2')));
  const back = await catalog.views.commit(v, replace(version(3, 'select 1')));
  expect(back.metadata.versions.map((one) => one['version-id'])).toEqual([1, 9]);
  expect(back.metadata['current-version-id']).toBe(1);
  expect(back.metadata['version-log'].map((one) => one['version-id'])).toEqual([1, 9, 1]);
  const { metadata } = await catalog.views.commit(v, {
    requirements: [{ type: 'assert-view-uuid', uuid: back.metadata['view-uuid'] }],
    updates: [
      { action: 'add-schema', schema: wider },
      {
        action: 'add-view-version',
        'view-version': { ...version(4, 'select 3'), 'schema-id': -1 },
      },
      { action: 'set-current-view-version', 'view-version-id': -1 },
      { action: 'set-properties', updates: { a: 'b', c: 'd' } },
      { action: 'remove-properties', removals: ['c', 'never'] },
    ],
  });
  expect(metadata).toMatchObject({ 'current-version-id': 10, properties: { a: 'b' } });
  expect(metadata.versions.at(-1)).toMatchObject({ 'schema-id': 1 });
});

test('old versions expire by the view’s property, never the current one', async () => {
  await create('v', { 'version.history.num-entries': '2' });
  for (const id of [2, 3, 4]) await catalog.views.commit(v, replace(version(id, `select ${id}`)));
  const { metadata } = await catalog.views.load(v);
  expect(metadata.versions.map((one) => one['version-id'])).toEqual([3, 4]);
  expect(metadata['version-log'].map((one) => one['version-id'])).toEqual([3, 4]);
  const old = await catalog.views.commit(v, {
    requirements: [],
    updates: [{ action: 'set-current-view-version', 'view-version-id': 3 }],
  });
  expect(old.metadata['current-version-id']).toBe(3);
});

test.each([
  ['another uuid', 'conflict', { requirements: [{ type: 'assert-view-uuid', uuid: 'x' }] }],
  ['an unknown requirement', 'invalid', { requirements: [{ type: 'assert-table-uuid' }] }],
  ['an unknown update', 'invalid', { updates: [{ action: 'add-snapshot' }] }],
  ['an unknown version', 'invalid', replaceWith(7)],
  ['a dialect twice', 'invalid', replace(version(2, 'x', 'spark', 'Spark'))],
  ['a dialect lost', 'invalid', replace(version(2, 'x', 'trino'))],
  ['an unknown schema', 'invalid', replace({ ...version(2, 'x'), 'schema-id': 5 })],
  [
    'a location elsewhere',
    'invalid',
    { updates: [{ action: 'set-location', location: 's3://x/y' }] },
  ],
  ['no history', 'invalid', setProperty('version.history.num-entries', '0')],
] as const)('a commit with %s is refused and changes nothing', async (_what, code, commit) => {
  const { metadata } = await create();
  const before = await files();
  const request = { requirements: [], updates: [], ...commit };
  await expect(catalog.views.commit(v, request)).rejects.toMatchObject({ code });
  expect((await catalog.views.load(v)).metadata).toEqual(metadata);
  expect(await files()).toEqual(before);
});

function replaceWith(id: number) {
  return { updates: [{ action: 'set-current-view-version', 'view-version-id': id }] };
}

function setProperty(name: string, value: string) {
  return { updates: [{ action: 'set-properties', updates: { [name]: value } }] };
}

test('commits at once all land; a registered file is a view again', async () => {
  await create();
  const commits = [2, 3, 4, 5].map((id) =>
    catalog.views.commit(v, replace(version(id, `select ${id}`))),
  );
  await Promise.all(commits);
  const { metadata, location } = await catalog.views.load(v);
  expect(metadata.versions).toHaveLength(5);
  const again = await catalog.views.register({ ...v, name: 'again' }, location);
  expect(again.metadata).toEqual(metadata);
  await expect(
    catalog.views.register({ ...v, name: 'x' }, 'memory://floe/elsewhere/v1.metadata.json'),
  ).rejects.toMatchObject({ code: 'invalid' });
});
