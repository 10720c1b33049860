// Extremes against plain comparisons. What files say of them is checked in writer.test.ts.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Leaf } from './leaves.ts';
import { extremesOf } from './statistics.ts';

const leaf = (physical: Leaf['physical']) =>
  ({ physical, primitive: { kind: 'binary' } }) as unknown as Leaf;

const beginning = fc.constantFrom('', 'https://api.github.com/', 'abc', 'abcd', 'é');
const text = fc.tuple(beginning, fc.string()).map(([start, rest]) => Buffer.from(start + rest));

test('of byte strings, in the order of unsigned bytes', () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1 }), (texts) => {
      const offsets = new Int32Array(texts.length + 1);
      texts.forEach((one, i) => {
        offsets[i + 1] = offsets[i]! + one.length;
      });
      const data = new Uint8Array(Buffer.concat(texts));
      const selected = { count: texts.length, slots: null, codes: null };
      const extremes = extremesOf(
        leaf('BYTE_ARRAY'),
        { kind: 'bytes', data, offsets, ...selected },
        null,
      );
      const sorted = texts.toSorted(Buffer.compare);
      expect(Buffer.compare(extremes.min!, sorted[0]!)).toBe(0);
      expect(Buffer.compare(extremes.max!, sorted.at(-1)!)).toBe(0);
    }),
  );
});

test('of 64-bit integers, in the order of signed ones', () => {
  const edges = fc.constantFrom(0n, -1n, 2n ** 31n, -(2n ** 31n), 2n ** 32n - 1n, -(2n ** 63n));
  const long = fc.oneof(edges, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }));
  fc.assert(
    fc.property(fc.array(long, { minLength: 1 }), (longs) => {
      const words = new Int32Array(BigInt64Array.from(longs).buffer);
      const selected = { count: longs.length, slots: null, codes: null };
      const extremes = extremesOf(
        leaf('INT64'),
        { kind: 'words', words, perValue: 2, width: 8, ...selected },
        null,
      );
      const read = (bytes: Uint8Array) => Buffer.from(bytes).readBigInt64LE();
      const sorted = longs.toSorted((a, b) => (a < b ? -1 : 1));
      expect([read(extremes.min!), read(extremes.max!)]).toEqual([sorted[0], sorted.at(-1)]);
    }),
  );
});
