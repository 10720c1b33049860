// Contract of `QuotasMetadata` and `ResourceConfigsMetadata`, for every store: they keep what was set, and only that.
// Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OpenStore, StoreUnderTest } from './store.ts';

/** Runs the suite on stores that `open` makes. */
export function quotasContract(name: string, open: OpenStore): void {
  describe(`quotas contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    describe('client quotas', () => {
      test('keeps one entry per entity, whatever the order of its parts', async () => {
        const { quotas } = store.metadata;
        await quotas.alter([
          { entity: { user: 'u', 'client-id': null }, values: { producer_byte_rate: 10 } },
          { entity: { 'client-id': null, user: 'u' }, values: { request_percentage: 0.5 } },
          { entity: { ip: '10.0.0.1' }, values: { connection_creation_rate: 3 } },
        ]);
        expect(await quotas.list()).toEqual([
          {
            entity: { 'client-id': null, user: 'u' },
            values: { producer_byte_rate: 10, request_percentage: 0.5 },
          },
          { entity: { ip: '10.0.0.1' }, values: { connection_creation_rate: 3 } },
        ]);
      });

      test('removes keys, and an entity with its last one', async () => {
        const { quotas } = store.metadata;
        const entity = { user: null };
        await quotas.alter([{ entity, values: { producer_byte_rate: 1, consumer_byte_rate: 2 } }]);
        const left = await quotas.alter([{ entity, values: { producer_byte_rate: null } }]);
        expect(left).toEqual([{ entity, values: { consumer_byte_rate: 2 } }]);
        expect(await quotas.alter([{ entity, values: { consumer_byte_rate: null } }])).toEqual([]);
      });
    });

    test('keeps configs of groups and client metrics apart', async () => {
      const { resourceConfigs } = store.metadata;
      await resourceConfigs.alter('group', 'a', { x: '1', y: '2' });
      await resourceConfigs.alter('client-metrics', 'a', { x: '3' });
      expect(await resourceConfigs.alter('group', 'a', { x: null, z: '4' })).toEqual({
        y: '2',
        z: '4',
      });
      expect(await resourceConfigs.list()).toEqual([
        { kind: 'client-metrics', name: 'a', config: { x: '3' } },
        { kind: 'group', name: 'a', config: { y: '2', z: '4' } },
      ]);
    });
  });
}
