import { expect, test } from 'vitest';
import { ManualClock } from './clock.ts';
import { FloeError } from './error.ts';
import { seededPrng } from './prng.ts';
import { backoffMs, retry } from './retry.ts';

function setUp(attempts: number) {
  const clock = new ManualClock();
  return {
    clock,
    options: { clock, prng: seededPrng(1), attempts, firstDelayMs: 10, maxDelayMs: 1_000 },
  };
}

test('tries again while the store is unavailable', async () => {
  const { clock, options } = setUp(5);
  const result = retry(options, async (n) => {
    if (n < 3) throw new FloeError('unavailable', 'not yet');
    return n;
  });
  await clock.advance(60);
  await expect(result).resolves.toBe(3);
});

test('gives up after its attempts, with the last error', async () => {
  const { clock, options } = setUp(3);
  let attempts = 0;
  const result = retry(options, async () => {
    attempts += 1;
    throw new FloeError('unavailable', `attempt ${attempts}`);
  });
  const failed = expect(result).rejects.toThrow('attempt 3');
  await clock.advance(10_000);
  await failed;
});

test('an unknown outcome or a bad input is not tried again', async () => {
  const { options } = setUp(3);
  for (const code of ['timeout', 'invalid'] as const) {
    let attempts = 0;
    const result = retry(options, async () => {
      attempts += 1;
      throw new FloeError(code, 'no');
    });
    await expect(result).rejects.toMatchObject({ code });
    expect(attempts).toBe(1);
  }
});

test('delays double up to the maximum, with jitter on the upper half', () => {
  const { options } = setUp(1);
  for (const [n, ceiling] of [
    [1, 10],
    [2, 20],
    [5, 160],
    [50, 1_000],
  ] as const) {
    const delay = backoffMs(options, n);
    expect(delay).toBeGreaterThanOrEqual(ceiling / 2);
    expect(delay).toBeLessThanOrEqual(ceiling);
  }
});
