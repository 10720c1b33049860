import { expect, test } from 'vitest';
import { ManualClock, systemClock } from './clock.ts';

test('timers fire in order of time, then of creation, and see their own time', async () => {
  const clock = new ManualClock(1_000);
  const fired: [string, number][] = [];
  const note = (name: string) => () => fired.push([name, clock.now()]);
  clock.setTimer(20, note('late'));
  clock.setTimer(10, note('first'));
  clock.setTimer(10, note('second'));
  clock.setTimer(15, note('cancelled')).cancel();
  await clock.advance(19);
  expect(fired).toEqual([
    ['first', 1_010],
    ['second', 1_010],
  ]);
  await clock.advance(1);
  expect(fired.at(-1)).toEqual(['late', 1_020]);
  expect(clock.nextTimer()).toBeUndefined();
});

test('a timer set by a timer fires in the same advance when due', async () => {
  const clock = new ManualClock(0);
  let fired = 0;
  const again = () => {
    fired += 1;
    if (fired < 5) clock.setTimer(1, again);
  };
  clock.setTimer(1, again);
  await clock.advance(10);
  expect(fired).toBe(5);
});

test('an aborted sleep rejects with the reason and leaves no timer', async () => {
  const clock = new ManualClock();
  const abort = new AbortController();
  const sleeping = clock.sleep(1_000, abort.signal);
  abort.abort(new Error('stopping'));
  await expect(sleeping).rejects.toThrow('stopping');
  expect(clock.nextTimer()).toBeUndefined();
  await expect(clock.sleep(1, abort.signal)).rejects.toThrow('stopping');
});

test("the system's clock moves on", async () => {
  const before = systemClock.monotonic();
  await systemClock.sleep(1);
  expect(systemClock.monotonic()).toBeGreaterThan(before);
});
