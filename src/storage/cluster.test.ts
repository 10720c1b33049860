import { expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { seededIds, seededPrng, uuidToText } from '../base/prng.ts';
import { claimCluster, newClusterId } from './cluster.ts';
import { faultyStore, MemoryObjectStore, noFaults } from './objects/index.ts';
import { CLUSTER_KEY, clusterPrefix } from './paths.ts';

const fresh = () => new MemoryObjectStore(new ManualClock());
const ids = seededIds(seededPrng(1));
const [one, two, three] = [newClusterId(ids), newClusterId(ids), newClusterId(ids)];
const claim = (newId: string, expectedId?: string) => ({ newId, expectedId, nowMs: 7 });

test('the first start names the cluster, later ones find it', async () => {
  const store = fresh();
  const first = await claimCluster(store, claim(one));
  expect(first).toEqual({ clusterId: one, createdMs: 7, layout: 1 });
  expect(await claimCluster(store, claim(two))).toEqual(first);
  expect(await claimCluster(store, claim(two, one))).toEqual(first);
});

test('brokers that start at once agree', async () => {
  const store = fresh();
  const rivals = [one, two, three];
  const claimed = await Promise.all(rivals.map((id) => claimCluster(store, claim(id))));
  expect(new Set(claimed.map(({ clusterId }) => clusterId)).size).toBe(1);
});

test('metadata of another cluster refuses to start', async () => {
  const store = fresh();
  await claimCluster(store, claim(one));
  await expect(claimCluster(store, claim(three, two))).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(`belongs to cluster ${one}, the metadata to ${two}`),
  });
});

test('an empty store behind old metadata refuses to start, and stays empty', async () => {
  const store = fresh();
  await expect(claimCluster(store, claim(three, two))).rejects.toMatchObject({ code: 'conflict' });
  expect(await store.head(CLUSTER_KEY)).toBeUndefined();
});

test('a lost reply is looked up', async () => {
  const store = fresh();
  const clock = new ManualClock();
  const faults = { ...noFaults, loseReply: 1 };
  const faulty = faultyStore(store, { clock, prng: seededPrng(1) }, () => faults);
  expect(await claimCluster(faulty, claim(one))).toMatchObject({ clusterId: one });
});

test.each([
  ['', 'corrupt'],
  ['null', 'corrupt'],
  ['{"clusterId":"../x","layout":1}', 'corrupt'],
  ['{"clusterId":"AAAAAAAAAAAAAAAAAAAAAA","layout":2}', 'unsupported'],
])('cluster.json with %j is refused', async (content, code) => {
  const store = fresh();
  await store.put(CLUSTER_KEY, Buffer.from(content));
  await expect(claimCluster(store, claim(three))).rejects.toMatchObject({ code });
});

test('cluster ids are the UUID in base64url and fit keys', () => {
  const bytes = Uint8Array.from({ length: 16 }, (_, n) => n);
  const id = newClusterId({ uuid: () => uuidToText(bytes) });
  expect(id).toBe('AAECAwQFBgcICQoLDA0ODw');
  expect(clusterPrefix(id)).toBe(`${id}/`);
});
