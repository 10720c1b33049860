// Contract of `CatalogMetadata`, for every store. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CatalogMetadata } from '../catalog.ts';
import type { OpenStore, StoreUnderTest } from './store.ts';

/** Runs the suite on stores that `open` makes. */
export function catalogContract(name: string, open: OpenStore): void {
  describe(`catalog contract: ${name}`, () => {
    let store: StoreUnderTest;
    let catalog: CatalogMetadata;
    const t = { kind: 'table', namespace: 'a', name: 't' } as const;

    afterEach(() => store.close());
    beforeEach(async () => {
      store = await open();
      ({ catalog } = store.metadata);
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
        kind: 'table' as const,
        namespace: 'a',
        name,
        from,
        to,
      });
      await catalog.movePointers([move('t', undefined, 'm0'), move('u', undefined, 'n0')]);
      await expect(catalog.movePointers([move('t', undefined, 'mx')])).rejects.toMatchObject({
        code: 'conflict',
      });
      await expect(
        catalog.movePointers([move('t', 'm0', 'm1'), move('u', 'stale', 'n1')]),
      ).rejects.toMatchObject({ details: { reason: 'moved' } });
      expect((await catalog.pointer('a', 't'))!.metadataLocation).toBe('m0');
      await catalog.movePointers([move('t', 'm0', 'm1'), move('u', 'n0', 'n1')]);
      expect(await catalog.listPointers('table', 'a', { after: 't', limit: 5 })).toEqual(['u']);
      await expect(catalog.movePointers([move('gone', 'x', 'y')])).rejects.toMatchObject({
        code: 'not-found',
      });
    });

    test('rename keeps the pointer; a taken name or missing namespace leaves all as it was', async () => {
      await catalog.movePointers([
        { ...t, from: undefined, to: 'm' },
        { ...t, name: 'taken', from: undefined, to: 'n' },
      ]);
      await expect(catalog.renamePointer(t, { ...t, name: 'taken' })).rejects.toThrow(/exists/);
      await expect(catalog.renamePointer(t, { ...t, namespace: 'z' })).rejects.toThrow(/: z/);
      await catalog.renamePointer(t, { ...t, name: 'v' });
      expect(await catalog.pointer('a', 't')).toBeUndefined();
      expect(await catalog.dropPointer({ ...t, name: 'v' })).toMatchObject({
        metadataLocation: 'm',
      });
    });

    test('tables and views share names; each is found, listed and dropped as what it is', async () => {
      const v = { kind: 'view', namespace: 'a', name: 'v' } as const;
      await catalog.movePointers([
        { ...t, from: undefined, to: 'm' },
        { ...v, from: undefined, to: 'n' },
      ]);
      for (const [wanted, text] of [
        [{ ...v, name: 't' }, /^Table with same name already exists: a\.t$/],
        [{ ...t, name: 'v' }, /^View with same name already exists: a\.v$/],
      ] as const)
        await expect(
          catalog.movePointers([{ ...wanted, from: undefined, to: 'x' }]),
        ).rejects.toThrow(text);
      expect(await catalog.listPointers('view', 'a')).toEqual(['v']);
      expect(await catalog.listPointers('table', 'a')).toEqual(['t']);
      await expect(catalog.dropPointer({ ...v, kind: 'table' })).rejects.toMatchObject({
        code: 'not-found',
        details: { thing: 'table' },
      });
      await expect(
        catalog.movePointers([{ ...t, kind: 'view', from: 'm', to: 'x' }]),
      ).rejects.toThrow(/^View does not exist/);
      await expect(catalog.dropNamespace('a')).rejects.toMatchObject({
        details: { reason: 'not-empty' },
      });
      expect(await catalog.dropPointer(v)).toMatchObject({ metadataLocation: 'n' });
    });

    test('a secret is made once', async () => {
      expect(await catalog.secret('tokens', 'first')).toBe('first');
      expect(await catalog.secret('tokens', 'second')).toBe('first');
    });
  });
}
