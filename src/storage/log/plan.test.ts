import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EntryColumns } from './entries.ts';
import { entriesFor, planRanges } from './plan.ts';

/** Entries whose block header stands 64 bytes before them, at these (position, length). */
function columns(places: readonly (readonly [number, number])[]): EntryColumns {
  return {
    baseOffsets: places.map((_, n) => n),
    offsetSpans: places.map(() => 1),
    maxTimestamps: places.map(() => -1),
    positions: places.map(([position]) => position),
    lengths: places.map(([, length]) => length),
    blockPositions: places.map(([position]) => position - 64),
    kinds: places.map(() => 0),
  };
}

const plan = (places: readonly (readonly [number, number])[], maxGap = 100, maxRange = 1_000) =>
  planRanges(columns(places), [0, places.length], { maxGap, maxRange });

test('neighbours are read together up to the gap and the size allowed', () => {
  expect(
    plan([
      [64, 100],
      [228, 100],
      [600, 10],
    ]),
  ).toEqual([
    { position: 0, length: 328, start: 0, end: 2 },
    { position: 536, length: 74, start: 2, end: 3 },
  ]);
  expect(
    plan([
      [64, 500],
      [628, 500],
    ]).map((range) => range.length),
  ).toEqual([564, 564]);
  expect(
    plan([
      [64, 5_000],
      [5_128, 5],
    ]).map((range) => range.length),
  ).toEqual([5_064, 69]);
});

test('two runs of one block share its header', () => {
  const shared = {
    ...columns([
      [64, 10],
      [100, 10],
    ]),
    blockPositions: [0, 0],
  };
  // The second needs the header before the first: skipping the first would save nothing.
  expect(planRanges(shared, [0, 2], { maxGap: 0, maxRange: 1_000 })).toEqual([
    { position: 0, length: 110, start: 0, end: 2 },
  ]);
});

test('any entries are covered in order, with no range beyond its limits and no byte outside the gaps', () => {
  const places = fc
    .array(fc.tuple(fc.nat({ max: 400 }), fc.integer({ min: 1, max: 900 })), {
      minLength: 1,
      maxLength: 40,
    })
    .map((steps) => {
      let at = 0;
      return steps.map(([gap, length]) => {
        const position = at + gap + 64;
        at = position + length;
        return [position, length] as const;
      });
    });
  fc.assert(
    fc.property(
      places,
      fc.nat({ max: 300 }),
      fc.integer({ min: 1, max: 2_000 }),
      (entries, maxGap, maxRange) => {
        let next = 0;
        for (const range of plan(entries, maxGap, maxRange)) {
          expect(range.start).toBe(next);
          expect(range.position).toBe(entries[range.start]![0] - 64);
          const [position, length] = entries[range.end - 1]!;
          expect(range.position + range.length).toBe(position + length);
          if (range.end - range.start > 1) expect(range.length).toBeLessThanOrEqual(maxRange);
          let needed = 0;
          for (let n = range.start; n < range.end; n += 1) needed += 64 + entries[n]![1];
          expect(range.length - needed).toBeLessThanOrEqual(maxGap * (range.end - range.start - 1));
          next = range.end;
        }
        expect(next).toBe(entries.length);
      },
    ),
    { seed: 1, numRuns: 200 },
  );
});

test('a reader needs at least one entry, and no more than its bytes', () => {
  const entries = columns([
    [64, 100],
    [228, 100],
    [400, 100],
  ]);
  expect(entriesFor(entries, [0, 3], 1)).toEqual({ end: 1, bytes: 100 });
  expect(entriesFor(entries, [0, 3], 150)).toEqual({ end: 2, bytes: 200 });
  expect(entriesFor(entries, [1, 3], 10_000)).toEqual({ end: 3, bytes: 200 });
});
