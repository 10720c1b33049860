// Contract of `RegistryMetadata`, for every store. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SchemaContent } from '../registry.ts';
import type { OpenStore, StoreUnderTest } from './store.ts';

const content = (schema: string, references: SchemaContent['references'] = []): SchemaContent => ({
  type: 'AVRO',
  schema,
  references,
  contract: '',
  guid: `guid-of-${schema}`,
});

/** The default context, nothing referred to. */
const HERE = { context: '.', targets: [] };

/** Runs the suite on stores that `open` makes. */
export function registryContract(name: string, open: OpenStore): void {
  describe(`registry contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    test('one content, one id; versions count on per subject', async () => {
      const { registry } = store.metadata;
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
      expect(await registry.subject('a')).toMatchObject({
        stamp: 2,
        versions: [{ id: 1 }, { id: 2 }],
      });
    });

    test('a stale stamp is a conflict', async () => {
      const { registry } = store.metadata;
      await registry.addVersion({ subject: 'a', ...HERE, stamp: 0, content: content('"int"') });
      await expect(
        registry.addVersion({ subject: 'a', ...HERE, stamp: 0, content: content('"long"') }),
      ).rejects.toMatchObject({ code: 'conflict' });
      expect(await registry.counts()).toEqual({ schemas: 1, versions: 1 });
    });

    test('an id or version number is never given twice', async () => {
      const { registry } = store.metadata;
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
    });

    test('references hold their target while they live', async () => {
      const { registry } = store.metadata;
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
      await expect(registry.deleteVersions(remove)).rejects.toMatchObject({
        details: { version: 1 },
      });
      await registry.deleteVersions({ subject: 'b', stamp: 1, versions: [1], permanent: false });
      await registry.deleteVersions(remove);
      expect(await registry.subjects({ prefix: '', deleted: false })).toEqual([]);
      expect(await registry.subjects({ prefix: 'b', deleted: true })).toEqual([
        { subject: 'b', allDeleted: true },
      ]);
    });

    test('imports keep foreign ids and refuse to overwrite', async () => {
      const { registry } = store.metadata;
      const given = {
        subject: 'a',
        ...HERE,
        stamp: 0,
        content: content('"int"'),
        id: 500,
        version: 7,
      };
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
    });

    test('each context counts its own ids', async () => {
      const { registry } = store.metadata;
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
    });

    test('settings return what they replace', async () => {
      const { registry } = store.metadata;
      expect(await registry.setSetting('mode', '', 'READONLY')).toBeUndefined();
      expect(await registry.setSetting('mode', '', null)).toBe('READONLY');
      expect(await registry.setting('mode', '')).toBeUndefined();
    });
  });
}
