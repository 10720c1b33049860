// What happens to the database of a cluster: crashes and failovers at any moment and at the worst one, disks that are full
// or slow, statements that the server breaks off.
import type { Prng } from '../../src/base/prng.ts';
import type { TestCluster } from './cluster.ts';
import { type Harm, someTime } from './harm.ts';
import type { LostAnswers } from './relay.ts';
import { REFUSALS } from './triggers.ts';

export function databaseHarms(cluster: TestCluster): Record<string, Harm> {
  const { postgres } = cluster;
  /** Commits happen, and nobody hears of it. */
  const unheard = async (prng: Prng, lose: Pick<LostAnswers, 'share' | 'onLost'>) => {
    const rule = { asked: 'COMMIT', done: 'COMMIT\0', chance: () => prng.next(), ...lose };
    for (const member of cluster.members) member.postgres.trouble = { lose: rule };
    await someTime(prng);
    for (const member of cluster.members) member.postgres.trouble = {};
  };
  /** The first commit of all whose answer is lost is the last that the server did. */
  const atCommit = (strike: () => Promise<void>): Harm => {
    return async (prng) => {
      let struck: Promise<void> | undefined;
      const onLost = () => {
        struck ??= strike();
        struck.catch(() => {});
      };
      await unheard(prng, { share: 0.1, onLost });
      await struck;
    };
  };
  const harms: Record<string, Harm> = {
    'database-crash': () => postgres.crash(),
    'lost-commit-replies': (prng) => unheard(prng, { share: 0.05 + prng.int(30) / 100 }),
    'crash-at-commit': atCommit(() => postgres.crash()),
  };
  const { pair } = postgres;
  if (pair === undefined) return harms;
  return {
    ...harms,
    failover: () => pair.failover(),
    'failover-at-commit': atCommit(() => pair.failover()),
    async 'database-disk-full'(prng) {
      const ms = 1_000 + prng.int(7_000);
      // Where no disk can be filled, what the server says then.
      if (!(await pair.fullDisk(ms))) await pair.refuse('53100', 1, ms);
    },
    'database-slow-sync': (prng) => pair.slowSync(20 + prng.int(80), 2_000 + prng.int(8_000)),
    'database-stands-still': (prng) => pair.standStill(500 + prng.int(9_000)),
    async 'database-refuses'(prng) {
      const state = REFUSALS[prng.int(REFUSALS.length)]!;
      await pair.refuse(state, (1 + prng.int(5)) / 10, 1_000 + prng.int(9_000));
    },
  };
}
