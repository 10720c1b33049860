// What a bucket does on a bad day, and what lies outside all that S3 promises.
import type { Prng } from '../../src/base/prng.ts';
import { type FaultKind, type FaultRule, faultKinds } from '../s3/double-faults.ts';
import type { TestCluster } from './cluster.ts';
import { anyMember, type Harm, someTime } from './harm.ts';

/** Those that strike together, at random; the others have harms of their own. */
const USUAL: readonly FaultKind[] = faultKinds.filter(
  (kind) => !['unconditional', 'denied', 'stale', 'missing', 'never', 'never-after'].includes(kind),
);

export function bucketHarms(cluster: TestCluster): Record<string, Harm> {
  let tags = 0;
  /** Two may be at work, and each ends its own. */
  const during = async <T>(rules: readonly FaultRule[], work: () => Promise<T>): Promise<T> => {
    tags += 1;
    const tag = String(tags);
    for (const rule of rules) await cluster.s3.fault({ ...rule, tag });
    const result = await work();
    await cluster.s3.clearFaults(tag);
    return result;
  };
  const meanwhile = (prng: Prng, rules: readonly FaultRule[]) =>
    during(rules, () => someTime(prng));
  const share = (prng: Prng) => 0.1 + prng.int(5) / 10;
  return {
    async 'bucket-faults'(prng) {
      const rules = Array.from({ length: 1 + prng.int(2) }, () => ({
        kind: USUAL[prng.int(USUAL.length)]!,
        share: share(prng),
        ms: 200 + prng.int(3_000),
      }));
      await meanwhile(prng, rules);
    },
    /** Damage on the way to the store, and on the way back. */
    'bucket-damage': (prng) =>
      meanwhile(prng, [
        { kind: 'checksum', share: share(prng) },
        { kind: 'corrupt', verbs: ['get'], share: 0.05 },
      ]),
    /** No object may be found for a while, however long it is there. */
    'bucket-missing': (prng) =>
      meanwhile(prng, [{ kind: 'missing', verbs: ['get', 'head', 'list'], share: share(prng) }]),
    'bucket-stale': (prng) =>
      meanwhile(prng, [{ kind: 'stale', verbs: ['get', 'head'], share: share(prng) }]),
    'bucket-silent': (prng) =>
      meanwhile(prng, [
        { kind: 'never', share: share(prng) },
        { kind: 'never-after', share: share(prng) },
      ]),
    'bucket-denied': (prng) =>
      meanwhile(prng, [{ kind: 'denied', share: prng.int(2) === 0 ? 1 : share(prng) }]),
    'bucket-skew': (prng) => meanwhile(prng, [{ kind: 'skew', share: share(prng) }]),
    /** Who runs goes on; nobody starts on such a store. */
    async 'bucket-unconditional'(prng) {
      const member = anyMember(cluster, prng);
      const why = await during([{ kind: 'unconditional' }], async () => {
        await someTime(prng);
        // Down: another harm has taken it away, and is about to bring it back.
        if (!member.up) return 'not tried';
        await member.kill();
        return member.startInVain();
      });
      if (why === undefined)
        throw new Error(`broker ${member.nodeId} started on a store that ignores conditions`);
      await member.start();
    },
  };
}
