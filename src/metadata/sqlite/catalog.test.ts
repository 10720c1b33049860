import { beforeEach, expect, test } from 'vitest';
import { catalogMigrations, SqliteCatalog } from './catalog.ts';
import { Database } from './database.ts';

let catalog: SqliteCatalog;

beforeEach(async () => {
  catalog = new SqliteCatalog(new Database(':memory:', catalogMigrations));
  await catalog.createNamespace('a', { owner: 'x' });
});

test('namespaces: nested, listed level by level, dropped only when empty', async () => {
  await expect(catalog.createNamespace('a', {})).rejects.toMatchObject({ code: 'conflict' });
  await expect(catalog.createNamespace('b\u001fc', {})).rejects.toMatchObject({
    code: 'not-found',
    details: { thing: 'namespace' },
  });
  await catalog.createNamespace('a\u001fb', {});
  await catalog.createNamespace('a\u001fb\u001fc', {});
  expect(await catalog.listNamespaces('')).toEqual(['a']);
  expect(await catalog.listNamespaces('a')).toEqual(['a\u001fb']);
  await expect(catalog.dropNamespace('a')).rejects.toMatchObject({
    details: { reason: 'not-empty' },
  });
  await catalog.dropNamespace('a\u001fb\u001fc');
  await catalog.dropNamespace('a\u001fb');
  await catalog.dropNamespace('a');
  expect(await catalog.namespaceProperties('a')).toBeUndefined();
});

test('properties change set-wise and say what was missing', async () => {
  const missing = await catalog.alterNamespace('a', {
    updates: { ['__proto__']: 'p', n: '1' },
    removals: ['owner', 'never'],
  });
  expect(missing).toEqual(['never']);
  const properties = await catalog.namespaceProperties('a');
  expect(Object.entries(properties!)).toEqual([
    ['__proto__', 'p'],
    ['n', '1'],
  ]);
});

test('a pointer moves only from where it was seen, and many move together or not at all', async () => {
  const move = (name: string, from: string | undefined, to: string) => ({
    namespace: 'a',
    name,
    from,
    to,
  });
  await catalog.moveTables([move('t', undefined, 'm0'), move('u', undefined, 'n0')]);
  await expect(catalog.moveTables([move('t', undefined, 'mx')])).rejects.toMatchObject({
    code: 'conflict',
  });
  await expect(
    catalog.moveTables([move('t', 'm0', 'm1'), move('u', 'stale', 'n1')]),
  ).rejects.toMatchObject({ details: { reason: 'moved' } });
  expect((await catalog.table('a', 't'))!.metadataLocation).toBe('m0');
  await catalog.moveTables([move('t', 'm0', 'm1'), move('u', 'n0', 'n1')]);
  expect(await catalog.listTables('a', { after: 't', limit: 5 })).toEqual(['u']);
  await expect(catalog.moveTables([move('gone', 'x', 'y')])).rejects.toMatchObject({
    code: 'not-found',
  });
});

test('rename keeps the pointer; a taken name or missing namespace leaves all as it was', async () => {
  await catalog.moveTables([
    { namespace: 'a', name: 't', from: undefined, to: 'm' },
    { namespace: 'a', name: 'taken', from: undefined, to: 'n' },
  ]);
  const t = { namespace: 'a', name: 't' };
  await expect(catalog.renameTable(t, { namespace: 'a', name: 'taken' })).rejects.toThrow(/exists/);
  await expect(catalog.renameTable(t, { namespace: 'z', name: 't' })).rejects.toThrow(/: z/);
  await catalog.renameTable(t, { namespace: 'a', name: 'v' });
  expect(await catalog.table('a', 't')).toBeUndefined();
  expect(await catalog.dropTable('a', 'v')).toMatchObject({ metadataLocation: 'm' });
});
