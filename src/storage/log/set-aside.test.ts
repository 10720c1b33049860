import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { damagedObject, reading, SetAside } from './set-aside.ts';

const MINUTE_MS = 60_000;

test('what fails again and again is tried more and more seldom, but always again', async () => {
  const clock = new ManualClock();
  const aside = new SetAside(clock);
  const waits: number[] = [];
  for (let n = 0; n < 8; n += 1) {
    aside.add(1);
    let minutes = 0;
    for (; aside.has(1); minutes += 1) await clock.advance(MINUTE_MS);
    waits.push(minutes);
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30, 30]);
  expect(aside.size).toBe(1);
  expect(aside.has(2)).toBe(false);
  aside.delete(1);
  expect(aside.size).toBe(0);
  aside.add(1);
  await clock.advance(MINUTE_MS);
  expect(aside.has(1)).toBe(false);
});

test('damage names its object, other failures pass as they are', async () => {
  const object = { objectId: 7, key: 'k', generation: 0 };
  const fail = (error: Error) => reading(object, () => Promise.reject(error)).catch((e) => e);
  const damage = await fail(new FloeError('corrupt', 'bad'));
  expect(damage).toMatchObject({ code: 'corrupt', message: 'bad' });
  expect(damagedObject(damage)).toEqual({ objectId: 7, key: 'k' });
  const away = new FloeError('unavailable', 'away');
  expect(await fail(away)).toBe(away);
  expect(damagedObject(away)).toBeUndefined();
});
