// Contract of `ClusterMetadata`, for every store. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OpenStore, StoreUnderTest } from './store.ts';

/** Runs the suite on stores that `open` makes. */
export function clusterContract(name: string, open: OpenStore): void {
  describe(`cluster contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    test('the id is kept for good', async () => {
      expect(await store.metadata.cluster.clusterId()).toBeUndefined();
      await store.metadata.cluster.keepClusterId('one');
      await store.reopen();
      await store.metadata.cluster.keepClusterId('one');
      await expect(store.metadata.cluster.keepClusterId('two')).rejects.toMatchObject({
        code: 'conflict',
      });
      expect(await store.metadata.cluster.clusterId()).toBe('one');
    });

    test('the first secret holds for all', async () => {
      const secrets = [1, 2, 3].map((n) =>
        store.metadata.cluster.secret(new Uint8Array(32).fill(n)),
      );
      const [first, ...others] = (await Promise.all(secrets)).map((bytes) => [...bytes]);
      expect(others).toEqual([first, first]);
      await store.reopen();
      expect([...(await store.metadata.cluster.secret(new Uint8Array(32)))]).toEqual(first);
    });

    test('a restore waits to be confirmed', async () => {
      const { cluster } = store.metadata;
      await cluster.keepClusterId('one');
      expect(await cluster.incarnation()).toEqual({ restores: 0, confirmed: true });
      await store.restored();
      await store.reopen();
      expect(await store.metadata.cluster.incarnation()).toEqual({ restores: 1, confirmed: false });
      await store.metadata.cluster.confirmIncarnation();
      await store.metadata.cluster.confirmIncarnation();
      expect(await store.metadata.cluster.incarnation()).toEqual({ restores: 1, confirmed: true });
    });

    test('it says how large it is', async () => {
      const { cluster, topics } = store.metadata;
      const before = await cluster.bytes();
      expect(before).toBeGreaterThan(4096);
      for (let n = 0; n < 40; n += 1)
        await topics.create({
          topicId: `00000000-0000-4000-8000-0000000001${String(n).padStart(2, '0')}`,
          name: `large-${n}`,
          partitionCount: 1,
          config: { 'cleanup.policy': 'x'.repeat(8_000) },
          nowMs: 1,
        });
      expect(await cluster.bytes()).toBeGreaterThan(before);
    });

    test("the store's clock goes on", async () => {
      const before = await store.metadata.cluster.nowMs();
      expect(await store.metadata.cluster.nowMs()).toBeGreaterThanOrEqual(before);
      expect(before).toBeGreaterThan(1_600_000_000_000);
    });
  });
}
