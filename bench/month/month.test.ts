// The simulated month in short: its pure parts, and a day of a small cluster through all stages with the checks on.
import { expect, test } from 'vitest';
import { monthSettings } from './log-world.ts';
import { plot, roundUp } from './plot.ts';
import { billOf, machinesFor, storageDollars, warpstreamFee } from './prices.ts';
import { checkMonth, runMonth } from './run.ts';
import { assignments, MIB, MONTH, partitionsOf, type Workload } from './workload.ts';

test('every byte is sent to one broker of its zone', () => {
  const sum = (parts: Iterable<{ readonly bytesPerSecond: number }>) =>
    [...parts].reduce((total, { bytesPerSecond }) => total + bytesPerSecond, 0);
  expect(sum(partitionsOf(MONTH))).toBeCloseTo(MONTH.bytesPerSecond, 3);
  expect(sum([...assignments(MONTH).values()].flat())).toBeCloseTo(MONTH.bytesPerSecond, 3);
  expect(partitionsOf(MONTH)).toHaveLength(284);
});

test('prices go by steps', () => {
  expect(storageDollars(1_000)).toBeCloseTo(23);
  expect(storageDollars(51_200 + 1_000)).toBeCloseTo(51_200 * 0.023 + 22);
  expect(warpstreamFee(1_000, 1_000)).toBeCloseTo(20 + 2_880 * 0.52083);
  expect(machinesFor(1, 3)).toBe(3);
  expect(machinesFor(4 * 960 * MIB * 0.7, 3)).toBe(6);
});

test('a plot is one picture of finite numbers', () => {
  expect([0, 1, 1.5, 21, 99].map(roundUp)).toEqual([1, 1, 2, 50, 100]);
  const line = { name: 'a < b', values: [[0, 1] as const, [2, 3] as const] };
  const svg = plot([{ title: 't', series: [line] }], {
    title: 'dollars',
    bars: [{ name: 'one', parts: { x: 1, y: 2 } }],
  });
  expect(svg).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
  expect(svg).toContain('a &lt; b');
  expect(svg).not.toMatch(/NaN|Infinity|undefined/);
});

const SMALL: Workload = {
  ...MONTH,
  bytesPerSecond: 40 * MIB,
  zones: ['a', 'b'],
  brokersPerZone: 1,
  kinds: [{ name: 'one', topics: 1, partitions: 4, share: 1 }],
  retentionMs: 6 * 3_600_000,
};

test('a day of a small cluster: it is compacted, expires, is read again, and adds up', async () => {
  const options = {
    workload: SMALL,
    settings: monthSettings({
      'log.compact.gather.ms': '3600000',
      'log.compact.interval.ms': '600000',
      'log.cleaner.backoff.ms': '600000',
      'log.collect.interval.ms': '600000',
      'log.retention.check.interval.ms': '600000',
    }),
    sample: 16_384,
    days: 1,
    flushSeconds: 1,
    seed: 1,
  };
  const month = await runMonth(options);
  checkMonth(month);
  const { usage, points, flush } = month;
  // Twenty MiB/s a broker: four PUTs a second each, and no more.
  expect(flush.putsPerSecond).toBeLessThanOrEqual(8);
  expect(points).toHaveLength(24);
  const kept = (SMALL.bytesPerSecond * SMALL.retentionMs) / 1_000;
  expect(usage.storedBytes).toBeGreaterThan(kept);
  expect(usage.storedBytes).toBeLessThan(kept * 1.3);
  expect(usage.rewrites).toBeGreaterThan(0.9);
  expect(usage.rewrites).toBeLessThan(4);
  expect(billOf(usage).total).toBeGreaterThan(0);
});
