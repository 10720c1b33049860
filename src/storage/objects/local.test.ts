import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { systemIds } from '../../base/prng.ts';
import { objectStoreContract } from './contract.ts';
import { keyOfUri, objectUri, RESERVED_SEGMENT } from './keys.ts';
import { LocalObjectStore } from './local.ts';

const open = (root: string) => LocalObjectStore.open(root, { clock: systemClock, ids: systemIds });
let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'floe-objects-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

objectStoreContract({ name: 'a local folder', make: () => open(join(root, 'contract')) });

test('two processes race for one key and one wins', async () => {
  const folder = join(root, 'race');
  const store = await open(folder);
  const module = fileURLToPath(new URL('./local.ts', import.meta.url));
  const clock = fileURLToPath(new URL('../../base/clock.ts', import.meta.url));
  const prng = fileURLToPath(new URL('../../base/prng.ts', import.meta.url));
  const script = `
    const { LocalObjectStore } = await import(${JSON.stringify(module)});
    const { systemClock } = await import(${JSON.stringify(clock)});
    const { systemIds } = await import(${JSON.stringify(prng)});
    const store = await LocalObjectStore.open(${JSON.stringify(folder)}, { clock: systemClock, ids: systemIds });
    process.stdout.write('ready');
    let won = 0;
    for (let n = 0; n < 200; n += 1)
      await store.put('key/' + n, Buffer.from('theirs'), { ifNoneMatch: true }).then(() => { won += 1; }, () => {});
    process.stdout.write(String(won));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  const ready = new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk) => {
      output += chunk;
      resolve();
    });
  });
  const ended = new Promise((resolve) => child.on('close', resolve));
  await ready;
  let won = 0;
  for (let n = 199; n >= 0; n -= 1) {
    await store.put(`key/${n}`, Buffer.from('ours'), { ifNoneMatch: true }).then(
      () => (won += 1),
      () => {},
    );
  }
  await ended;
  expect(won + Number(output.replace('ready', ''))).toBe(200);
});

test('nothing half-written stays or shows', async () => {
  const folder = join(root, 'half');
  const temporary = join(folder, RESERVED_SEGMENT);
  await mkdir(temporary, { recursive: true });
  await writeFile(join(temporary, 'old'), 'half');
  await writeFile(join(temporary, 'young'), 'half');
  await utimes(join(temporary, 'old'), 1, 1);
  const store = await open(folder);
  const keys: string[] = [];
  for await (const { key } of store.list('')) keys.push(key);
  expect(keys).toEqual([]);
  expect(await readdir(temporary)).toEqual(['young']);
  await store.put('a', Buffer.from('x'));
  expect(await readdir(temporary)).toEqual(['young']);
});

test('a name that is another one’s folder is refused with the reason', async () => {
  const store = await open(join(root, 'folders'));
  await store.put('a/b', Buffer.from('x'));
  await expect(store.put('a/b/c', Buffer.from('x'))).rejects.toMatchObject({ code: 'invalid' });
  await expect(store.get('a/b/c')).rejects.toMatchObject({ code: 'not-found' });
  expect(await store.head('a/b/c')).toBeUndefined();
});

test('keys and URIs belong together', async () => {
  const store = await open(join(root, 'u r%20i'));
  const key = 'data/day=2020-01-01/a%b#c?.parquet';
  const uri = objectUri(store, key);
  expect(uri).toBe(`file://${join(root, 'u r%20i', key)}`);
  expect(keyOfUri(store, uri)).toBe(key);
  expect(keyOfUri(store, 'file:///elsewhere/x')).toBeUndefined();
});
