// Contract of claims to objects, for every store: maintainers that rewrite side by side, each under a lease of its own,
// never swap what another is at work on. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LeaseToken } from '../leases.ts';
import type { NewObjectEntry } from '../log.ts';
import type { ReplaceEntries } from '../objects.ts';
import { createTopic, Flushes, type OpenStore, type StoreUnderTest } from './store.ts';

const holder = (nodeId: number) => ({ nodeId, session: `session of ${nodeId}` });

/** Runs the suite on stores that `open` makes. */
export function claimsContract(name: string, open: OpenStore): void {
  describe(`claims contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    const objects = () => store.metadata.objects;
    const lease = async (nodeId: number, durationMs = 60_000): Promise<LeaseToken> => {
      const names = [`maintenance/compaction/${nodeId}`];
      const request = { names, holder: holder(nodeId), durationMs };
      const [token] = await store.metadata.leases.acquire(request);
      return token!;
    };

    /** An unsealed object with one record of a partition, and what replaces it. */
    async function openObject(): Promise<{ objectId: number; swap: ReplaceEntries }> {
      const [partitionId] = await createTopic(store.metadata, 1);
      const flush = new Flushes().of([{ partitionId: partitionId! }]);
      const [committed] = await store.metadata.log.commit([flush]);
      const { objectId, commitNumber } = committed!;
      const entry: NewObjectEntry = {
        partitionId: partitionId!,
        baseOffset: 0,
        endOffset: 1,
        ...{ indexPosition: 164, indexLength: 50, bytes: 100, recordCount: 1, runCount: 1 },
        ...{ maxTimestamp: 1, commitNumber },
      };
      const swap = {
        object: { key: 'stream/one', bytes: 214 },
        entries: [entry],
        replaced: [],
        openObjects: [objectId],
        nowMs: 2_000,
      };
      return { objectId, swap };
    }

    test('a claim is one maintainer’s, whole or not at all, and the last one counts', async () => {
      const [a, b] = [await lease(1), await lease(2)];
      expect(await objects().claim(a, [1, 2])).toBe(true);
      expect(await objects().claimedByOthers(a)).toEqual([]);
      expect(await objects().claimedByOthers(b)).toEqual([1, 2]);
      expect(await objects().claim(b, [7])).toBe(true);
      expect(await objects().claim(b, [2, 3])).toBe(false);
      expect(await objects().claimedByOthers(a)).toEqual([7]);
      expect(await objects().claim(a, [2, 4])).toBe(true);
      expect(await objects().claim(b, [1, 3])).toBe(true);
      expect([...(await objects().claimedByOthers(b))].sort()).toEqual([2, 4]);
      expect(await objects().claim(a, [])).toBe(true);
      expect(await objects().claimedByOthers(b)).toEqual([]);
    });

    test('a claim ends with its lease; who comes back late swaps nothing', async () => {
      const { objectId, swap } = await openObject();
      const dead = await lease(1, 0);
      const living = await lease(2);
      expect(await objects().claim(dead, [objectId])).toBe(true);
      expect(await objects().claimedByOthers(living)).toEqual([]);
      expect(await objects().claim(living, [objectId])).toBe(true);
      const late = objects().replace({ ...swap, lease: dead, claimed: true });
      await expect(late).rejects.toMatchObject({ code: 'conflict' });
      expect(await objects().notOpen([objectId])).toEqual([]);
      const done = await objects().replace({ ...swap, lease: living, claimed: true });
      // Again after a lost reply, when the maintainer has gone on.
      await objects().claim(living, []);
      expect(await objects().replace({ ...swap, lease: living, claimed: true })).toBe(done);
      expect(await objects().notOpen([objectId])).toEqual([objectId]);
    });

    test('under a lease that was taken nothing is claimed', async () => {
      const before = await lease(1);
      await store.metadata.leases.release([before.name], holder(1));
      const after = await lease(1);
      await expect(objects().claim(before, [1])).rejects.toMatchObject({ code: 'conflict' });
      expect(await objects().claim(after, [1])).toBe(true);
    });

    test('unsealed objects give way in the order of their commits, so that rows tile the log', async () => {
      const [partitionId] = await createTopic(store.metadata, 1);
      const flushes = new Flushes();
      const objectIds: number[] = [];
      for (let n = 0; n < 3; n += 1) {
        const flush = flushes.of([{ partitionId: partitionId! }], { key: `wal/${n}` });
        objectIds.push((await store.metadata.log.commit([flush]))[0]!.objectId);
      }
      const swap = (key: string, openObjects: readonly number[]): ReplaceEntries => {
        return { object: { key, bytes: 1 }, entries: [], replaced: [], openObjects, nowMs: 2_000 };
      };
      const [first, second, third] = objectIds as [number, number, number];
      for (const early of [[second], [third], [first, third]])
        await expect(objects().replace(swap('stream/1', early))).rejects.toMatchObject({
          code: 'conflict',
        });
      expect(await objects().notOpen(objectIds)).toEqual([]);
      await objects().replace(swap('stream/2', [second, first]));
      expect(await objects().notOpen(objectIds)).toEqual([first, second]);
      await objects().replace(swap('stream/3', [third]));
    });

    test('a swap that comes too late may name an object that was swept', async () => {
      const { objectId, swap } = await openObject();
      await expect(objects().replace({ ...swap, notAfterMs: 1_999 })).rejects.toMatchObject({
        code: 'conflict',
      });
      expect(await objects().notOpen([objectId])).toEqual([]);
      await objects().replace({ ...swap, notAfterMs: Number.MAX_SAFE_INTEGER });
    });
  });
}
