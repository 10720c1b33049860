// Seeds of the simulation of three brokers: SEEDS=500 SEED=1000 npx vitest run test/simulation/cluster runs 500 from 1000
// on; a failing seed is in the error's message and replays with SEEDS=1 SEED=<it>.
import { expect, test } from 'vitest';
import { simulateCluster } from './simulate.ts';

const seeds = Number(process.env['SEEDS'] ?? 3);
const first = Number(process.env['SEED'] ?? 1);

/** Far more than one takes on a machine that has nothing else to do. */
const SEED_LIMIT_MS = 10_000;

test(
  `${seeds} seeds keep every promise (cluster)`,
  async () => {
    const failures: string[] = [];
    const totals = {
      ...{ lives: 0, acked: 0, moves: 0, pauses: 0, compacted: 0 },
      ...{ swaps: 0, maintainers: 0, lostSwaps: 0 },
    };
    for (let seed = first; seed < first + seeds; seed += 1) {
      try {
        const outcome = await simulateCluster(seed);
        for (const name of Object.keys(totals) as (keyof typeof totals)[])
          totals[name] += outcome[name];
      } catch (caught) {
        failures.push((caught as Error).message);
        // Of a long run: what was found so far.
        process.stderr.write(`${failures.at(-1)}\n`);
      }
    }
    expect(failures).toEqual([]);
    expect(totals.lives).toBeGreaterThan(seeds * 3);
    expect(totals.acked).toBeGreaterThan(seeds * 20);
    expect(totals.moves).toBeGreaterThan(seeds * 3);
    expect(totals.compacted).toBeGreaterThan(seeds * 5);
    expect(totals.swaps).toBeGreaterThan(seeds * 20);
    expect(totals.maintainers).toBeGreaterThan(seeds * 2);
    expect(totals.lostSwaps).toBeGreaterThan(seeds / 5);
  },
  Math.max(1_800_000, seeds * SEED_LIMIT_MS),
);

test('a seed replays identically (cluster)', async () => {
  const once = await simulateCluster(first);
  expect(await simulateCluster(first)).toEqual(once);
});
