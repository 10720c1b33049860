// What is kept is what the store has, whatever is written meanwhile; and no more is kept than may be.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { RegistryMetadata } from '../metadata/registry.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import { CachedRegistry } from './cached-store.ts';
import { Recent } from './recent.ts';

const content = (schema: string) => ({
  type: 'AVRO',
  schema,
  references: [],
  contract: '',
  guid: `guid ${schema}`,
});

/** A store that counts its reads, behind the cache. */
function open() {
  const { registry: store, close } = openSqliteMetadata(':memory:');
  const reads: string[] = [];
  const counted = new Proxy(store, {
    get(target, name) {
      const method = Reflect.get(target, name) as (...given: unknown[]) => unknown;
      return (...given: unknown[]) => {
        reads.push(String(name));
        return method.apply(target, given);
      };
    },
  }) as RegistryMetadata;
  return { store, close, reads, cached: new CachedRegistry(counted, 1_000_000) };
}

test('a second look-up reads nothing', async () => {
  const { cached, reads, close } = open();
  const place = { subject: 's', context: '.', stamp: 0, targets: [], content: content('"int"') };
  await cached.addVersion(place);
  for (let round = 0; round < 2; round += 1) {
    reads.length = 0;
    await cached.schema({ context: '.', id: 1 });
    await cached.schemaByGuid('guid "int"');
    await cached.subject('s');
    await cached.settings('config', ['s', '']);
    await cached.setting('mode', 's');
    await cached.contexts();
  }
  expect(reads).toEqual([]);
  close();
});

test('a read that a write overtakes is not kept', async () => {
  const { cached, close } = open();
  const add = (stamp: number, schema: string) =>
    cached.addVersion({ subject: 's', context: '.', stamp, targets: [], content: content(schema) });
  await Promise.all([cached.subject('s'), add(0, '"int"'), cached.subject('s')]);
  expect((await cached.subject('s')).versions).toHaveLength(1);
  await expect(add(0, '"long"')).rejects.toMatchObject({ code: 'conflict' });
  await add(1, '"long"');
  expect((await cached.subject('s')).versions).toHaveLength(2);
  close();
});

test('any order of writes and reads gives what the store gives', async () => {
  const name = fc.constantFrom('a', 'b');
  const step = fc.oneof(
    fc.record({ do: fc.constant('add'), name, schema: fc.constantFrom('1', '2', '3') }),
    fc.record({ do: fc.constant('delete'), name, permanent: fc.boolean() }),
    fc.record({ do: fc.constant('set'), name, value: fc.constantFrom('x', null) }),
    fc.record({ do: fc.constant('look'), name }),
  ) as fc.Arbitrary<{
    do: string;
    name: string;
    schema: string;
    permanent: boolean;
    value: string;
  }>;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { cached, store, close } = open();
      for (const one of steps) {
        const { stamp, versions } = await cached.subject(one.name);
        if (one.do === 'add')
          await cached.addVersion({
            subject: one.name,
            context: '.',
            stamp,
            targets: [],
            content: content(one.schema),
          });
        if (one.do === 'delete')
          await cached.deleteVersions({
            subject: one.name,
            stamp,
            versions: versions.map(({ version }) => version),
            permanent: one.permanent,
          });
        if (one.do === 'set') await cached.setSetting('config', one.name, one.value);
        for (const subject of ['a', 'b']) {
          expect(await cached.subject(subject)).toEqual(await store.subject(subject));
          expect(await cached.setting('config', subject)).toBe(
            await store.setting('config', subject),
          );
        }
        for (const id of [1, 2, 3])
          expect(await cached.schema({ context: '.', id })).toEqual(
            await store.schema({ context: '.', id }),
          );
        expect(await cached.schemaByGuid('guid 1')).toEqual(await store.schemaByGuid('guid 1'));
      }
      close();
    }),
    { numRuns: 30, seed: 11 },
  );
});

test('no more than may be: the least recently used goes', () => {
  const kept = new Recent<number>(10);
  kept.set('a', 1, 4);
  kept.set('b', 2, 4);
  kept.get('a');
  kept.set('c', 3, 4);
  kept.set('huge', 4, 11);
  expect(['a', 'b', 'c', 'huge'].map((key) => kept.get(key))).toEqual([1, undefined, 3, undefined]);
  kept.set('a', 5, 10);
  expect([kept.size, kept.get('a')]).toEqual([1, 5]);
});
