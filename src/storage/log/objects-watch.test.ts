import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { CURRENT_MS, ObjectsWatch } from './objects-watch.ts';

const EVERY_MS = 1_000;

function setUp() {
  const clock = new ManualClock();
  const store = { gone: new Set<number>(), cleaned: [] as number[], away: false };
  const open = new Set([1, 2, 3]);
  const told: string[] = [];
  const asked: number[] = [];
  const watch = new ObjectsWatch({
    objects: {
      notOpen: async (objectIds) => {
        if (store.away) throw new FloeError('unavailable', 'no connection');
        return objectIds.filter((objectId) => store.gone.has(objectId));
      },
      // Of partitions in `cleaned`, each under the version that is its place there, up to offset 10.
      cleanedSince: async (version) => {
        const partitions = store.cleaned.slice(version + 1);
        asked.push(partitions.length);
        return {
          version: version + partitions.length,
          cleanings: partitions.map((partitionId) => ({ partitionId, cleanEnd: 10 })),
        };
      },
    },
    reader: {
      openObjects: () => [...open],
      noLongerOpen: (objectIds) => {
        for (const objectId of objectIds) open.delete(objectId);
      },
      forgetRows: (partitionId) => void told.push(`rows of ${partitionId}`),
    },
    front: {
      compacted: (partitionId, endOffset) => void told.push(`${partitionId} to ${endOffset}`),
    },
    clock,
    logger: silentLogger,
    everyMs: EVERY_MS,
  });
  return { clock, store, open, told, asked, watch };
}

test('objects that others sealed are no longer followed', async () => {
  const { clock, store, open, watch } = setUp();
  store.gone.add(1);
  await watch.start();
  expect([...open]).toEqual([2, 3]);
  store.gone.add(2);
  await clock.advance(EVERY_MS);
  expect([...open]).toEqual([3]);
  await watch.stop();
  store.gone.add(3);
  await clock.advance(EVERY_MS * 5);
  expect([...open]).toEqual([3]);
});

test('what others compacted by key is told once, and a look costs what has changed', async () => {
  const { clock, store, told, asked, watch } = setUp();
  store.cleaned.push(3, 4);
  await watch.start();
  expect(told).toEqual(['rows of 3', '3 to 10', 'rows of 4', '4 to 10']);
  await clock.advance(EVERY_MS);
  store.cleaned.push(4);
  await clock.advance(EVERY_MS);
  expect(told.slice(4)).toEqual(['rows of 4', '4 to 10']);
  expect(asked).toEqual([2, 0, 1]);
});

test('without an answer for too long it is not current, until the store answers again (L7)', async () => {
  const { clock, store, watch } = setUp();
  expect(watch.isCurrent()).toBe(false);
  await watch.start();
  expect(watch.isCurrent()).toBe(true);
  store.away = true;
  await clock.advance(CURRENT_MS);
  expect(watch.isCurrent()).toBe(true);
  await clock.advance(EVERY_MS);
  expect(watch.isCurrent()).toBe(false);
  await clock.advance(0);
  store.away = false;
  // Being asked makes it ask.
  expect(watch.isCurrent()).toBe(false);
  await clock.advance(0);
  expect(watch.isCurrent()).toBe(true);
});
