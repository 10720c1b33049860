// The format's own vectors, where the data set is present beside the repository, and hostile bitmaps.
import { existsSync, readFileSync } from 'node:fs';
import { RoaringBitmap32, roaringLibraryInitialize } from 'roaring-wasm';
import { beforeAll, describe, expect, test } from 'vitest';
import { readBitmap64, readDeletionVector } from './deletion-vector.ts';

const MANY = 10_000_000;
const folder = new URL('../../../../shared/data/iceberg-vectors/deletes/', import.meta.url);
const file = (name: string) => new Uint8Array(readFileSync(new URL(name, folder)));

beforeAll(() => roaringLibraryInitialize());

describe.skipIf(!existsSync(folder))('vectors', () => {
  test('64-bit bitmaps', () => {
    expect(readBitmap64(file('64mapempty.bin'), MANY)).toHaveLength(0);
    for (const name of ['64map32bitvals.bin', '64mapspreadvals.bin']) {
      const positions = readBitmap64(file(name), MANY);
      expect(positions.length, name).toBeGreaterThan(0);
      expect(positions.every((value, index) => index === 0 || value > positions[index - 1]!)).toBe(
        true,
      );
    }
    expect(() => readBitmap64(file('64maphighvals.bin'), MANY)).toThrow(/key/);
  });

  test('whole blobs', async () => {
    expect(await readDeletionVector(file('empty-position-index.bin'), MANY)).toHaveLength(0);
    const small = await readDeletionVector(
      file('small-alternating-values-position-index.bin'),
      MANY,
    );
    expect([...small]).toEqual([1, 3, 5, 7, 9]);
    const mixed = await readDeletionVector(file('small-and-large-values-position-index.bin'), MANY);
    expect(mixed.at(-1)).toBeGreaterThan(2 ** 31 - 1);
    const blob = file('all-container-types-position-index.bin');
    expect((await readDeletionVector(blob, MANY)).length).toBeGreaterThan(100);
    for (const at of [2, 6, 30, blob.length - 1]) {
      const damaged = blob.slice();
      damaged[at] = damaged[at]! ^ 1;
      await expect(readDeletionVector(damaged, MANY)).rejects.toMatchObject({ code: 'corrupt' });
    }
  });
});

test('a small bitmap of very many rows is not unfolded', () => {
  const bitmap = new RoaringBitmap32();
  bitmap.addRange(0, 2 ** 31);
  bitmap.runOptimize();
  const inner = bitmap.serialize('portable');
  bitmap.dispose();
  const bytes = new Uint8Array(12 + inner.length);
  new DataView(bytes.buffer).setBigUint64(0, 1n, true);
  bytes.set(inner, 12);
  expect(() => readBitmap64(bytes, MANY)).toThrow(/more than 10000000 rows/);
});
