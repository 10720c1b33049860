import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeRuns, encodeRuns } from './offset-runs.ts';

test('any set of offsets comes back', () => {
  const set = fc.uniqueArray(fc.integer({ min: 0, max: 300 }), { maxLength: 80 });
  const first = fc.constantFrom(0, 7, 2 ** 33, 2 ** 50);
  fc.assert(
    fc.property(set, first, (offsets, base) => {
      const sorted = offsets.toSorted((a, b) => a - b).map((offset) => base + offset);
      expect(decodeRuns(encodeRuns(sorted, base), base)).toEqual(sorted);
    }),
    { seed: 1 },
  );
});

test('a long run is a few bytes', () => {
  const all = Array.from({ length: 100_000 }, (_, n) => 5 + n);
  expect(encodeRuns(all, 0).length).toBe(4);
});

test('a cut set is refused', () => {
  expect(() => decodeRuns(Uint8Array.of(1, 200), 0)).toThrow(/ends in the middle/);
});
