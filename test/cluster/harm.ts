// What bad things have in common, whatever they strike (harms.ts).
import { setTimeout as sleep } from 'node:timers/promises';
import type { Prng } from '../../src/base/prng.ts';
import type { Member, TestCluster } from './cluster.ts';

/** Undone before it resolves. */
export type Harm = (prng: Prng) => Promise<void>;

/** One that is up. */
export function anyMember({ members }: TestCluster, prng: Prng): Member {
  const up = members.filter((member) => member.up);
  return up[prng.int(up.length)]!;
}

/** How long most harms last. */
export const someTime = (prng: Prng) => sleep(1_000 + prng.int(9_000));
