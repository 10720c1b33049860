import { expect, test } from 'vitest';
import { seededIds, seededPrng, uuidToBytes, uuidToText } from './prng.ts';

test('a seed replays', () => {
  const draw = (seed: number) => {
    const prng = seededPrng(seed);
    return [prng.next(), prng.int(1_000), ...prng.bytes(4)];
  };
  expect(draw(42)).toEqual(draw(42));
  expect(draw(42)).not.toEqual(draw(43));
});

test('numbers spread over their range', () => {
  const prng = seededPrng(7);
  const buckets = new Array<number>(10).fill(0);
  for (let i = 0; i < 10_000; i += 1) buckets[prng.int(10)]! += 1;
  for (const count of buckets) expect(count).toBeGreaterThan(850);
});

test('ids are version 4 UUIDs and survive their bytes', () => {
  const ids = seededIds(seededPrng(1));
  const id = ids.uuid();
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(uuidToText(uuidToBytes(id))).toBe(id);
  expect(ids.uuid()).not.toBe(id);
  expect(() => uuidToBytes('nonsense')).toThrow(/not a UUID: nonsense/);
});
