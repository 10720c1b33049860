import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, expect, test } from 'vitest';
import { systemClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { OWN_COMPACTION, soloCluster, soloLeases } from '../cluster/index.ts';
import { clusterNode } from '../cluster/testing/nodes.ts';
import type { NodeRecord } from '../metadata/nodes.ts';
import { openSqliteMetadata } from '../metadata/sqlite/index.ts';
import { clusterStatus, type StatusParts } from './cluster-status.ts';
import { clusterTable } from './commands/cluster.ts';

const metadata = openSqliteMetadata(':memory:');
const asked: (string | undefined)[] = [];
const peer = createServer((request, response) => {
  asked.push(request.headers.authorization);
  response.end(JSON.stringify({ nodeId: 2, commit: 3 }));
});
await new Promise<void>((resolve) => peer.listen(0, '127.0.0.1', resolve));
const peerUrl = `http://127.0.0.1:${(peer.address() as AddressInfo).port}`;
afterAll(() => {
  peer.close();
  metadata.close();
});

const record = (nodeId: number, changes: Partial<NodeRecord> = {}): NodeRecord => ({
  ...clusterNode(nodeId),
  silentMs: 0,
  startedMs: 1_000,
  ...changes,
});

function parts(records: readonly NodeRecord[], lastCommit: number): StatusParts {
  const self = clusterNode(1);
  return {
    aliveMs: 5_000,
    clock: systemClock,
    opened: {
      clusterId: 'C',
      log: { lastCommitNumber: lastCommit } as StatusParts['opened']['log'],
      metadata: { ...metadata, log: { lastCommitNumber: async () => 5 } } as never,
    },
    place: {
      cluster: soloCluster(self),
      leases: soloLeases({ self, clock: systemClock, logger: silentLogger }),
      follower: undefined,
      secret: undefined,
      records: () => records,
      refresh: async () => {},
      onNews: () => {},
      announce: async () => {},
      drain: async () => {},
    },
  };
}

test('a cluster as one node tells it', async () => {
  const holder = { nodeId: 2, session: 'session-2' };
  await metadata.leases.acquire({ names: ['groups/1', 'groups/2'], holder, durationMs: 60_000 });
  await metadata.leases.acquire({ names: ['table/x'], holder, durationMs: 60_000 });
  const own = [2, 7].map((nodeId) => `${OWN_COMPACTION}${nodeId}`);
  await metadata.leases.acquire({ names: own, holder, durationMs: 60_000 });
  await metadata.leases.release(['groups/2', own[1]!], holder);
  const records = [
    record(1),
    record(2, { rack: 'a', http: peerUrl }),
    record(3, { draining: true, http: 'http://127.0.0.1:1' }),
    record(4, { roles: [] }),
    record(5, { silentMs: 65_000 }),
  ];
  const status = await clusterStatus(parts(records, 4), { authorization: 'Basic xyz' });
  expect(status.nodes.map(({ state }) => state)).toEqual([
    'alive',
    'alive',
    'draining',
    'starting',
    'silent',
  ]);
  expect(status.nodes.map(({ commit, lag }) => [commit, lag])).toEqual([
    [4, 1],
    [3, 2],
    [null, null],
    [null, null],
    [null, null],
  ]);
  expect(status.nodes[1]!.leases).toEqual({ groups: 1, maintenance: 1, table: 1 });
  expect(status.leases.find(({ name }) => name === 'groups/2')).toMatchObject({
    nodeId: null,
    epoch: 1,
  });
  // Node 7 has gone, and with it whoever could hold its lease.
  const names = status.leases.map(({ name }) => name);
  expect(names).toEqual(['groups/1', 'groups/2', own[0], 'table/x']);
  // Asked in the name of who asks.
  expect(asked).toEqual(['Basic xyz']);

  const table = clusterTable(status, 3_601_000);
  expect(table).toContain('cluster C: 2 of 5 nodes alive, level 1, commit 5');
  expect(table).toMatch(/2 +alive +a .*groups 1, maintenance 1, table 1 +3 +2/);
  expect(table).toMatch(/3 +draining, no answer/);
  expect(table).toMatch(/5 +silent 1m/);
  expect(table).toContain('held by nobody: groups/2');
});
