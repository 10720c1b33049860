import { expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { noVersions, type Versions } from '../metadata/versions.ts';
import { Copies } from './copies.ts';
import { countingMetrics } from './testing/metrics.ts';

/** A store with versions, and a copy of its topics. */
function setUp() {
  const clock = new ManualClock();
  const store = { versions: noVersions as Versions, asked: 0, away: false };
  const copy = { reads: 0, version: 0, fail: false, hold: undefined as Promise<void> | undefined };
  const copies = new Copies({
    metadata: {
      async current() {
        store.asked += 1;
        if (store.away) throw new Error('away');
        return store.versions;
      },
    },
    refresh: {
      async topics() {
        copy.reads += 1;
        const { topics } = store.versions;
        await copy.hold;
        if (copy.fail) throw new Error('not now');
        copy.version = topics;
      },
    },
    clock,
    logger: silentLogger,
    metrics: countingMetrics(),
  });
  const change = () => {
    store.versions = { ...store.versions, topics: store.versions.topics + 1 };
    return store.versions;
  };
  return { clock, store, copy, copies, change };
}

test('a copy is read again when its version has moved, and only then', async () => {
  const { clock, store, copy, copies, change } = setUp();
  copies.seen(store.versions);
  expect(copy.reads).toBe(0);
  change();
  copies.seen(store.versions);
  copies.seen(store.versions);
  await clock.advance(1);
  expect(copy).toMatchObject({ reads: 1, version: 1 });
  copies.seen({ ...store.versions, quotas: 9 });
  await clock.advance(1);
  expect(copy.reads).toBe(1);
});

test.each([0, 1, 2, 3, 4, 5])(
  'what moves just as a read ends is read too: %i turns after it',
  async (turns) => {
    const { clock, copy, copies, change } = setUp();
    let go = () => {};
    copy.hold = new Promise((resolve) => {
      go = resolve;
    });
    copies.seen(change());
    go();
    for (let n = 0; n < turns; n += 1) await undefined;
    copies.seen(change());
    await clock.advance(1);
    expect(copy.version).toBe(2);
  },
);

test('what moves while it is read is read once more', async () => {
  const { clock, store, copy, copies, change } = setUp();
  let go = () => {};
  copy.hold = new Promise((resolve) => {
    go = resolve;
  });
  copies.seen(change());
  await clock.advance(1);
  change();
  copies.seen(change());
  expect(copy.reads).toBe(1);
  go();
  await clock.advance(1);
  expect(copy).toMatchObject({ reads: 2, version: 3 });
  expect(store.asked).toBe(0);
});

test('a read that fails is tried again', async () => {
  const { clock, copy, copies, change } = setUp();
  copy.fail = true;
  copies.seen(change());
  await clock.advance(1_500);
  expect(copy.reads).toBe(2);
  copy.fail = false;
  await clock.advance(1_000);
  expect(copy).toMatchObject({ reads: 3, version: 1 });
  await clock.advance(10_000);
  expect(copy.reads).toBe(3);
});

test('who misses something asks once for all, and rarely', async () => {
  const { clock, store, copy, copies, change } = setUp();
  change();
  const found: number[] = [];
  const look = async () => {
    await copies.catchUp('topics');
    found.push(copy.version);
  };
  const all = Promise.all(Array.from({ length: 50 }, look));
  await clock.advance(0);
  await all;
  expect(found).toEqual(Array.from({ length: 50 }, () => 1));
  expect([store.asked, copy.reads]).toEqual([1, 1]);

  // Somebody who asks all the time for what isn't there.
  for (let n = 0; n < 100; n += 1) {
    void copies.catchUp('topics');
    await clock.advance(10);
  }
  expect(store.asked).toBeLessThanOrEqual(12);
  expect(copy.reads).toBe(1);
});

test('a question that was sent before is no answer', async () => {
  const { clock, store, copy, copies, change } = setUp();
  await copies.catchUp('topics');
  change();
  const later = copies.catchUp('topics');
  await clock.advance(100);
  await later;
  expect(copy.version).toBe(1);
  expect(store.asked).toBe(2);
});

test('without the store nothing is new', async () => {
  const { store, copy, copies, change } = setUp();
  change();
  store.away = true;
  await copies.catchUp('topics');
  expect(copy.reads).toBe(0);
});

test('a read that fails, or ends too early, while it is stopped is the last', async () => {
  const { copy, copies, change } = setUp();
  let go = () => {};
  copy.hold = new Promise((resolve) => {
    go = resolve;
  });
  copies.seen(change());
  copies.seen(change());
  const stopped = copies.stop();
  copy.fail = true;
  go();
  await stopped;
  // Turns of the event loop come by: nothing begins again and again.
  await new Promise((resolve) => setImmediate(resolve));
  expect(copy.reads).toBe(1);
});
