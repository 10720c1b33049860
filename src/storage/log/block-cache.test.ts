import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import { type Area, Arena, MIN_AREA_BYTES } from './arena.ts';
import { type Block, BlockCache } from './block-cache.ts';

const KIB = 1024;
const fill = (value: number) => async (bytes: Uint8Array) => {
  bytes.fill(value);
};

test('areas never overlap, and given back they join again', () => {
  const sizes = fc.array(fc.tuple(fc.integer({ min: 1, max: 300 * KIB }), fc.boolean()), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(sizes, (steps) => {
      const arena = new Arena(1024 * KIB);
      const taken: Area[] = [];
      for (const [length, giveBack] of steps) {
        const area = arena.take(length);
        if (area !== undefined) {
          expect(area.size).toBeGreaterThanOrEqual(length);
          for (const other of taken) {
            const apart =
              area.offset + area.size <= other.offset || other.offset + other.size <= area.offset;
            expect(apart).toBe(true);
          }
          taken.push(area);
        }
        if (giveBack && taken.length > 0) arena.give(taken.splice(length % taken.length, 1)[0]!);
        expect(arena.used).toBe(taken.reduce((sum, { size }) => sum + size, 0));
      }
      for (const area of taken) arena.give(area);
      expect(arena.take(1024 * KIB)).toEqual({ offset: 0, size: 1024 * KIB });
    }),
    { seed: 1, numRuns: 100 },
  );
});

test('areas a little above a power of two leave no holes between them', () => {
  const arena = new Arena(1024 * KIB);
  const taken: Area[] = [];
  for (let area = arena.take(65 * KIB); area !== undefined; area = arena.take(65 * KIB))
    taken.push(area);
  expect(taken).toHaveLength(Math.floor(1024 / 68));
  // The smallest hole that is long enough is taken, not the long one.
  arena.give(taken[3]!);
  for (const n of [7, 8]) arena.give(taken[n]!);
  expect(arena.take(60 * KIB)?.offset).toBe(taken[3]!.offset);
  expect(arena.take(130 * KIB)?.offset).toBe(taken[7]!.offset);
});

test('concurrent readers share one load', async () => {
  const cache = new BlockCache(1024 * KIB);
  let loads = 0;
  const load = async (bytes: Uint8Array) => {
    loads += 1;
    bytes.fill(7);
  };
  const first = cache.load({ objectId: 1, position: 100, length: 50 }, load)!;
  const second = cache.find(1, 110, 150)!;
  expect(second).toBe(first);
  expect(cache.find(1, 90, 120)).toBeUndefined();
  expect(cache.find(1, 110, 151)).toBeUndefined();
  expect(cache.find(2, 110, 120)).toBeUndefined();
  await second.ready;
  expect(second.bytes[49]).toBe(7);
  expect(loads).toBe(1);
});

test('a failed load is told to all who wait, and forgotten', async () => {
  const cache = new BlockCache(256 * KIB);
  const block = cache.load({ objectId: 1, position: 0, length: 10 }, async () => {
    throw new FloeError('unavailable', 'no');
  })!;
  const other = cache.find(1, 0, 10)!;
  await expect(block.ready).rejects.toMatchObject({ code: 'unavailable' });
  await expect(other.ready).rejects.toMatchObject({ code: 'unavailable' });
  expect(cache.find(1, 0, 10)).toBeUndefined();
  cache.unpin(block);
  cache.unpin(other);
  expect(cache.stats.usedBytes).toBe(0);
});

const has = (cache: BlockCache, objectId: number) => cache.peek(objectId, 0, 10) !== undefined;

test('what was read to its end goes first, in that order; never what is held', async () => {
  const cache = new BlockCache(4 * MIN_AREA_BYTES);
  const load = async (objectId: number) => {
    const block = cache.load({ objectId, position: 0, length: 10 }, fill(objectId))!;
    await block.ready;
    return block;
  };
  const [held, second, third, unread] = [
    await load(1),
    await load(2),
    await load(3),
    await load(4),
  ];
  for (const block of [held, third, second]) cache.spent(block);
  for (const block of [second, third, unread]) cache.unpin(block);
  cache.unpin(await load(5));
  expect([1, 2, 3, 4, 5].map((objectId) => has(cache, objectId))).toEqual([
    true,
    true,
    false,
    true,
    true,
  ]);
  // Nothing that was read is left but what is held: the oldest that was loaded in vain.
  for (const objectId of [6, 7]) cache.unpin(await load(objectId));
  expect([1, 2, 4, 5, 6, 7].map((objectId) => has(cache, objectId))).toEqual([
    true,
    false,
    false,
    true,
    true,
    true,
  ]);
  expect(held.bytes[0]).toBe(1);
});

test('who reads ahead takes memory of what was read, not of what others read ahead', async () => {
  const cache = new BlockCache(2 * MIN_AREA_BYTES);
  const ahead = (objectId: number) => {
    const block = cache.load({ objectId, position: 0, length: 10 }, fill(objectId), 'ahead');
    if (block !== undefined) cache.unpin(block);
    return block;
  };
  const first = ahead(1)!;
  const second = ahead(2)!;
  await Promise.all([first.ready, second.ready]);
  expect(ahead(3)).toBeUndefined();
  cache.spent(second);
  expect(ahead(4)).toBeDefined();
  expect([1, 2, 4].map((objectId) => has(cache, objectId))).toEqual([true, false, true]);
  expect(cache.load({ objectId: 5, position: 0, length: 10 }, fill(5), 'read')).toBeDefined();
  expect(has(cache, 1)).toBe(false);
});

test('when readers hold everything, only who must gets memory of its own', async () => {
  const cache = new BlockCache(2 * MIN_AREA_BYTES);
  const held: Block[] = [];
  for (const objectId of [1, 2])
    held.push(cache.load({ objectId, position: 0, length: 10 }, fill(objectId))!);
  const range = { objectId: 3, position: 0, length: 10 };
  expect(cache.load(range, fill(3))).toBeUndefined();
  const own = cache.load(range, fill(3), 'must')!;
  await own.ready;
  expect(own.bytes[9]).toBe(3);
  expect(has(cache, 3)).toBe(false);
  cache.unpin(own);
  for (const block of held) {
    await block.ready;
    cache.unpin(block);
  }
  expect(cache.load(range, fill(3))).toBeDefined();
});

test('a forgotten object is no longer found, and freed when let go', async () => {
  const cache = new BlockCache(256 * KIB);
  const block = cache.load({ objectId: 1, position: 0, length: 10 }, fill(1))!;
  await block.ready;
  cache.forget(1);
  expect(cache.find(1, 0, 10)).toBeUndefined();
  expect(block.bytes[0]).toBe(1);
  expect(cache.stats.usedBytes).toBe(MIN_AREA_BYTES);
  cache.unpin(block);
  expect(cache.stats.usedBytes).toBe(0);
});
