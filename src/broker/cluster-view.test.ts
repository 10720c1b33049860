import { expect, test } from 'vitest';
import type { Cluster, ClusterNode, Leases } from '../cluster/cluster.ts';
import { chooseNode } from '../cluster/index.ts';
import { clusterNode } from '../cluster/testing/nodes.ts';
import { shardOf } from '../metadata/shards.ts';
import { type ClusterView, clusterView } from './cluster-view.ts';

const listeners = (port: number) => ({ PLAINTEXT: { host: 'there', port } });

function viewOf(nodes: readonly ClusterNode[], holders: Record<string, number> = {}): ClusterView {
  const self = nodes[0]!;
  const cluster: Cluster = {
    self,
    nodes: () => nodes,
    chosen: (key, role, rack) =>
      chooseNode(
        key,
        nodes.filter(({ roles }) => roles.includes(role)),
        rack,
      ),
    level: () => 1,
    onChange: () => () => {},
  };
  const leases: Leases = {
    held: () => undefined,
    want: () => async () => {},
    holder: (name) => holders[name],
  };
  const endpoint = () => ({ host: 'here', port: 1 });
  return clusterView({ clusterId: 'c', logDirectory: 'd', cluster, leases, endpoint });
}

const nodes = [
  clusterNode(3, { rack: 'a', listeners: listeners(3) }),
  clusterNode(5, { rack: 'b', listeners: listeners(5) }),
  clusterNode(6, { rack: 'b', listeners: listeners(6) }),
  clusterNode(7, { rack: 'b', roles: ['tables'], listeners: listeners(7) }),
  clusterNode(8, { rack: 'b', listeners: { OTHER: { host: 'there', port: 8 } } }),
];

test('brokers are the living fronts with the client’s listener, this one by its own address', () => {
  const view = viewOf(nodes);
  expect(view.brokers('PLAINTEXT')).toEqual([
    { nodeId: 3, rack: 'a', host: 'here', port: 1 },
    { nodeId: 5, rack: 'b', host: 'there', port: 5 },
    { nodeId: 6, rack: 'b', host: 'there', port: 6 },
  ]);
  expect(view.controllerId('PLAINTEXT')).toBe(3);
});

test('a node that nobody has heard of yet is a broker to whom it answers', () => {
  const view = viewOf([clusterNode(3, { roles: [], listeners: {} })]);
  expect(view.brokers('PLAINTEXT')).toEqual([{ nodeId: 3, rack: null, host: 'here', port: 1 }]);
  expect(view.leaders('PLAINTEXT', null)(1)).toBe(3);
});

test('leaders are in the client’s rack where it has brokers, spread over them, and always brokers', () => {
  const view = viewOf(nodes);
  const led = (rack: string | null) => {
    const leaderOf = view.leaders('PLAINTEXT', rack);
    return new Set(Array.from({ length: 200 }, (_, id) => leaderOf(id)));
  };
  expect(led('a')).toEqual(new Set([3]));
  // Partitions of a node without the listener go to the first broker.
  expect(led('b')).toEqual(new Set([3, 5, 6]));
  expect(led(null)).toEqual(new Set([3, 5, 6]));
});

test('the coordinator is the holder of the shard’s lease, if it lives and has the listener', () => {
  const holders = {
    [`groups/${shardOf('g')}`]: 5,
    [`groups/${shardOf('gone')}`]: 9,
    [`groups/${shardOf('other')}`]: 8,
    [`transactions/${shardOf('g')}`]: 3,
  };
  const view = viewOf(nodes, holders);
  expect(view.coordinator('groups', 'g', 'PLAINTEXT')).toMatchObject({ nodeId: 5, port: 5 });
  expect(view.coordinator('transactions', 'g', 'PLAINTEXT')).toMatchObject({ nodeId: 3, port: 1 });
  expect(view.coordinator('groups', 'gone', 'PLAINTEXT')).toBeUndefined();
  expect(view.coordinator('groups', 'other', 'PLAINTEXT')).toBeUndefined();
  const taken = new Set(['g', 'gone', 'other'].map(shardOf));
  const free = ['a', 'b', 'c', 'd'].find((key) => !taken.has(shardOf(key)))!;
  expect(view.coordinator('groups', free, 'PLAINTEXT')).toBeUndefined();
});
