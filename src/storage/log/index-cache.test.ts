import { expect, test } from 'vitest';
import { allocateIndex, type PackedIndex } from '../../metadata/packed-index.ts';
import { CACHED_ENTRY_BYTES, IndexCache } from './index-cache.ts';

/** One run of ten offsets per (partition, base offset, timestamp). */
function index(...runs: readonly (readonly [number, number, number])[]): PackedIndex {
  const packed = allocateIndex(runs.length);
  for (const [n, [partitionId, baseOffset, timestamp]] of runs.entries()) {
    packed.partitionIds[n] = partitionId;
    packed.baseOffsets[n] = baseOffset;
    packed.offsetSpans[n] = 10;
    packed.maxTimestamps[n] = timestamp;
    packed.positions[n] = 1_000 * n;
  }
  return packed;
}

const object = (objectId: number) => ({ objectId, key: `k${objectId}`, generation: objectId });
const places = (cache: IndexCache, partitionId: number, offset: number) =>
  cache
    .segments(partitionId, offset, 100)
    ?.map(({ object: { objectId }, columns, start, end }) => [
      objectId,
      ...Array.from({ length: end - start }, (_, n) => columns.baseOffsets[start + n]),
    ]);

test('finds entries by offset and time over several objects', () => {
  const cache = new IndexCache(1_000_000);
  cache.add({ object: object(1), commitNumber: 1, index: index([5, 0, 100], [6, 0, 1]) });
  cache.add({ object: object(1), commitNumber: 1, index: index([5, 10, 100]) });
  cache.add({ object: object(2), commitNumber: 1, index: index([5, 20, 300]) });
  expect(places(cache, 5, 0)).toEqual([
    [1, 0, 10],
    [2, 20],
  ]);
  expect(places(cache, 5, 9)).toEqual([
    [1, 0, 10],
    [2, 20],
  ]);
  expect(places(cache, 5, 10)).toEqual([
    [1, 10],
    [2, 20],
  ]);
  expect(places(cache, 5, 30)).toEqual([]);
  expect(places(cache, 7, 0)).toBeUndefined();
  const baseAt = (timestampMs: number) => cache.firstReaching(5, timestampMs);
  expect([50, 100, 101, 300, 301].map(baseAt)).toEqual([0, 0, 20, 20, undefined]);
});

test('behind a hole nothing is kept: what lies before it is read from the store', () => {
  const cache = new IndexCache(1_000_000);
  cache.add({ object: object(1), commitNumber: 1, index: index([5, 0, 1], [6, 0, 1]) });
  cache.add({ object: object(3), commitNumber: 3, index: index([5, 20, 1], [6, 10, 1]) });
  expect(places(cache, 5, 0)).toBeUndefined();
  expect(places(cache, 5, 20)).toEqual([[3, 20]]);
  expect(places(cache, 6, 0)).toEqual([
    [1, 0],
    [3, 10],
  ]);
  expect(cache.incomplete).toBe(true);
  expect(cache.openObjects()).toEqual([1, 3, 1]);
  cache.sealed([1]);
  expect(cache.incomplete).toBe(false);
  expect(cache.openObjects()).toEqual([3]);
  expect(places(cache, 6, 0)).toBeUndefined();
});

test('what is sealed goes once nothing older stands before it', () => {
  const cache = new IndexCache(1_000_000);
  cache.add({ object: object(1), commitNumber: 1, index: index([5, 0, 1]) });
  cache.add({ object: object(2), commitNumber: 1, index: index([5, 10, 1], [6, 0, 1]) });
  cache.add({ object: object(3), commitNumber: 1, index: index([5, 20, 1]) });
  cache.sealed([2]);
  expect(places(cache, 5, 0)).toEqual([
    [1, 0],
    [2, 10],
    [3, 20],
  ]);
  expect(places(cache, 6, 0)).toBeUndefined();
  cache.sealed([1]);
  expect(cache.firstOffset(5)).toBe(20);
  expect(places(cache, 5, 19)).toBeUndefined();
  expect(places(cache, 5, 20)).toEqual([[3, 20]]);
  cache.sealed([3]);
  expect(cache.firstOffset(5)).toBe(Infinity);
  expect(cache.entryCount).toBe(0);
});

test('many entries keep their order through growth, and segments stay valid', () => {
  const cache = new IndexCache(1_000_000_000);
  for (let n = 0; n < 1_000; n += 1)
    cache.add({ object: object(1), commitNumber: 1, index: index([5, n * 10, n]) });
  const [early] = cache.segments(5, 4_000, 1)!;
  for (let n = 1_000; n < 3_000; n += 1)
    cache.add({ object: object(1), commitNumber: 1, index: index([5, n * 10, n]) });
  expect(early!.columns.baseOffsets[early!.start]).toBe(4_000);
  expect(early!.end - early!.start).toBe(600);
  expect(places(cache, 5, 25_555)![0]!.slice(0, 2)).toEqual([1, 25_550]);
  cache.removePartition(5);
  expect(cache.entryCount).toBe(0);
});

test('beyond its bound the oldest go, and that is said', () => {
  const cache = new IndexCache(100 * CACHED_ENTRY_BYTES);
  for (let n = 0; n < 150; n += 1)
    cache.add({ object: object(1), commitNumber: 1, index: index([5, n * 10, n]) });
  expect(cache.entryCount).toBeLessThanOrEqual(100);
  expect(places(cache, 5, 0)).toBeUndefined();
  expect(places(cache, 5, 1_495)).toEqual([[1, 1_490]]);
  expect(cache.incomplete).toBe(true);
  cache.sealed([1]);
  expect(cache.incomplete).toBe(false);
});

test('L2: entries that don’t ascend are a bug', () => {
  const cache = new IndexCache(1_000_000);
  cache.add({ object: object(1), commitNumber: 1, index: index([5, 10, 1]) });
  expect(() => cache.add({ object: object(1), commitNumber: 1, index: index([5, 0, 1]) })).toThrow(
    /L2/,
  );
});
