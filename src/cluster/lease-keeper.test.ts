import { afterEach, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import type { LeasesMetadata } from '../metadata/leases.ts';
import { LeaseKeeper, type LeasingNode } from './lease-keeper.ts';
import { memoryLeases } from './testing/memory-store.ts';
import { countingMetrics } from './testing/metrics.ts';
import { clusterNode } from './testing/nodes.ts';
import { ClusterView } from './view.ts';

const LEASE_MS = 3_000;

interface TestNode extends LeasingNode {
  working: boolean;
  session: string | undefined;
  readonly view: ClusterView;
  tell(): void;
}

/** A node that sees what it is told. */
function testNode(nodeId: number): TestNode {
  const view = new ClusterView(clusterNode(nodeId));
  const listeners = new Set<() => void>();
  return {
    view,
    cluster: view,
    working: true,
    session: `session-${nodeId}`,
    get holder() {
      return this.session === undefined ? undefined : { nodeId, session: this.session };
    },
    onSession(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    tell() {
      for (const listener of listeners) listener();
    },
  };
}

const clock = new ManualClock();
const keepers: LeaseKeeper[] = [];

function keeperOf(node: TestNode, leases: LeasesMetadata): LeaseKeeper {
  const keeper = new LeaseKeeper({
    node,
    leases,
    settings: { 'cluster.lease.ms': LEASE_MS },
    clock,
    logger: silentLogger,
    metrics: countingMetrics(),
    watched: ['groups/'],
  });
  keepers.push(keeper);
  return keeper;
}

afterEach(async () => {
  const stopped = keepers.splice(0).map((keeper) => keeper.stop());
  await clock.advance(0);
  await Promise.all(stopped);
});

/** A lease that notes what happens to it. */
function lease(name: string, calls: string[] = []) {
  return {
    name,
    role: 'coordinator' as const,
    gained: ({ epoch }: { readonly epoch: number }) => void calls.push(`gained ${epoch}`),
    lost: () => void calls.push('lost'),
  };
}

/** Two nodes that see each other. */
function pair(leases = memoryLeases(clock)) {
  const [one, two] = [testNode(1), testNode(2)];
  const record = (nodeId: number) => ({ ...clusterNode(nodeId), silentMs: 0, startedMs: 0 });
  const meet = () => {
    one.view.update([record(2)], () => 5_000);
    two.view.update([record(1)], () => 5_000);
  };
  return { one, two, meet, record, leases };
}

test('the chosen node holds, renews, and everybody knows', async () => {
  const { one, two, meet, leases } = pair();
  meet();
  const [a, b] = [keeperOf(one, leases), keeperOf(two, leases)];
  const names = Array.from({ length: 20 }, (_, n) => `groups/${n}`);
  for (const name of names) {
    a.want(lease(name));
    b.want(lease(name));
  }
  await clock.advance(10);
  for (let step = 0; step < 30; step += 1) {
    await clock.advance(500);
    for (const name of names) {
      const chosen = one.cluster.chosen(name, 'coordinator')!.nodeId;
      expect([a.held(name)?.epoch, b.held(name)?.epoch]).toEqual(
        chosen === 1 ? [1, undefined] : [undefined, 1],
      );
      if (step > 3) expect([a.holder(name), b.holder(name)]).toEqual([chosen, chosen]);
    }
  }
  expect(a.size + b.size).toBe(20);
});

test('a lease of a node’s own is wanted by it alone, as long as it has the role', async () => {
  const { one, two, meet, leases } = pair();
  meet();
  const [a, b] = [keeperOf(one, leases), keeperOf(two, leases)];
  const own = (nodeId: number) => ({ ...lease(`own/${nodeId}`), own: true });
  const stop = a.want(own(1));
  b.want(own(2));
  b.want({ ...own(3), role: 'maintenance' });
  two.view.describe({ ...clusterNode(2), roles: ['coordinator'] });
  for (let step = 0; step < 10; step += 1) await clock.advance(500);
  expect([a.held('own/1')?.epoch, b.held('own/2')?.epoch]).toEqual([1, 1]);
  expect(b.held('own/3')).toBeUndefined();
  await Promise.all([stop(), clock.advance(500)]);
  expect(a.held('own/1')).toBeUndefined();
});

test('a lease moves to the newly chosen, after work has ended', async () => {
  const { one, two, record, leases } = pair();
  const names = Array.from({ length: 10 }, (_, n) => `groups/${n}`);
  const a = keeperOf(one, leases);
  const ended: string[] = [];
  const waiting: (() => void)[] = [];
  let wait = true;
  for (const name of names) {
    a.want({
      ...lease(name),
      lost: () =>
        new Promise<void>((resolve) => {
          if (!wait) resolve();
          waiting.push(() => {
            ended.push(name);
            resolve();
          });
        }),
    });
  }
  await clock.advance(10);
  expect(a.size).toBe(10);

  const b = keeperOf(two, leases);
  for (const name of names) b.want(lease(name));
  one.view.update([record(2)], () => 5_000);
  two.view.update([record(1)], () => 5_000);
  const moved = names.filter((name) => one.cluster.chosen(name, 'coordinator')!.nodeId === 2);
  expect(moved.length).toBeGreaterThan(0);
  await clock.advance(600);
  // Not held any more from the first moment, but nobody else's before the work is over.
  for (const name of moved) expect([a.held(name), b.held(name)]).toEqual([undefined, undefined]);
  wait = false;
  for (const end of waiting) end();
  await clock.advance(600);
  for (const name of moved) expect(b.held(name)).toEqual({ name, epoch: 2 });
  expect(ended.toSorted()).toEqual(moved.toSorted());
});

test('without an answer a right ends before the store would give it to another', async () => {
  const store = memoryLeases(clock);
  let reachable = true;
  const leases: LeasesMetadata = {
    ...store,
    acquire: (request) => (reachable ? store.acquire(request) : new Promise(() => {})),
  };
  const calls: string[] = [];
  const keeper = keeperOf(testNode(1), leases);
  keeper.want(lease('groups/1', calls));
  await clock.advance(10);
  reachable = false;
  const askedMs = clock.monotonic();
  while (keeper.held('groups/1') !== undefined) await clock.advance(50);
  expect(clock.monotonic() - askedMs).toBeLessThan(LEASE_MS);
  await clock.advance(10);
  expect(calls).toEqual(['gained 1', 'lost']);
  keepers.splice(0);
});

test('work that does not begin is tried again elsewhere or later', async () => {
  const leases = memoryLeases(clock);
  const calls: string[] = [];
  const keeper = keeperOf(testNode(1), leases);
  let fail = true;
  keeper.want({
    ...lease('groups/1', calls),
    gained({ epoch }) {
      calls.push(`gained ${epoch}`);
      if (fail) throw new Error('no');
    },
  });
  await clock.advance(10);
  expect(calls).toEqual(['gained 1', 'lost']);
  expect((await leases.list('groups/'))[0]!.holder).toBeUndefined();
  fail = false;
  await clock.advance(LEASE_MS);
  expect(calls).toEqual(['gained 1', 'lost', 'gained 2']);
});

test('a new session begins with nothing', async () => {
  const leases = memoryLeases(clock);
  const node = testNode(1);
  const calls: string[] = [];
  const keeper = keeperOf(node, leases);
  keeper.want(lease('groups/1', calls));
  await clock.advance(10);
  node.session = undefined;
  expect(keeper.held('groups/1')).toBeUndefined();
  node.tell();
  await clock.advance(10);
  expect(calls).toEqual(['gained 1', 'lost']);
  node.session = 'another life';
  node.tell();
  await clock.advance(10);
  expect(calls).toEqual(['gained 1', 'lost', 'gained 2']);
  expect(keeper.held('groups/1')).toEqual({ name: 'groups/1', epoch: 2 });
});

test('what is no longer wanted is released, also all at once', async () => {
  const leases = memoryLeases(clock);
  const node = testNode(1);
  const keeper = keeperOf(node, leases);
  const stops = ['groups/1', 'groups/2', 'groups/3'].map((name) => keeper.want(lease(name)));
  await clock.advance(10);
  await stops[0]!();
  await clock.advance(10);
  const held = async () =>
    (await leases.list('')).filter(({ holder }) => holder !== undefined).map(({ name }) => name);
  expect(await held()).toEqual(['groups/2', 'groups/3']);
  node.working = false;
  await keeper.giveUp();
  expect(await held()).toEqual([]);
  expect(keeper.size).toBe(0);
});

test('a release whose fate is unknown keeps the name from being asked for', async () => {
  const store = memoryLeases(clock);
  let asked = 0;
  const leases: LeasesMetadata = {
    ...store,
    acquire(request) {
      asked += request.names.length;
      return store.acquire(request);
    },
    release: async () => {
      throw new Error('lost');
    },
  };
  const node = testNode(1);
  const keeper = keeperOf(node, leases);
  keeper.want(lease('groups/1'));
  await clock.advance(10);
  node.working = false;
  await clock.advance(LEASE_MS);
  expect(keeper.held('groups/1')).toBeUndefined();
  node.working = true;
  asked = 0;
  await clock.advance(LEASE_MS * 0.5);
  expect(asked).toBe(0);
  await clock.advance(LEASE_MS * 2);
  expect(keeper.held('groups/1')).toBeDefined();
});

test('a stop waits for the question under way, and what comes meanwhile starts no other', async () => {
  const store = memoryLeases(clock);
  const answers: (() => void)[] = [];
  const leases: LeasesMetadata = {
    ...store,
    async list(prefix) {
      await new Promise<void>((resolve) => answers.push(resolve));
      return store.list(prefix);
    },
  };
  const keeper = keeperOf(testNode(1), leases);
  await clock.advance(0);
  // The question under way is asked again once it is answered, and so is each after it.
  let stopped = false;
  const stopping = keeper.stop().then(() => {
    stopped = true;
  });
  for (let n = 0; n < 3; n += 1) {
    keeper.lookAgain();
    answers.shift()!();
    await clock.advance(0);
    expect([stopped, answers.length]).toEqual([false, 1]);
  }
  answers.shift()!();
  await stopping;
  keeper.lookAgain();
  await clock.advance(LEASE_MS);
  expect(answers).toEqual([]);
});
