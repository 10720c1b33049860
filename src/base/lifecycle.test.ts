import { expect, test } from 'vitest';
import { ManualClock } from './clock.ts';
import { Lifecycle, within } from './lifecycle.ts';
import { silentLogger } from './log.ts';

test('components stop in reverse order, once, past failing and late ones', async () => {
  const clock = new ManualClock();
  const lifecycle = new Lifecycle(clock, silentLogger);
  const stopped: string[] = [];
  const component = (name: string, work: () => Promise<void>) =>
    lifecycle.add(
      name,
      {
        stop: async () => {
          stopped.push(name);
          await work();
        },
      },
      100,
    );
  component('store', async () => {});
  component('hanging', () => new Promise(() => {}));
  component('failing', async () => {
    throw new Error('no');
  });
  component('server', async () => {});
  const first = lifecycle.stop();
  const second = lifecycle.stop();
  await clock.advance(0);
  expect(stopped).toEqual(['server', 'failing', 'hanging']);
  await clock.advance(100);
  await Promise.all([first, second]);
  expect(stopped).toEqual(['server', 'failing', 'hanging', 'store']);
});

test('within passes results through and names what was late', async () => {
  const clock = new ManualClock();
  await expect(within(clock, 10, Promise.resolve(1), 'nothing')).resolves.toBe(1);
  const late = within(clock, 10, new Promise(() => {}), 'the commit');
  const failed = expect(late).rejects.toThrow('the commit took longer than 10 ms');
  await clock.advance(10);
  await failed;
});
