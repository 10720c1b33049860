// Contract of `NodesMetadata`, for every store, by its own clock. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { NodeRegistration } from '../nodes.ts';
import type { OpenStore, StoreUnderTest } from './store.ts';

const ALIVE_MS = 60_000;

function registration(session: string, nodeId?: number): NodeRegistration {
  return {
    nodeId,
    session,
    rack: 'a',
    roles: ['front', 'tables'],
    listeners: { PLAINTEXT: { host: 'h', port: 9092 } },
    hints: { host: 'h', port: 1 },
    http: 'http://h:2',
    version: '1.2.3',
    levels: { min: 1, max: 2 },
  };
}

/** Runs the suite on stores that `open` makes. */
export function nodesContract(name: string, open: OpenStore): void {
  describe(`nodes contract: ${name}`, () => {
    let store: StoreUnderTest;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());

    const nodes = () => store.metadata.nodes;
    const register = (session: string, nodeId?: number, aliveMs = ALIVE_MS) =>
      nodes().register(registration(session, nodeId), aliveMs);

    test('a node comes back as it was registered', async () => {
      expect(await register('s', 7)).toBe(7);
      const { nodeId: _id, ...described } = registration('s');
      const [found] = await nodes().list();
      expect(found).toMatchObject({ ...described, nodeId: 7, draining: false });
      expect(found!.silentMs).toBeLessThan(10_000);
      expect(found!.startedMs).toBeGreaterThan(1_600_000_000_000);
    });

    test('ids are assigned from the lowest, each to one living node, however many ask at once', async () => {
      await register('fixed', 2);
      const given = await Promise.all(['a', 'b', 'c', 'd'].map((session) => register(session)));
      expect(given.toSorted()).toEqual([1, 3, 4, 5]);
      // The same session again: its own.
      expect(await register('b')).toBe(given[1]);
    });

    test('a living node keeps its id; a silent one is followed by another session', async () => {
      await register('old', 1);
      await expect(register('new', 1)).rejects.toMatchObject({ code: 'conflict' });
      await expect.poll(() => register('new', 1, 20).catch(() => 0)).toBe(1);
      await expect(nodes().heartbeat(1, 'old', false)).rejects.toMatchObject({ code: 'conflict' });
      await nodes().leave(1, 'old');
      expect(await nodes().list()).toMatchObject([{ nodeId: 1, session: 'new' }]);
    });

    test('registering again under one session changes what is told and keeps the start', async () => {
      await register('s', 1);
      const [before] = await nodes().list();
      await nodes().register({ ...registration('s', 1), rack: 'b' }, ALIVE_MS);
      expect(await nodes().list()).toMatchObject([{ rack: 'b', startedMs: before!.startedMs }]);
    });

    test('heartbeats count anew and say who drains; a life that left is over', async () => {
      await register('s', 1);
      await nodes().heartbeat(1, 's', true);
      expect(await nodes().list()).toMatchObject([{ draining: true }]);
      await nodes().heartbeat(1, 's', false);
      expect(await nodes().list()).toMatchObject([{ draining: false }]);
      await nodes().leave(1, 's');
      await expect(nodes().heartbeat(1, 's', false)).rejects.toMatchObject({ code: 'conflict' });
      expect(await nodes().list()).toEqual([]);
    });

    test('silent nodes are told until they are forgotten', async () => {
      await register('s', 1);
      await nodes().forget(ALIVE_MS);
      expect(await nodes().list()).toHaveLength(1);
      const left = async () => {
        await nodes().forget(5);
        return (await nodes().list()).length;
      };
      await expect.poll(left).toBe(0);
    });
  });
}
