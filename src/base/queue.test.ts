import { expect, test } from 'vitest';
import { BatchQueue, Mutex, Semaphore, SingleFlight } from './queue.ts';

test('a semaphore lets its permits in, in order', async () => {
  const semaphore = new Semaphore(2);
  const running: number[] = [];
  const releases: (() => void)[] = [];
  const work = (n: number) =>
    semaphore.run(() => {
      running.push(n);
      return new Promise<void>((resolve) => releases.push(resolve));
    });
  const all = [work(1), work(2), work(3), work(4)];
  await Promise.resolve();
  expect(running).toEqual([1, 2]);
  expect(semaphore.waiting).toBe(2);
  releases[1]!();
  await all[1];
  expect(running).toEqual([1, 2, 3]);
  releases[0]!();
  await all[0];
  releases[2]!();
  releases[3]!();
  await Promise.all(all);
  expect(semaphore.waiting).toBe(0);
});

test('a mutex is released by a failure', async () => {
  const mutex = new Mutex();
  await expect(
    mutex.run(async () => {
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
  await expect(mutex.run(async () => 1)).resolves.toBe(1);
});

test('single flight shares what is under way and keeps nothing', async () => {
  const flight = new SingleFlight<string, number>();
  let calls = 0;
  const work = async () => {
    calls += 1;
    return calls;
  };
  const [a, b] = await Promise.all([flight.run('k', work), flight.run('k', work)]);
  expect([a, b, calls]).toEqual([1, 1, 1]);
  await expect(flight.run('k', work)).resolves.toBe(2);
  await expect(
    flight.run('bad', async () => {
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
  await expect(flight.run('bad', async () => 5)).resolves.toBe(5);
});

test('a batch queue takes what queued up meanwhile, in order, a limited number at a time', async () => {
  const batches: number[][] = [];
  const queue = new BatchQueue<number>(2, async (batch) => {
    batches.push([...batch]);
    if (batch.includes(1)) queue.push(4);
    await Promise.resolve();
  });
  for (const item of [1, 2, 3]) queue.push(item);
  expect(batches).toEqual([]);
  await queue.idle();
  expect(batches).toEqual([
    [1, 2],
    [3, 4],
  ]);
  queue.push(5);
  await queue.idle();
  expect(batches.at(-1)).toEqual([5]);
});
