// How requests are paced: the rate after refusals, slots by purpose, windows of latency, prices.
import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { AdaptiveRate } from './adaptive-rate.ts';
import { BodyPool } from './body-pool.ts';
import { HedgeTimer, LatencyWindow } from './latency-window.ts';
import { dollarsOf } from './prices.ts';
import { RequestSlots } from './request-slots.ts';

/** Requests as fast as the rate lets them, of a store that takes `limit` a second. @returns how many were refused. */
async function drive(rate: AdaptiveRate, clock: ManualClock, { seconds = 10, limit = 20 }) {
  let refused = 0;
  let sent = 0;
  const end = clock.monotonic() + seconds * 1_000;
  let windowMs = clock.monotonic();
  let inWindow = 0;
  while (clock.monotonic() < end) {
    await clock.advance(Math.max(rate.reserve(), 5));
    if (clock.monotonic() - windowMs >= 1_000) [windowMs, inWindow] = [clock.monotonic(), 0];
    inWindow += 1;
    sent += 1;
    if (inWindow > limit) {
      refused += 1;
      rate.refused();
    } else rate.answered();
  }
  return { refused, sent };
}

test('without a refusal nothing is held back', () => {
  const rate = new AdaptiveRate(new ManualClock(), 1);
  for (let n = 0; n < 1_000; n += 1) expect(rate.reserve()).toBe(0);
  expect(rate.rate).toBe(Infinity);
});

test('after refusals the rate settles near what the store takes', async () => {
  const clock = new ManualClock();
  const rate = new AdaptiveRate(clock, 1);
  await drive(rate, clock, {});
  const { refused, sent } = await drive(rate, clock, { seconds: 60 });
  // Of 20 a second it gets most, and few are refused, where 200 a second would be tried without a limit.
  expect(sent / 60).toBeGreaterThan(8);
  expect(refused / sent).toBeLessThan(0.25);
});

test('a long time without a refusal ends the limit', async () => {
  const clock = new ManualClock();
  const rate = new AdaptiveRate(clock, 1);
  rate.refused();
  expect(rate.rate).toBe(1);
  await clock.advance(60_000);
  expect(rate.rate).toBe(Infinity);
  expect(rate.reserve()).toBe(0);
});

test('a store that refuses everything is still asked at the least rate', async () => {
  const clock = new ManualClock();
  const rate = new AdaptiveRate(clock, 2);
  for (let n = 0; n < 50; n += 1) {
    await clock.advance(rate.reserve());
    rate.refused();
  }
  expect(rate.rate).toBe(2);
});

const never = () => new Promise<void>(() => {});

test('the background never takes the last slots', async () => {
  const slots = new RequestSlots(new ManualClock(), {
    slots: 32,
    of: { 'catch-up': { share: 0.5, bytesPerSecond: 0 } },
  });
  for (let n = 0; n < 100; n += 1) {
    void slots.run('catch-up', { bytes: 1 }, never);
    void slots.run('tables', { bytes: 1 }, never);
    void slots.run('compaction', { bytes: 1, slots: 4 }, never);
  }
  await new Promise(setImmediate);
  expect(slots.used('catch-up')).toBeLessThanOrEqual(16);
  const used = slots.used('catch-up') + slots.used('tables') + slots.used('compaction');
  expect(used).toBe(24);
  await slots.run('produce', { bytes: 1 }, async () => {});
});

test('the more urgent goes first, and who gives up leaves the queue', async () => {
  const slots = new RequestSlots(new ManualClock(), { slots: 1, of: {} });
  const order: string[] = [];
  let free: () => void = () => {};
  const first = slots.run(
    'compaction',
    { bytes: 1 },
    () =>
      new Promise<void>((resolve) => {
        free = resolve;
      }),
  );
  await Promise.resolve();
  const stop = new AbortController();
  const gone = slots.run('produce', { bytes: 1, signal: stop.signal }, async () => {});
  const waiting = (['maintenance', 'catch-up', 'tail', 'produce'] as const).map((purpose) =>
    slots.run(purpose, { bytes: 1 }, async () => {
      order.push(purpose);
    }),
  );
  await Promise.resolve();
  stop.abort();
  await expect(gone).rejects.toThrow();
  free();
  await Promise.all([first, ...waiting]);
  expect(order).toEqual(['produce', 'tail', 'catch-up', 'maintenance']);
  expect(slots.used('produce')).toBe(0);
});

test('bytes of a purpose go at its rate', async () => {
  const clock = new ManualClock();
  const slots = new RequestSlots(clock, {
    slots: 8,
    of: { tables: { share: 1, bytesPerSecond: 1_000 } },
  });
  let done = 0;
  const count = async () => {
    done += 1;
  };
  const all = Array.from({ length: 5 }, () => slots.run('tables', { bytes: 1_000 }, count));
  await clock.advance(1);
  expect(done).toBe(1);
  await clock.advance(2_000);
  expect(done).toBe(3);
  await clock.advance(2_000);
  await Promise.all(all);
});

test('quantiles are those of the newest samples', () => {
  const window = new LatencyWindow();
  expect(window.quantile(0.9)).toBeUndefined();
  for (let n = 0; n < 100; n += 1) window.add(1_000);
  for (let n = 0; n < 200; n += 1) window.add(n % 128);
  expect(window.quantile(0.5)!).toBeGreaterThan(40);
  expect(window.quantile(0.5)!).toBeLessThan(90);
  expect(window.quantile(1)!).toBeLessThan(128);
});

test('hedges are a share of requests, but for those that got lost', async () => {
  const clock = new ManualClock();
  const timer = new HedgeTimer(clock, { quantile: 0.9, share: 0.05, minMs: 20, lateMs: 1_000 });
  const window = new LatencyWindow();
  for (let n = 0; n < 100; n += 1) window.add(50);
  const times: number[] = [];
  for (let n = 0; n < 200; n += 1) {
    const startedMs = clock.monotonic();
    const due = timer.due(timer.begin([window]), new AbortController().signal);
    void due.then(() => times.push(clock.monotonic() - startedMs));
    await clock.advance(1_000);
  }
  const soon = times.filter((ms) => ms < 60).length;
  expect(times).toHaveLength(200);
  expect(soon).toBeGreaterThanOrEqual(10);
  expect(soon).toBeLessThanOrEqual(12);
  expect(times.filter((ms) => ms >= 999)).toHaveLength(200 - soon);
});

test('without a share nothing is asked twice', async () => {
  const limits = { quantile: 0.9, share: 0, minMs: 20, lateMs: 1_000 };
  const timer = new HedgeTimer(new ManualClock(), limits);
  await expect(timer.due(50, new AbortController().signal)).rejects.toMatchObject({
    code: 'cancelled',
  });
});

test('a store that is slow as a whole is not asked twice', async () => {
  const clock = new ManualClock();
  const timer = new HedgeTimer(clock, { quantile: 0.9, share: 0.05, minMs: 20, lateMs: 1_000 });
  const window = new LatencyWindow();
  for (let n = 0; n < 100; n += 1) window.add(5_000);
  let hedges = 0;
  for (let n = 0; n < 50; n += 1) {
    const answered = new AbortController();
    timer.due(timer.begin([window]), answered.signal).then(
      () => (hedges += 1),
      () => {},
    );
    await clock.advance(5_100);
    answered.abort();
  }
  expect(hedges).toBeLessThanOrEqual(4);
});

test('a large body costs its parts, a deletion nothing', () => {
  const prices = { write: 5, read: 0.4, partBytes: 8 * 1024 * 1024 };
  expect(dollarsOf({ operation: 'put', bytes: 1_000 }, prices)).toBeCloseTo(0.005);
  expect(dollarsOf({ operation: 'put', bytes: 32 * 1024 * 1024 }, prices)).toBeCloseTo(0.03);
  expect(dollarsOf({ operation: 'get', bytes: 1_000 }, prices)).toBeCloseTo(0.0004);
  expect(dollarsOf({ operation: 'delete', bytes: 0 }, prices)).toBe(0);
});

test('bodies are put together in memory that is used again', () => {
  const pool = new BodyPool();
  const shared = new Uint8Array(new SharedArrayBuffer(600_000)).map((_, n) => n * 7);
  const parts = [shared.subarray(3, 200_000), new Uint8Array(0), shared.subarray(200_000)];
  const first = pool.join(parts);
  expect(first.bytes.equals(Buffer.concat(parts))).toBe(true);
  const other = pool.join(parts);
  expect(other.bytes.buffer).not.toBe(first.bytes.buffer);
  first.release();
  const again = pool.join([shared.subarray(0, 300_000), shared.subarray(1, 300_001)]);
  expect(again.bytes.buffer).toBe(first.bytes.buffer);
  expect(again.bytes).toHaveLength(600_000);
  // One piece isn't copied, small ones aren't kept.
  expect(pool.join([shared]).bytes.buffer).toBe(shared.buffer);
  pool.join([shared.subarray(0, 10), shared.subarray(5, 9)]).release();
  again.release();
  other.release();
  expect(pool.keptBytes).toBe(2 * 1024 * 1024);
  for (const body of Array.from({ length: 100 }, () => pool.join(parts))) body.release();
  const many = Array.from({ length: 100 }, () => pool.join(parts));
  for (const body of many) body.release();
  expect(pool.keptBytes).toBeLessThanOrEqual(48 * 1024 * 1024);
});
