// When memory is given back, and that there is something which gives it back.
import { expect, test } from 'vitest';
import { ManualClock } from './clock.ts';
import { collectAtRest, collector } from './memory-at-rest.ts';

test('collects once whenever work has ended', async () => {
  const clock = new ManualClock();
  let share = 0.01;
  let collections = 0;
  collectAtRest({
    clock,
    utilization: () => share,
    collect: () => {
      collections += 1;
    },
  });
  const after = async (next: number) => {
    share = next;
    await clock.advance(5_000);
    return collections;
  };
  // A start is work, too.
  expect(await after(0.01)).toBe(1);
  expect(await after(0.01)).toBe(1);
  expect(await after(0.6)).toBe(1);
  expect(await after(0.06)).toBe(1);
  expect(await after(0.04)).toBe(2);
  expect(await after(0)).toBe(2);
});

test('garbage goes', () => {
  const collect = collector();
  collect();
  const before = process.memoryUsage().heapUsed;
  let garbage: unknown[] | undefined = Array.from({ length: 200_000 }, (_, n) => ({ n }));
  expect(garbage).toHaveLength(200_000);
  garbage = undefined;
  expect(process.memoryUsage().heapUsed).toBeGreaterThan(before + 4e6);
  collect();
  expect(process.memoryUsage().heapUsed).toBeLessThan(before + 2e6);
});
