// A node whose machine's clock is off.
import { expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import { silentLogger } from '../base/log.ts';
import { noMetrics } from '../base/metrics.ts';
import { SteeredClock } from '../base/steered-clock.ts';
import { ClockKeeper } from './clock-keeper.ts';

function setUp(aheadMs: number) {
  const machine = new ManualClock();
  const clock = new SteeredClock(machine);
  const state = { aheadMs, away: false, tookMs: 0 };
  const store = {
    async nowMs() {
      if (state.away) throw new FloeError('unavailable', 'away');
      const nowMs = machine.now() + state.aheadMs;
      if (state.tookMs > 0) await machine.advance(state.tookMs);
      return nowMs;
    },
  };
  const start = () => ClockKeeper.start({ clock, store, logger: silentLogger, metrics: noMetrics });
  return { machine, clock, state, start };
}

test.each([
  [0, 0],
  [900, 0],
  [-900, 0],
  [1_200_000, 1_200_000],
  [-1_200_000, -1_200_000],
])('the store is %d ms ahead: corrected by %d', async (aheadMs, offsetMs) => {
  const { clock, machine, start } = setUp(aheadMs);
  const keeper = await start();
  expect(clock.now() - machine.now()).toBe(offsetMs);
  await keeper.stop();
});

test('looks again: a clock that goes wrong, and one that was set right', async () => {
  const { clock, machine, state, start } = setUp(0);
  const keeper = await start();
  state.aheadMs = 5_000;
  await machine.advance(10_000);
  expect(clock.offsetMs).toBe(5_000);
  state.aheadMs = 10;
  await machine.advance(10_000);
  expect(clock.offsetMs).toBe(0);
  await keeper.stop();
  state.aheadMs = 5_000;
  await machine.advance(60_000);
  expect(clock.offsetMs).toBe(0);
});

test('a store that is away or slow changes nothing', async () => {
  const { clock, machine, state, start } = setUp(60_000);
  state.away = true;
  const keeper = await start();
  expect(clock.offsetMs).toBe(0);
  Object.assign(state, { away: false, tookMs: 2_500 });
  await machine.advance(12_600);
  expect(clock.offsetMs).toBe(0);
  state.tookMs = 0;
  await machine.advance(20_000);
  expect(clock.offsetMs).toBe(60_000);
  await keeper.stop();
});
