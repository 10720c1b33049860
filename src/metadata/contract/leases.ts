// Contract of `LeasesMetadata`, for every store, by its own clock; and that writes assert them. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StoredGroup } from '../groups.ts';
import type { OpenStore, StoreUnderTest } from './store.ts';

const LONG = 60_000;
const SHORT = 30;
const holder = (nodeId: number) => ({ nodeId, session: `session of ${nodeId}` });

const group: StoredGroup = {
  kind: 'classic',
  groupId: 'g',
  protocolType: 'consumer',
  generation: 1,
  protocol: null,
  leaderId: null,
  members: [],
  stateSinceMs: 1,
};

/** Runs the suite on stores that `open` makes. */
export function leasesContract(name: string, open: OpenStore): void {
  describe(`leases contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    const leases = () => store.metadata.leases;
    const acquire = (nodeId: number, names: readonly string[], durationMs = LONG) =>
      leases().acquire({ names, holder: holder(nodeId), durationMs });

    test('free ones are taken, own ones renewed, those of others left alone', async () => {
      expect(await acquire(1, ['a', 'b', 'a'])).toEqual([
        { name: 'a', epoch: 1 },
        { name: 'b', epoch: 1 },
      ]);
      expect(await acquire(2, ['b', 'c'])).toEqual([{ name: 'c', epoch: 1 }]);
      expect(await acquire(1, ['a', 'b', 'c'])).toEqual([
        { name: 'a', epoch: 1 },
        { name: 'b', epoch: 1 },
      ]);
      expect(await acquire(1, [])).toEqual([]);
    });

    test('released ones are free at once, under the next epoch', async () => {
      await acquire(1, ['a', 'b']);
      await leases().release(['a', 'b'], holder(2));
      expect(await acquire(2, ['a', 'b'])).toEqual([]);
      await leases().release(['a'], holder(1));
      expect(await leases().list('')).toMatchObject([
        { name: 'a', epoch: 1, holder: undefined },
        { name: 'b', epoch: 1, holder: holder(1) },
      ]);
      expect(await acquire(2, ['a', 'b'])).toEqual([{ name: 'a', epoch: 2 }]);
    });

    test('an expired one names its last holder and is anybody’s, under the next epoch', async () => {
      await acquire(1, ['a'], SHORT);
      const remaining = async () => (await leases().list('a'))[0]!.remainingMs;
      expect(await remaining()).toBeLessThanOrEqual(SHORT);
      await expect.poll(remaining).toBeLessThanOrEqual(0);
      expect(await leases().list('a')).toMatchObject([{ epoch: 1, holder: holder(1) }]);
      expect(await acquire(2, ['a'])).toEqual([{ name: 'a', epoch: 2 }]);
      expect(await acquire(1, ['a'])).toEqual([]);
      // Its own, after the end: somebody else might have had it.
      await acquire(3, ['b'], SHORT);
      await expect.poll(async () => (await acquire(3, ['b'], SHORT))[0]?.epoch).toBe(2);
    });

    test('a node that starts again is another holder', async () => {
      await acquire(1, ['a']);
      const again = { nodeId: 1, session: 'another' };
      expect(await leases().acquire({ names: ['a'], holder: again, durationMs: LONG })).toEqual([]);
    });

    test('a list is of names that begin so', async () => {
      await acquire(1, ['groups/1', 'groups/10', 'table/x']);
      const names = (await leases().list('groups/1')).map((lease) => lease.name);
      expect(names).toEqual(['groups/1', 'groups/10']);
    });

    test('of many who want one at once, one gets it', async () => {
      const names = ['x', 'y', 'z'];
      const got = await Promise.all([1, 2, 3, 4, 5, 6].map((nodeId) => acquire(nodeId, names)));
      expect(
        got
          .flat()
          .map((token) => token.name)
          .toSorted(),
      ).toEqual(names);
    });

    test('T6: a write under an epoch that is over fails whole; under the present ones it lands', async () => {
      const { groups } = store.metadata;
      const [first] = await acquire(1, ['groups/1'], SHORT);
      await expect.poll(() => acquire(2, ['groups/1'])).toHaveLength(1);
      const mine = await acquire(1, ['groups/2']);
      const late = groups.write([{ kind: 'group', group }], [...mine, first!]);
      await expect(late).rejects.toMatchObject({ code: 'conflict' });
      expect(await groups.load()).toEqual([]);
      await groups.write([{ kind: 'group', group }], mine);
      expect(await groups.load()).toHaveLength(1);
    });
  });
}
