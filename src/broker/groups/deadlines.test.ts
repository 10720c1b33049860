import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { Deadlines } from './deadlines.ts';

function world() {
  const clock = new ManualClock(0);
  const fired: [string, number][] = [];
  const deadlines = new Deadlines(
    clock,
    () => clock.now(),
    (key) => fired.push([key, clock.now()]),
  );
  return { clock, fired, deadlines };
}

test('each fires once, in order, at its latest wish', async () => {
  const { clock, fired, deadlines } = world();
  deadlines.set('a', 30);
  deadlines.set('b', 10);
  deadlines.set('c', 20);
  deadlines.set('c', 40);
  deadlines.set('a', 15);
  deadlines.set('d', 12);
  deadlines.set('d', Infinity);
  await clock.advance(100);
  expect(fired).toEqual([
    ['b', 10],
    ['a', 15],
    ['c', 40],
  ]);
  expect(deadlines.size).toBe(0);
});

test('thousands cost one timer, and moving away costs none', async () => {
  const { clock, fired, deadlines } = world();
  for (let key = 0; key < 5_000; key += 1) deadlines.set(`g${key}`, 1_000 + key);
  for (let beat = 0; beat < 20; beat += 1) {
    await clock.advance(500);
    for (let key = 0; key < 5_000; key += 1) deadlines.set(`g${key}`, clock.now() + 1_000 + key);
  }
  expect(fired).toEqual([]);
  await clock.advance(20_000);
  expect(fired).toHaveLength(5_000);
  expect(new Set(fired.map(([key]) => key)).size).toBe(5_000);
  expect(fired.every(([, at], index) => index === 0 || at >= fired[index - 1]![1])).toBe(true);
  expect(clock.nextTimer()).toBeUndefined();
});

test('stopped, nothing fires', async () => {
  const { clock, fired, deadlines } = world();
  deadlines.set('a', 5);
  deadlines.stop();
  await clock.advance(10);
  expect(fired).toEqual([]);
});
