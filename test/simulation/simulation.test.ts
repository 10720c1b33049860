// Seeds of the log's simulation. SEEDS=500 SEED=1000 npm run simulate runs 500 from 1000 on; a failing seed is in
// the error's message and replays with SEEDS=1 SEED=<it>.
import { expect, test } from 'vitest';
import { simulate } from './simulate.ts';
import type { Mode } from './world.ts';

const seeds = Number(process.env['SEEDS'] ?? 4);
const first = Number(process.env['SEED'] ?? 1);
const modes: readonly Mode[] = ['local', 'object'];

for (const mode of modes) {
  test(`${seeds} seeds keep every promise (${mode})`, async () => {
    const failures: string[] = [];
    let lives = 0;
    let acked = 0;
    for (let seed = first; seed < first + seeds; seed += 1) {
      try {
        const outcome = await simulate(seed, mode);
        lives += outcome.lives;
        acked += outcome.acked;
      } catch (caught) {
        failures.push((caught as Error).message);
      }
    }
    expect(failures).toEqual([]);
    expect(lives).toBeGreaterThan(seeds);
    expect(acked).toBeGreaterThan(seeds * 20);
  }, 1_800_000);

  test(`a seed replays identically (${mode})`, async () => {
    const once = await simulate(first, mode);
    expect(await simulate(first, mode)).toEqual(once);
  });
}
