// Hints over real sockets of the loopback interface.
import { createConnection } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import type { NodeEndpoint } from '../../metadata/nodes.ts';
import type { ClusterNode } from '../cluster.ts';
import { countingMetrics } from '../testing/metrics.ts';
import { clusterNode } from '../testing/nodes.ts';
import { ClusterView } from '../view.ts';
import { encodeFrame } from './frames.ts';
import { Hints, type HintsOptions } from './hints.ts';

const secret = systemPrng.bytes(32);
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

interface TestNode {
  readonly view: ClusterView;
  readonly hints: Hints;
  readonly metrics: ReturnType<typeof countingMetrics>;
  readonly commits: number[];
  news: number;
  readonly gone: Set<string>;
  /** As others see it. */
  readonly node: ClusterNode;
}

async function start(nodeId: number, changes: Partial<HintsOptions> = {}): Promise<TestNode> {
  const session = systemIds.uuid();
  const view = new ClusterView(clusterNode(nodeId, { session }));
  const metrics = countingMetrics();
  const hints = await Hints.start({
    cluster: view,
    clusterId: 'cluster',
    secret,
    listen: { host: '127.0.0.1', port: 0 },
    maxPeers: 10,
    clock: systemClock,
    prng: systemPrng,
    logger: silentLogger,
    metrics,
    ...changes,
  });
  stops.push(() => hints.stop());
  const node = clusterNode(nodeId, { session, hints: hints.address });
  const started: TestNode = { view, hints, metrics, commits: [], news: 0, gone: new Set(), node };
  hints.onHint({
    commit: (commit) => started.commits.push(commit),
    news: () => {
      started.news += 1;
    },
    gone: (session) => void started.gone.add(session),
  });
  return started;
}

function meet(...all: readonly TestNode[]): void {
  const records = all.map(({ node }) => ({ ...node, silentMs: 0, startedMs: 0 }));
  for (const { view } of all) view.update(records, () => 5_000);
}

const connected = (node: TestNode, peers: number) =>
  expect.poll(() => node.metrics.value('floe_cluster_hint_peers')).toBe(peers);

test('what one commits all others hear of, the newest number', async () => {
  const [one, two, three] = [await start(1), await start(2), await start(3)];
  meet(one, two, three);
  await connected(one, 2);
  for (let commit = 1; commit <= 1_000; commit += 1) one.hints.committed(commit);
  await expect.poll(() => two.commits.at(-1)).toBe(1_000);
  await expect.poll(() => three.commits.at(-1)).toBe(1_000);
  // One frame on its way at a time: most numbers were never sent.
  expect(two.commits.length).toBeLessThan(20);
  expect(one.commits.filter((commit) => commit > 0)).toEqual([]);
  two.hints.committed(1_001);
  await expect.poll(() => one.commits.at(-1)).toBe(1_001);
});

test('news of nodes and leases is told beside', async () => {
  const [one, two] = [await start(1), await start(2)];
  meet(one, two);
  await connected(one, 1);
  await expect.poll(() => two.news).toBe(1);
  one.hints.changed();
  await expect.poll(() => two.news).toBe(2);
});

test('a peer that comes back hears again, and one that has gone is let go', async () => {
  const [one, two] = [await start(1), await start(2)];
  meet(one, two);
  await connected(one, 1);
  await two.hints.stop();
  await connected(one, 0);
  await expect.poll(() => one.gone).toContain(two.node.session);
  one.hints.committed(5);
  const again = await start(2);
  meet(one, again);
  await expect.poll(() => again.commits.at(-1)).toBe(5);
  one.view.update([], () => 5_000);
  await connected(one, 0);
});

test('the same peer at the same place is connected to again by itself', async () => {
  const [one, two] = [await start(1), await start(2)];
  meet(one, two);
  await connected(one, 1);
  const { address } = two.hints;
  await two.hints.stop();
  await connected(one, 0);
  const back = await start(2, { listen: address, cluster: two.view });
  one.hints.committed(9);
  await expect.poll(() => back.commits.at(-1)).toBe(9);
});

test('who has another secret is refused by both sides', async () => {
  const [one, two] = [await start(1), await start(2, { secret: systemPrng.bytes(32) })];
  meet(one, two);
  await expect.poll(() => one.metrics.value('floe_cluster_hints_refused_total')).toBeGreaterThan(0);
  await expect.poll(() => two.metrics.value('floe_cluster_hints_refused_total')).toBeGreaterThan(0);
  one.hints.committed(3);
  expect(two.commits).toEqual([]);
  expect(one.metrics.value('floe_cluster_hint_peers')).toBe(0);
});

/** Says `bytes` and tells when the other side hangs up. */
function say({ host, port }: NodeEndpoint, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host, port }, () => socket.write(bytes));
    socket.on('error', () => {});
    socket.on('close', () => resolve());
    stops.push(async () => {
      socket.destroy();
      reject(new Error('was never hung up on'));
    });
  });
}

test.each([
  ['noise', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ['a hint before it has shown who it is', encodeFrame({ type: 'hint', commit: 9, news: 1 })],
  ['a frame that never ends', Buffer.from([0x7f, 0xff, 0xff, 0xff, 1])],
])('a stranger with %s is hung up on, and counted', async (_, bytes) => {
  const node = await start(1);
  await say(node.hints.address, bytes);
  expect(node.metrics.value('floe_cluster_hints_refused_total')).toBe(1);
  expect(node.commits).toEqual([]);
});

test('there are only so many connections', async () => {
  const node = await start(1, { maxPeers: 1 });
  const first = createConnection({ ...node.hints.address });
  first.on('error', () => {});
  await new Promise<void>((resolve) => first.once('connect', resolve));
  await say(node.hints.address, new Uint8Array(0));
  expect(node.metrics.value('floe_cluster_hints_refused_total')).toBe(1);
  first.destroy();
});
