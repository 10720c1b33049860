import fc from 'fast-check';
import { expect, test } from 'vitest';
import { buildBatch } from '../../protocol/record-builder.ts';
import { cutBatches, RunCollector } from './batch-cut.ts';

/** Batches of so many records each, whole and end to end. */
function entryOf(counts: readonly number[]): {
  bytes: Uint8Array;
  ends: number[];
  offsets: number[];
} {
  const batches = counts.map((count) =>
    buildBatch(Array.from({ length: count }, () => ({ value: 'x'.repeat(count) }))),
  );
  const ends: number[] = [];
  const offsets: number[] = [];
  let at = 0;
  let offset = 100;
  for (const [n, batch] of batches.entries()) {
    offsets.push(offset);
    ends.push((at += batch.length));
    offset += counts[n]!;
  }
  return { bytes: Buffer.concat(batches), ends, offsets: [...offsets, offset] };
}

test('begins with the batch that holds the offset and ends below the end or the budget', () => {
  const cuts = fc.tuple(
    fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 12 }),
    fc.nat(),
    fc.nat(),
    fc.nat({ max: 2_000 }),
    fc.boolean(),
  );
  fc.assert(
    fc.property(cuts, ([counts, a, b, maxBytes, first]) => {
      const { bytes, ends, offsets } = entryOf(counts);
      const last = offsets.at(-1)!;
      const offset = 100 + (a % (last - 100));
      const endOffset = offset + 1 + (b % (last - offset));
      const start = { at: 0, baseOffset: 100 };
      const { from, to } = cutBatches(bytes, start, { offset, endOffset, maxBytes, first });
      const n = offsets.findIndex((base) => base > offset) - 1;
      expect(from).toEqual({ at: n === 0 ? 0 : ends[n - 1]!, baseOffset: offsets[n]! });
      let m = n;
      while (m < counts.length && offsets[m]! < endOffset) {
        const fits = ends[m]! - from.at <= maxBytes || (first && m === n);
        if (!fits) break;
        m += 1;
      }
      expect(to).toEqual({ at: m === 0 ? 0 : ends[m - 1]!, baseOffset: offsets[m]! });
      // Going on from there gives the same as one cut would.
      const rest = cutBatches(bytes, to, {
        offset: to.baseOffset,
        endOffset: last,
        maxBytes: 1e9,
        first: true,
      });
      expect(rest).toEqual({ from: to, to: { at: bytes.length, baseOffset: last } });
    }),
    { seed: 1, numRuns: 300 },
  );
});

test('bytes that are no batches are damage', () => {
  const { bytes } = entryOf([3, 3]);
  const limits = { offset: 100, endOffset: 106, maxBytes: 1e9, first: true };
  const start = { at: 0, baseOffset: 100 };
  expect(() => cutBatches(bytes.subarray(0, bytes.length - 1), start, limits)).toThrow(
    /no whole record batch/,
  );
  expect(() => cutBatches(new Uint8Array(100), start, { ...limits, offset: 103 })).toThrow(
    /no whole record batch/,
  );
});

test('short neighbours are joined, long slices stay where they are', () => {
  const collector = new RunCollector();
  const long = new Uint8Array(5_000);
  collector.add(new Uint8Array(10).fill(1), 0, 5);
  collector.add(new Uint8Array(10).fill(2), 5, 6);
  collector.add(long, 6, 9);
  collector.add(new Uint8Array(10).fill(3), 9, 10);
  collector.add(new Uint8Array(10).fill(4), 20, 21);
  const runs = collector.finish();
  expect(runs.map(({ baseOffset, bytes }) => [baseOffset, bytes.length])).toEqual([
    [0, 20],
    [6, 5_000],
    [9, 10],
    [20, 10],
  ]);
  expect(runs[1]!.bytes).toBe(long);
  expect([...runs[0]!.bytes.subarray(8, 12)]).toEqual([1, 1, 2, 2]);
  expect(collector.bytes).toBe(5_040);
});
