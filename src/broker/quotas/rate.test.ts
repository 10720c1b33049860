// Rates and buckets against their definitions.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TokenBucket, WindowedRate } from './rate.ts';

const WINDOWS = { windows: 11, windowMs: 1_000 };

describe('a windowed rate', () => {
  it('lets a burst of all whole windows pass, and makes what is above wait as long as it should have taken', () => {
    const rate = new WindowedRate(100, WINDOWS);
    expect(rate.largestCharge).toBe(1_000);
    expect(rate.charge(1_000, 0)).toBe(0);
    // 1,500 over 10 s are 150 a second: half as much again, half of 10 s to wait.
    expect(rate.charge(500, 0)).toBe(5_000);
    expect(rate.throttleMs(10_999)).toBeGreaterThan(0);
    expect(rate.throttleMs(11_000)).toBe(0);
  });

  it('forgets a window once all have passed', () => {
    const rate = new WindowedRate(100, WINDOWS);
    rate.add(5_000, 500);
    expect(rate.idle(10_999)).toBe(false);
    expect(rate.rate(10_999)).toBeGreaterThan(0);
    expect(rate.rate(11_000)).toBe(0);
    expect(rate.idle(11_000)).toBe(true);
  });

  it('takes back what was charged', () => {
    const rate = new WindowedRate(1, WINDOWS);
    expect(rate.charge(1_000, 0)).toBeGreaterThan(0);
    rate.add(-1_000, 0);
    expect(rate.charge(1, 0)).toBe(0);
  });

  it('is the sum of the last windows, whatever came before', () => {
    const step = fc.tuple(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 0, max: 50 }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const rate = new WindowedRate(10, { windows: 4, windowMs: 1_000 });
        const added: { readonly atMs: number; readonly amount: number }[] = [];
        let nowMs = 5_000;
        for (const [passedMs, amount] of steps) {
          nowMs += passedMs;
          rate.add(amount, nowMs);
          added.push({ atMs: nowMs, amount });
          const oldest = Math.floor(nowMs / 1_000) - 3;
          const kept = added.filter(({ atMs }) => Math.floor(atMs / 1_000) >= oldest);
          const sum = kept.reduce((total, one) => total + one.amount, 0);
          expect(rate.rate(nowMs)).toBeCloseTo((sum * 1_000) / (3_000 + (nowMs % 1_000)), 6);
        }
      }),
      { seed: 7, numRuns: 60 },
    );
  });

  it('never waits longer than a reply can say', () => {
    const rate = new WindowedRate(1, WINDOWS);
    expect(rate.charge(2 ** 40, 0)).toBe(2 ** 31 - 1);
  });
});

describe('a token bucket', () => {
  it('starts full, may be overdrawn, and is paid off at its rate', () => {
    const bucket = new TokenBucket(2, WINDOWS, 0);
    expect(bucket.charge(22, 0)).toBe(0);
    expect(bucket.charge(4, 0)).toBe(2_000);
    expect(bucket.throttleMs(1_000)).toBe(1_000);
    expect(bucket.throttleMs(2_000)).toBe(0);
    expect(bucket.idle(12_999)).toBe(false);
    expect(bucket.idle(13_000)).toBe(true);
  });

  it('holds no more than its burst', () => {
    const bucket = new TokenBucket(1, WINDOWS, 0);
    expect(bucket.charge(11, 1_000_000)).toBe(0);
    expect(bucket.charge(1, 1_000_000)).toBe(1_000);
  });
});
