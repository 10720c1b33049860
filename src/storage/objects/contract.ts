// The contract every object store must pass. Each implementation's test only says how to build itself.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ObjectStore } from './object-store.ts';

/** How a suite gets its store; `make` is called once, keys of different tests don't meet. */
export interface ContractSubject {
  readonly name: string;
  make(): Promise<ObjectStore>;
  end?(): Promise<void>;
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
const bytes = (content: string): Uint8Array => Buffer.from(content, 'latin1');

/** Registers the suite's tests. */
export function objectStoreContract(subject: ContractSubject): void {
  describe(`${subject.name} is an object store`, () => {
    let store: ObjectStore;
    beforeAll(async () => {
      store = await subject.make();
    });
    afterAll(() => subject.end?.());
    const use = () => store;
    writing(use);
    reading(use);
    listing(use);
    deleting(use);
    badKeys(use);
  });
}

function writing(use: () => ObjectStore): void {
  test('a put is read back whole, from one body or from parts', async () => {
    await use().put('write/one', bytes('hello'));
    await use().put('write/parts', [bytes('a'), bytes(''), bytes('bc')]);
    await use().put('write/empty', bytes(''));
    expect(text(await use().get('write/one'))).toBe('hello');
    expect(text(await use().get('write/parts'))).toBe('abc');
    expect(await use().get('write/empty')).toHaveLength(0);
  });

  test('shared memory is a body', async () => {
    const shared = new Uint8Array(new SharedArrayBuffer(8), 2, 3);
    shared.set([1, 2, 3]);
    await use().put('write/shared', [shared, shared]);
    expect([...(await use().get('write/shared'))]).toEqual([1, 2, 3, 1, 2, 3]);
  });

  test('a put replaces, unless ifNoneMatch', async () => {
    await use().put('write/twice', bytes('first'));
    await use().put('write/twice', bytes('2nd'));
    expect(text(await use().get('write/twice'))).toBe('2nd');
    await expect(
      use().put('write/twice', bytes('third'), { ifNoneMatch: true }),
    ).rejects.toMatchObject({ code: 'conflict' });
    expect(text(await use().get('write/twice'))).toBe('2nd');
  });

  test('one of many writers with ifNoneMatch wins', async () => {
    for (let round = 0; round < 3; round += 1) {
      const key = `race/${round}`;
      const attempts = await Promise.allSettled(
        Array.from({ length: 8 }, (_, n) => use().put(key, bytes(`w${n}`), { ifNoneMatch: true })),
      );
      const winners = attempts.flatMap(({ status }, n) => (status === 'fulfilled' ? [n] : []));
      expect(winners).toHaveLength(1);
      expect(text(await use().get(key))).toBe(`w${winners[0]}`);
      for (const attempt of attempts) {
        if (attempt.status === 'rejected') expect(attempt.reason.code).toBe('conflict');
      }
    }
  });

  test('a large body in many parts arrives, exclusively where asked', async () => {
    const part = new Uint8Array(5 * 1024 * 1024 + 7).map((_, i) => i * 31);
    const body = [part, part, part, part];
    await use().put('write/large', body, { ifNoneMatch: true });
    expect(await use().head('write/large')).toMatchObject({ size: 4 * part.length });
    const seam = await use().get('write/large', { start: part.length - 2, length: 4 });
    expect([...seam]).toEqual([part.at(-2), part.at(-1), part[0], part[1]]);
    await expect(use().put('write/large', body, { ifNoneMatch: true })).rejects.toMatchObject({
      code: 'conflict',
    });
  });

  test('an aborted signal stops a put before it shows', async () => {
    const signal = AbortSignal.abort();
    await expect(use().put('write/aborted', bytes('x'), { signal })).rejects.toThrow();
    expect(await use().head('write/aborted')).toBeUndefined();
  });
}

function reading(use: () => ObjectStore): void {
  test('ranges are cut at the end', async () => {
    await use().put('range', bytes('0123456789'));
    const get = async (start?: number, length?: number) =>
      text(
        await use().get('range', {
          ...(start === undefined ? {} : { start }),
          ...(length === undefined ? {} : { length }),
        }),
      );
    expect(await get(2, 3)).toBe('234');
    expect(await get(undefined, 4)).toBe('0123');
    expect(await get(7)).toBe('789');
    expect(await get(8, 100)).toBe('89');
    expect(await get(10, 5)).toBe('');
    expect(await get(99, 5)).toBe('');
    expect(await get(3, 0)).toBe('');
  });

  test('bytes land where the caller wants them', async () => {
    await use().put('into', bytes('0123456789'));
    const block = new Uint8Array(new SharedArrayBuffer(6));
    const found = await use().get('into', { start: 7, into: block.subarray(1) });
    expect(text(found)).toBe('789');
    expect(found.buffer).toBe(block.buffer);
    expect([...block.subarray(0, 4)]).toEqual([0, 55, 56, 57]);
    expect(text(await use().get('into', { into: block.subarray(0, 2) }))).toBe('01');
  });

  test('what is missing is said', async () => {
    await expect(use().get('missing/key')).rejects.toMatchObject({ code: 'not-found' });
    await expect(use().get('missing/key', { start: 1, length: 0 })).rejects.toMatchObject({
      code: 'not-found',
    });
    expect(await use().head('missing/key')).toBeUndefined();
    await use().put('folder/key', bytes('x'));
    expect(await use().head('folder')).toBeUndefined();
    await expect(use().get('folder')).rejects.toMatchObject({ code: 'not-found' });
  });

  test('head tells size and time', async () => {
    await use().put('head', bytes('12345'));
    const info = await use().head('head');
    expect(info).toMatchObject({ key: 'head', size: 5 });
    expect(info?.modifiedMs).toBeGreaterThan(1_000_000_000_000);
  });
}

async function keysOf(store: ObjectStore, prefix: string, after?: string): Promise<string[]> {
  const keys: string[] = [];
  const found = store.list(prefix, after === undefined ? {} : { after });
  for await (const info of found) keys.push(info.key);
  return keys;
}

function listing(use: () => ObjectStore): void {
  // In byte order: "-" < "/" < "0" < "a"; a folder sorts by its slash, and U+FF01 before U+1F600.
  const keys = ['l/a-b', 'l/a/1', 'l/a/b/c', 'l/a/b=1', 'l/a0', 'l/ab', 'l/\uff01', 'l/\u{1f600}'];

  test('lists by prefix in byte order', async () => {
    for (const key of keys.toReversed()) await use().put(key, bytes(key));
    expect(await keysOf(use(), 'l/')).toEqual(keys);
    expect(await keysOf(use(), 'l/a/')).toEqual(['l/a/1', 'l/a/b/c', 'l/a/b=1']);
    expect(await keysOf(use(), 'l/a')).toEqual(keys.slice(0, 6));
    expect(await keysOf(use(), 'l/a/b')).toEqual(['l/a/b/c', 'l/a/b=1']);
    expect(await keysOf(use(), 'l/nothing')).toEqual([]);
    expect(await keysOf(use(), 'nothing/at/all/')).toEqual([]);
  });

  test('lists after any key, existing or not', async () => {
    for (const [index, key] of keys.entries()) {
      expect(await keysOf(use(), 'l/', key)).toEqual(keys.slice(index + 1));
    }
    expect(await keysOf(use(), 'l/', 'l/a/b/')).toEqual(keys.slice(2));
    expect(await keysOf(use(), 'l/', 'l/a/a')).toEqual(keys.slice(2));
    expect(await keysOf(use(), 'l/', 'a')).toEqual(keys);
    expect(await keysOf(use(), 'l/', 'm')).toEqual([]);
  });

  test('many keys come whole, with their sizes', async () => {
    const many = Array.from({ length: 25 }, (_, n) => `many/${String(n).padStart(4, '0')}`);
    await Promise.all(many.map((key, n) => use().put(key, new Uint8Array(n))));
    const sizes: number[] = [];
    for await (const { size } of use().list('many/')) sizes.push(size);
    expect(sizes).toEqual(many.map((_, n) => n));
  });
}

function deleting(use: () => ObjectStore): void {
  test('deletes what is there, minds nothing missing, and makes room again', async () => {
    await use().put('delete/deep/1', bytes('1'));
    await use().put('delete/deep/2', bytes('2'));
    await use().delete(['delete/deep/1', 'delete/never']);
    expect(await keysOf(use(), 'delete/')).toEqual(['delete/deep/2']);
    await use().delete(['delete/deep/2']);
    await use().delete([]);
    expect(await keysOf(use(), 'delete')).toEqual([]);
    await use().put('delete/deep/1', bytes('again'), { ifNoneMatch: true });
    expect(text(await use().get('delete/deep/1'))).toBe('again');
  });

  test('puts and deletes in one folder do not hurt each other', async () => {
    const rounds = Array.from({ length: 20 }, (_, n) => `busy/folder/${n}`);
    await Promise.all(
      rounds.map(async (key) => {
        await use().put(key, bytes('x'));
        await use().delete([key]);
      }),
    );
    expect(await keysOf(use(), 'busy/')).toEqual([]);
  });
}

function badKeys(use: () => ObjectStore): void {
  const bad = [
    '',
    '/a',
    'a/',
    'a//b',
    '..',
    '../a',
    'a/../b',
    './a',
    'a\\b',
    'a\u0000b',
    'a\nb',
    '\ud800',
    'x'.repeat(1025),
    `a/${'x'.repeat(256)}`,
    '.floe-tmp/x',
  ];
  test.each(bad)('refuses the key %j', async (key) => {
    const refused = { code: 'invalid' };
    await expect(use().put(key, bytes('x'))).rejects.toMatchObject(refused);
    await expect(use().get(key)).rejects.toMatchObject(refused);
    await expect(use().head(key)).rejects.toMatchObject(refused);
    await expect(use().delete([key])).rejects.toMatchObject(refused);
  });
}
