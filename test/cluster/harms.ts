// Bad things that happen to a cluster, each undone before it resolves; and pairs of them at once. Chance comes from the
// caller's seed; when they really strike depends on the machine.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Prng } from '../../src/base/prng.ts';
import { type FaultKind, faultKinds } from '../s3/double-faults.ts';
import type { Member, TestCluster } from './cluster.ts';
import type { Relay } from './relay.ts';

export type Harm = (prng: Prng) => Promise<void>;

/** What a bucket does on a bad day; the others lie outside what S3 promises, or would stop anybody for good. */
const BUCKET_FAULTS: readonly FaultKind[] = faultKinds.filter(
  (kind) => !['unconditional', 'denied', 'stale', 'missing', 'never', 'never-after'].includes(kind),
);

/** A zombie: longer than any lease. */
const LONG_PAUSE_MS = 20_000;

/** By name. */
export function harmsOf(cluster: TestCluster): Record<string, Harm> {
  const any = (prng: Prng) => {
    const up = cluster.members.filter((member) => member.up);
    return up[prng.int(up.length)]!;
  };
  const relayed = (relayOf: (member: Member) => Relay, direction: 'both' | 'one-way' | 'slow') => {
    return async (prng: Prng) => {
      const relay = relayOf(any(prng));
      relay.trouble = troubleOf(direction, prng);
      await sleep(1_000 + prng.int(9_000));
      relay.trouble = {};
      if (prng.int(2) === 0) relay.reset();
    };
  };
  const single: Record<string, Harm> = {
    async kill(prng) {
      const member = any(prng);
      await member.kill();
      await sleep(prng.int(8_000));
      await member.start();
    },
    async restart(prng) {
      const member = any(prng);
      const code = await member.stop();
      if (code !== 0) throw new Error(`SIGTERM ended broker ${member.nodeId} with ${code}`);
      await member.start();
    },
    async pause(prng) {
      const { pid } = any(prng).node;
      process.kill(pid, 'SIGSTOP');
      await sleep(prng.int(3) === 0 ? LONG_PAUSE_MS : 500 + prng.int(7_000));
      process.kill(pid, 'SIGCONT');
    },
    'database-crash': () => cluster.postgres.crash(),
    'database-cut': relayed((member) => member.postgres, 'both'),
    'database-one-way': relayed((member) => member.postgres, 'one-way'),
    'database-slow': relayed((member) => member.postgres, 'slow'),
    'bucket-cut': relayed((member) => member.s3, 'both'),
    'bucket-one-way': relayed((member) => member.s3, 'one-way'),
    async 'bucket-faults'(prng) {
      for (let n = 1 + prng.int(2); n > 0; n -= 1) {
        const kind = BUCKET_FAULTS[prng.int(BUCKET_FAULTS.length)]!;
        await cluster.s3.fault({ kind, share: 0.1 + prng.int(5) / 10, ms: 200 + prng.int(3_000) });
      }
      await sleep(1_000 + prng.int(9_000));
      await cluster.s3.clearFaults();
    },
  };
  const names = Object.keys(single);
  return {
    ...single,
    async 'two-at-once'(prng) {
      const first = names[prng.int(names.length)]!;
      const second = names[prng.int(names.length)]!;
      // The second may find nobody to strike: all that is left must stay up.
      await Promise.all([
        single[first]!(prng),
        sleep(prng.int(1_000)).then(() => gently(single[second]!, prng)),
      ]);
    },
  };

  async function gently(harm: Harm, prng: Prng): Promise<void> {
    if (cluster.members.filter((member) => member.up).length > 1) await harm(prng);
  }
}

function troubleOf(direction: 'both' | 'one-way' | 'slow', prng: Prng): Relay['trouble'] {
  if (direction === 'slow') return { toServerMs: 20 + prng.int(500) };
  if (direction === 'both') return { toServerMs: Infinity, toClientMs: Infinity };
  return prng.int(2) === 0 ? { toServerMs: Infinity } : { toClientMs: Infinity };
}
