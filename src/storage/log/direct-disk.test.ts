import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import { Arena } from './arena.ts';
import { nodeDisk, PAGE_BYTES } from './disk.ts';

const root = mkdtempSync(join(tmpdir(), 'floe-direct-'));
afterAll(() => rmSync(root, { recursive: true }));
const prng = seededPrng(7);

test('direct writes of any parts land whole, filled up to a page, and read back from any place', async () => {
  const disk = nodeDisk(root);
  const file = disk.open('a', 'create', true);
  // Three times the staging memory and a bit, in parts that no boundary fits.
  const parts = [1, 4095, 2 * 1024 * 1024, 1_048_577, 3 * 1024 * 1024 + 17].map((n) =>
    prng.bytes(n),
  );
  const whole = Buffer.concat(parts);
  file.pwritev(parts, PAGE_BYTES);
  file.fdatasync();
  const stored = readFileSync(join(root, 'a'));
  expect(stored.length).toBe(PAGE_BYTES + Math.ceil(whole.length / PAGE_BYTES) * PAGE_BYTES);
  expect(stored.subarray(PAGE_BYTES, PAGE_BYTES + whole.length).equals(whole)).toBe(true);
  for (const [at, length] of [
    [0, 10],
    [4090, 20],
    [5_000, 3_000_000],
    [stored.length - 5, 5],
  ] as const) {
    const into = new Uint8Array(new SharedArrayBuffer(length));
    expect(file.pread(into, at)).toBe(length);
    expect(Buffer.from(into).equals(stored.subarray(at, at + length))).toBe(true);
  }
  const arena = new Arena(8 * 1024 * 1024);
  const area = arena.take(4 * PAGE_BYTES)!;
  const pages = arena.view(area, area.size);
  // Past the staging memory, without holding up the thread: what isn't aligned can't be had so.
  const later = file.preadLater!(pages, 3 * PAGE_BYTES);
  expect(await later).toBe(pages.length);
  expect(Buffer.from(pages).equals(stored.subarray(3 * PAGE_BYTES, 7 * PAGE_BYTES))).toBe(true);
  expect(file.preadLater!(pages, 3 * PAGE_BYTES + 1)).toBeUndefined();
  expect(file.preadLater!(pages.subarray(1), 3 * PAGE_BYTES)).toBeUndefined();
  const lastPage = stored.length - PAGE_BYTES;
  expect(await file.preadLater!(pages, lastPage)).toBe(PAGE_BYTES);
  expect(file.pread(pages, lastPage)).toBe(PAGE_BYTES);
  expect(Buffer.from(pages.subarray(0, PAGE_BYTES)).equals(stored.subarray(lastPage))).toBe(true);
  file.truncate(PAGE_BYTES + 100);
  const short = new Uint8Array(PAGE_BYTES);
  expect(file.pread(short, PAGE_BYTES + 40)).toBe(60);
  expect(file.pread(short, PAGE_BYTES + 100)).toBe(0);
  expect(() => file.pwritev([new Uint8Array(1)], 100)).toThrow('direct writes begin at a page');
  file.close();
});
