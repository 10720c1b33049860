import { afterEach, expect, test } from 'vitest';
import { ManualClock, systemClock } from '../../base/clock.ts';
import { MemoryObjectStore } from './memory.ts';
import { KeyDispenser, type StoreKeys, VendedObjectStore } from './vended.ts';

const keys = (prefix: string, id: string): StoreKeys => ({
  prefix,
  accessKeyId: id,
  secretAccessKey: 's',
  sessionToken: '',
  endpoint: '',
  region: '',
});
const bytes = Uint8Array.of(1, 2, 3);
const stopping: (() => void)[] = [];
afterEach(() => {
  for (const stop of stopping.splice(0)) stop();
});

function open(uri: string) {
  const opened: StoreKeys[] = [];
  const stores = new Map<string, MemoryObjectStore>();
  const store = new VendedObjectStore({
    uri,
    clock: systemClock,
    open(one) {
      opened.push(one);
      const made = stores.get(one.prefix) ?? new MemoryObjectStore(new ManualClock());
      stores.set(one.prefix, made);
      return made;
    },
  });
  stopping.push(() => store.close());
  return { store, opened, stores };
}

function dispense(uri: string): KeyDispenser {
  const dispenser = new KeyDispenser(uri);
  stopping.push(() => dispenser.stop());
  return dispenser;
}

test('each object is reached with the keys of its longest prefix', async () => {
  const { store, stores } = open('s3://one');
  dispense('s3://one').use([keys('s3://one/', 'wide'), keys('s3://one/t/', 'narrow')]);
  await store.put('t/a', bytes);
  await store.put('u/a', bytes);
  expect(await stores.get('s3://one/t/')!.head('t/a')).toBeDefined();
  expect(await stores.get('s3://one/')!.head('u/a')).toBeDefined();
  expect(await store.get('t/a')).toEqual(bytes);
  await store.delete(['t/a', 'u/a']);
  expect(await store.head('u/a')).toBeUndefined();
  const listed: string[] = [];
  for await (const { key } of store.list('t/')) listed.push(key);
  expect(listed).toEqual([]);
});

test('a store opened later asks for the keys; renewed ones replace the old, equal ones nothing', async () => {
  const dispenser = dispense('s3://two');
  dispenser.use([keys('s3://two/', 'first')]);
  const { store, opened } = open('s3://two');
  await store.put('a', bytes);
  dispenser.use([keys('s3://two/', 'first')]);
  dispenser.use([keys('s3://two/', 'second')]);
  await expect.poll(() => opened.map((one) => one.accessKeyId)).toEqual(['first', 'second']);
  expect(await store.get('a')).toEqual(bytes);
});

test('without keys nothing is reached, and it is said', async () => {
  const { store } = open('s3://three');
  await expect(store.get('a')).rejects.toMatchObject({
    code: 'unauthorized',
    message: expect.stringContaining('no keys to s3://three/a'),
  });
});
