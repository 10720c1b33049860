import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hashKey, KEY_SLOT_BYTES, KeyMap } from './key-map.ts';

const seed = Uint8Array.from({ length: 16 }, (_, n) => n);

test('hashes are HalfSipHash-2-4, as its authors’ vectors say', () => {
  const bytes = Uint8Array.from({ length: 8 }, (_, n) => n);
  const hash = new Int32Array(4);
  const first = (length: number) => {
    hashKey(bytes, 0, length, new Int32Array(seed.slice().buffer), hash);
    return Buffer.from(hash.buffer, 0, 8).toString('hex');
  };
  // Key 00…07, input empty and 00.
  expect(first(0)).toBe('218d1f59b9b83cc8');
  expect(first(1)).toBe('be552412f8387315');
});

test('says of each key what it was told last, whatever the order', () => {
  const puts = fc.array(fc.tuple(fc.uint8Array({ maxLength: 12 }), fc.nat(2 ** 40)), {
    maxLength: 300,
  });
  fc.assert(
    fc.property(puts, (all) => {
      const map = new KeyMap(1024 * 1024, seed);
      const model = new Map<string, number>();
      for (const [key, offset] of all) {
        expect(map.put(key, 0, key.length, offset)).toBe(true);
        model.set(Buffer.from(key).toString('hex'), offset);
      }
      expect(map.size).toBe(model.size);
      for (const [key] of all)
        expect(map.get(key, 0, key.length)).toBe(model.get(Buffer.from(key).toString('hex')));
      const other = new Uint8Array(13);
      expect(map.get(other, 0, other.length)).toBe(-1);
    }),
    { numRuns: 50, seed: 4 },
  );
});

test('takes no key past its bound, and still raises those it has', () => {
  const map = new KeyMap(64 * KEY_SLOT_BYTES, seed);
  const key = (n: number) => Buffer.from(`key ${n}`);
  let n = 0;
  while (map.put(key(n), 0, key(n).length, n)) n += 1;
  expect(n).toBe(Math.floor(64 * 0.8));
  expect(map.full).toBe(true);
  expect(map.bytes).toBe(64 * KEY_SLOT_BYTES);
  expect(map.put(key(0), 0, key(0).length, 999)).toBe(true);
  expect(map.get(key(0), 0, key(0).length)).toBe(999);
  expect(map.get(key(n), 0, key(n).length)).toBe(-1);
});
