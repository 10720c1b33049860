// Seeds of the simulation, a test file per mode so that they run side by side. SEEDS=500 SEED=1000 npm run simulate runs
// 500 from 1000 on; a failing seed is in the error's message and replays with SEEDS=1 SEED=<it>.
import { expect, test } from 'vitest';
import { simulate } from './simulate.ts';
import type { Mode } from './world.ts';

const seeds = Number(process.env['SEEDS'] ?? 4);
const first = Number(process.env['SEED'] ?? 1);

export function testSeeds(mode: Mode): void {
  test(`${seeds} seeds keep every promise (${mode})`, async () => {
    const failures: string[] = [];
    let lives = 0;
    let acked = 0;
    let rows = 0;
    let compacted = 0;
    let keys = 0;
    for (let seed = first; seed < first + seeds; seed += 1) {
      try {
        const outcome = await simulate(seed, mode);
        lives += outcome.lives;
        acked += outcome.acked;
        rows += outcome.rows;
        compacted += outcome.compacted;
        keys += outcome.keys;
      } catch (caught) {
        failures.push((caught as Error).message);
      }
    }
    expect(failures).toEqual([]);
    expect(lives).toBeGreaterThan(seeds);
    expect(acked).toBeGreaterThan(seeds * 20);
    expect(rows).toBeGreaterThan(seeds * 20);
    expect(compacted).toBeGreaterThan(seeds * 10);
    expect(keys).toBeGreaterThan(seeds * 2);
  }, 1_800_000);

  test(`a seed replays identically (${mode})`, async () => {
    const once = await simulate(first, mode);
    expect(await simulate(first, mode)).toEqual(once);
  }, 120_000);
}
