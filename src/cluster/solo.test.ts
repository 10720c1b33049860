import { expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { AFTER_FAULT_MS, soloCluster, soloLeases } from './solo.ts';
import { clusterNode } from './testing/nodes.ts';

const clock = new ManualClock();

test('one node alone is chosen for what it has the role for', () => {
  const self = clusterNode(3, { roles: ['front', 'tables'] });
  const cluster = soloCluster(self);
  expect(cluster.nodes()).toEqual([self]);
  expect(cluster.chosen('p/1', 'front', 'elsewhere')).toBe(self);
  expect(cluster.chosen('groups/1', 'coordinator')).toBeUndefined();
  expect(cluster.level()).toBe(1);
});

test('what is wanted is held at once, until it is no longer wanted', async () => {
  const leases = soloLeases({ self: clusterNode(3), clock, logger: silentLogger });
  const calls: unknown[] = [];
  const stop = leases.want({
    name: 'groups/1',
    role: 'coordinator',
    gained: (token) => void calls.push(token),
    lost: () => void calls.push('lost'),
  });
  expect(leases.held('groups/1')).toEqual({ name: 'groups/1', epoch: 1 });
  expect(leases.holder('groups/1')).toBe(3);
  expect(leases.held('groups/2')).toBeUndefined();
  await stop();
  await stop();
  expect(leases.held('groups/1')).toBeUndefined();
  expect(leases.holder('groups/1')).toBeUndefined();
  expect(calls).toEqual([{ name: 'groups/1', epoch: 1 }, 'lost']);
});

test('a lease of another role is not held', () => {
  const self = clusterNode(3, { roles: ['front'] });
  const leases = soloLeases({ self, clock, logger: silentLogger });
  leases.want({
    name: 'maintenance/log',
    role: 'maintenance',
    gained: () => expect.unreachable(),
    lost: () => expect.unreachable(),
  });
  expect(leases.held('maintenance/log')).toBeUndefined();
});

test('work that fails to begin is begun again after a while', async () => {
  const leases = soloLeases({ self: clusterNode(3), clock, logger: silentLogger });
  const calls: string[] = [];
  leases.want({
    name: 'table/x',
    role: 'tables',
    async gained() {
      calls.push('gained');
      if (calls.length === 1) throw new Error('not now');
    },
    lost: () => void calls.push('lost'),
  });
  await clock.advance(0);
  expect(calls).toEqual(['gained', 'lost']);
  expect(leases.held('table/x')).toBeUndefined();
  await clock.advance(AFTER_FAULT_MS);
  expect(calls).toEqual(['gained', 'lost', 'gained']);
  expect(leases.held('table/x')).toBeDefined();
});
