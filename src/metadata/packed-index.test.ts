import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  allocateIndex,
  copyEntry,
  describeEntries,
  entriesOf,
  findTime,
  isMarker,
  markerCount,
  openIndex,
  partitionsIn,
  setMarker,
} from './packed-index.ts';

const run = fc.record({
  partitionId: fc.constantFrom(0, 3, 4, 4_294_967_295),
  span: fc.integer({ min: 1, max: 50 }),
  time: fc.integer({ min: -1, max: 90 }),
});

/** An index of adjacent runs per partition, with running maxima. */
function indexOf(runs: readonly { partitionId: number; span: number; time: number }[]) {
  const sorted = runs.toSorted((a, b) => a.partitionId - b.partitionId);
  const index = allocateIndex(sorted.length);
  for (const [n, { partitionId, span, time }] of sorted.entries()) {
    const same = n > 0 && index.partitionIds[n - 1] === partitionId;
    index.partitionIds[n] = partitionId;
    index.baseOffsets[n] = same ? index.baseOffsets[n - 1]! + index.offsetSpans[n - 1]! : 2 ** 40;
    index.offsetSpans[n] = span;
    index.maxTimestamps[n] = Math.max(time, same ? index.maxTimestamps[n - 1]! : -1);
    index.kinds[n] = n % 3;
  }
  return index;
}

test('look-ups agree with a scan, on stored bytes at any alignment', () => {
  fc.assert(
    fc.property(fc.array(run, { maxLength: 30 }), fc.nat(7), (runs, shift) => {
      const index = indexOf(runs);
      const shifted = new Uint8Array(index.bytes.length + 8);
      shifted.set(index.bytes, shift);
      const opened = openIndex(shifted.subarray(shift, shift + index.bytes.length));
      const entries = describeEntries(opened);
      expect(entries).toEqual(describeEntries(index));
      expect(partitionsIn(opened)).toEqual([...new Set(entries.map((e) => e.partitionId))]);
      for (const partitionId of [0, 1, 3, 4, 5, 4_294_967_295]) {
        const [start, end] = entriesOf(opened, partitionId);
        const mine = entries.filter((entry) => entry.partitionId === partitionId);
        expect(entries.slice(start, end)).toEqual(mine);
        for (const time of [-1, 0, 40, 91]) {
          const found = findTime(opened, partitionId, time);
          const expected = mine.find((entry) => entry.maxTimestamp >= time);
          expect(found === -1 ? undefined : entries[found]).toEqual(expected);
        }
      }
    }),
    { seed: 3, numRuns: 80 },
  );
});

test('bytes that are no index are refused', () => {
  const { bytes } = allocateIndex(2);
  expect(() => openIndex(bytes.subarray(0, 4))).toThrow('4 bytes');
  expect(() => openIndex(bytes.slice(0, bytes.length - 1))).toThrow('2 entries');
  const foreign = bytes.slice();
  foreign[0] = 9;
  expect(() => openIndex(foreign)).toThrow('version 9');
});

test('markers are entries without bytes and survive copies; an index without any stays as it was', () => {
  const marker = {
    committed: true,
    producerId: 2 ** 40,
    producerEpoch: 7,
    coordinatorEpoch: 3,
    timestampMs: 1_700_000_000_000,
  };
  const index = allocateIndex(3, 2);
  for (let n = 0; n < 3; n += 1) {
    index.partitionIds[n] = 5;
    index.baseOffsets[n] = 10 * n;
  }
  index.offsetSpans[0] = 10;
  index.positions[0] = 64;
  index.lengths[0] = 100;
  setMarker(index, 1, marker);
  setMarker(index, 2, { ...marker, committed: false, producerId: 4 });
  const stored = new Uint8Array(index.bytes.length + 1);
  stored.set(index.bytes, 1);
  const read = openIndex(stored.subarray(1));
  expect([...read.kinds].map(isMarker)).toEqual([false, true, true]);
  expect(read.marker(1)).toEqual(marker);
  expect(() => read.marker(0)).toThrow(/L4/);
  // Copied in another order, places within the index are new.
  const copy = allocateIndex(3, markerCount(read));
  for (const n of [2, 1, 0]) copyEntry(copy, n, read, n);
  expect(copy.marker(1)).toEqual(marker);
  expect(copy.marker(2)).toEqual({ ...marker, committed: false, producerId: 4 });
  expect(describeEntries(copy)[0]).toEqual(describeEntries(read)[0]);
  expect(() => setMarker(copy, 0, marker)).toThrow(/room/);
  const plain = allocateIndex(2);
  expect(plain.bytes.length).toBe(8 + 2 * 44 + 8);
  expect(markerCount(plain)).toBe(0);
  expect(() => openIndex(index.bytes.subarray(0, index.bytes.length - 8))).toThrow(/packed index/);
});
