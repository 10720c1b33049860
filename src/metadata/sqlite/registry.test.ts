import { expect, test } from 'vitest';
import type { SchemaContent } from '../registry.ts';
import { Database } from './database.ts';
import { openSqliteMetadata } from './index.ts';
import { registryMigrations } from './registry.ts';

const content = (schema: string, references: SchemaContent['references'] = []): SchemaContent => ({
  type: 'AVRO',
  schema,
  references,
  contract: '',
  guid: `guid-of-${schema}`,
});

/** The default context, nothing referred to. */
const HERE = { context: '.', targets: [] };

test('one content, one id; versions count on per subject', async () => {
  const { registry, close } = openSqliteMetadata(':memory:');
  const int = await registry.addVersion({
    subject: 'a',
    ...HERE,
    stamp: 0,
    content: content('"int"'),
  });
  const same = await registry.addVersion({
    subject: 'b',
    ...HERE,
    stamp: 0,
    content: content('"int"'),
  });
  const long = await registry.addVersion({
    subject: 'a',
    ...HERE,
    stamp: 1,
    content: content('"long"'),
  });
  expect([int, same, long]).toEqual([
    { id: 1, version: 1 },
    { id: 1, version: 1 },
    { id: 2, version: 2 },
  ]);
  expect(await registry.places({ context: '.', id: 1 })).toEqual([
    { subject: 'a', version: 1, deleted: false },
    { subject: 'b', version: 1, deleted: false },
  ]);
  expect(await registry.subject('a')).toMatchObject({ stamp: 2, versions: [{ id: 1 }, { id: 2 }] });
  close();
});

test('a stale stamp is a conflict', async () => {
  const { registry, close } = openSqliteMetadata(':memory:');
  await registry.addVersion({ subject: 'a', ...HERE, stamp: 0, content: content('"int"') });
  await expect(
    registry.addVersion({ subject: 'a', ...HERE, stamp: 0, content: content('"long"') }),
  ).rejects.toMatchObject({ code: 'conflict' });
  expect(await registry.counts()).toEqual({ schemas: 1, versions: 1 });
  close();
});

test('an id or version number is never given twice', async () => {
  const { registry, close } = openSqliteMetadata(':memory:');
  await registry.addVersion({ subject: 'a', ...HERE, stamp: 0, content: content('"int"') });
  await registry.addVersion({ subject: 'a', ...HERE, stamp: 1, content: content('"long"') });
  await registry.deleteVersions({ subject: 'a', stamp: 2, versions: [2], permanent: true });
  expect(await registry.schema({ context: '.', id: 2 })).toBeUndefined();
  const next = await registry.addVersion({
    subject: 'a',
    ...HERE,
    stamp: 3,
    content: content('"float"'),
  });
  expect(next).toEqual({ id: 3, version: 3 });
  close();
});

test('references hold their target while they live', async () => {
  const { registry, close } = openSqliteMetadata(':memory:');
  const reference = { name: 'n.A', subject: 'a', version: 1 };
  await expect(
    registry.addVersion({
      subject: 'b',
      ...HERE,
      stamp: 0,
      content: content('"n.A"', [reference]),
      targets: [reference],
    }),
  ).rejects.toMatchObject({ code: 'not-found' });
  await registry.addVersion({ subject: 'a', ...HERE, stamp: 0, content: content('"int"') });
  await registry.addVersion({
    subject: 'b',
    ...HERE,
    stamp: 0,
    content: content('"n.A"', [reference]),
    targets: [reference],
  });
  expect(await registry.referencedBy('a', 1)).toEqual([2]);
  const remove = { subject: 'a', stamp: 1, versions: [1], permanent: false };
  await expect(registry.deleteVersions(remove)).rejects.toMatchObject({ details: { version: 1 } });
  await registry.deleteVersions({ subject: 'b', stamp: 1, versions: [1], permanent: false });
  await registry.deleteVersions(remove);
  expect(await registry.subjects({ prefix: '', deleted: false })).toEqual([]);
  expect(await registry.subjects({ prefix: 'b', deleted: true })).toEqual([
    { subject: 'b', allDeleted: true },
  ]);
  close();
});

test('imports keep foreign ids and refuse to overwrite', async () => {
  const { registry, close } = openSqliteMetadata(':memory:');
  const given = { subject: 'a', ...HERE, stamp: 0, content: content('"int"'), id: 500, version: 7 };
  expect(await registry.addVersion(given)).toEqual({ id: 500, version: 7 });
  await expect(
    registry.addVersion({ ...given, stamp: 1, content: content('"long"') }),
  ).rejects.toMatchObject({ details: { taken: 'id' } });
  const next = await registry.addVersion({
    subject: 'a',
    ...HERE,
    stamp: 1,
    content: content('"long"'),
  });
  expect(next).toEqual({ id: 501, version: 8 });
  close();
});

test('each context counts its own ids', async () => {
  const { registry, close } = openSqliteMetadata(':memory:');
  const there = { subject: ':.b:a', context: '.b', targets: [], stamp: 0 };
  await registry.addVersion({ subject: 'a', ...HERE, stamp: 0, content: content('"int"') });
  await registry.addVersion({ subject: 'a', ...HERE, stamp: 1, content: content('"long"') });
  const first = await registry.addVersion({ ...there, content: content('"long"') });
  expect(first).toEqual({ id: 1, version: 1 });
  expect(await registry.schema({ context: '.b', id: 1 })).toMatchObject({ schema: '"long"' });
  expect(await registry.idsOfGuid('guid-of-"long"')).toEqual([
    { context: '.', id: 2 },
    { context: '.b', id: 1 },
  ]);
  expect(await registry.contexts()).toEqual(['.', '.b']);
  const subjects = (context?: string) =>
    registry.subjects({
      prefix: '',
      deleted: false,
      ...(context === undefined ? {} : { context }),
    });
  expect(await subjects('.b')).toEqual([{ subject: ':.b:a', allDeleted: false }]);
  expect(await subjects()).toHaveLength(2);
  close();
});

test('what was registered before contexts came is in the default one', () => {
  const before = new Database(':memory:', registryMigrations.slice(0, 1));
  before.prepare(`INSERT INTO registry_schemas VALUES (7, 'g', 'AVRO', '"int"', '[]', '')`).run();
  before.prepare(`INSERT INTO registry_versions VALUES ('a', 3, 7, 1)`).run();
  before.prepare(`INSERT INTO registry_references VALUES ('r', 1, 7)`).run();
  before.transaction(() => {
    for (const sql of registryMigrations[1]!.sql.split(/;\n/)) before.prepare(sql).run();
  });
  const all = (table: string) => before.prepare(`SELECT * FROM ${table}`).all();
  expect(all('registry_contexts')).toEqual([{ context: '.', last_id: 7 }]);
  expect(all('registry_places')).toEqual([
    { subject: 'a', version: 3, context: '.', id: 7, deleted: 1 },
  ]);
  expect(all('registry_uses')).toEqual([{ subject: 'r', version: 1, context: '.', by_id: 7 }]);
  before.close();
});

test('settings return what they replace', async () => {
  const { registry, close } = openSqliteMetadata(':memory:');
  expect(await registry.setSetting('mode', '', 'READONLY')).toBeUndefined();
  expect(await registry.setSetting('mode', '', null)).toBe('READONLY');
  expect(await registry.setting('mode', '')).toBeUndefined();
  close();
});
