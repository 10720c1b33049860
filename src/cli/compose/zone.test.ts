// Three nodes of a rack over real HTTP: one request of the bucket for all, proofs, and an owner that is gone.
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { noMetrics } from '../../base/metrics.ts';
import { resolveSettings } from '../../base/settings.ts';
import type { ClusterNode } from '../../cluster/index.ts';
import { readSettings } from '../../storage/log/read-settings.ts';
import { zoneSource } from '../../storage/log/zone-source.ts';
import { countingStore } from '../../storage/objects/decorators/counting.ts';
import { MemoryObjectStore } from '../../storage/objects/memory.ts';
import { walKey } from '../../storage/paths.ts';
import { shareZone, ZONE_PATH } from './zone.ts';

const CLUSTER = 'AAECAwQFBgcICQoLDA0ODw';
const secret = Buffer.alloc(32, 5);
const apps: FastifyInstance[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

async function rack(count: number) {
  const gets: string[] = [];
  const memory = new MemoryObjectStore(systemClock);
  const store = countingStore(memory, systemClock, ({ operation, key }) => {
    if (operation === 'get') gets.push(key);
  });
  const settings = resolveSettings(readSettings, { 'log.zone.deadline.ms': '5000' });
  const nodes: ClusterNode[] = [];
  const sources = [];
  for (let nodeId = 0; nodeId < count; nodeId += 1) {
    const app = fastify();
    apps.push(app);
    const zone = zoneSource({ store, clock: systemClock, metrics: noMetrics, settings });
    sources.push(zone);
    const self = { nodeId, session: `s${nodeId}`, rack: 'a', http: null } as ClusterNode;
    // Always the first node.
    const cluster = { self, chosen: () => nodes[0] };
    shareZone(app, { zone, cluster, clusterId: CLUSTER, secret });
    const http = await app.listen({ host: '127.0.0.1', port: 0 });
    nodes.push({ ...self, http });
  }
  return { gets, memory, nodes, sources };
}

const read = async (source: ReturnType<typeof zoneSource>, key: string, position: number) => {
  const into = new Uint8Array(new SharedArrayBuffer(4));
  await source.read({ objectId: 1, key, generation: 0 }, [{ position, into }], {
    purpose: 'consumer',
  });
  return Buffer.from(into).toString();
};

test('the owner asks the bucket for all; without it each asks for itself', async () => {
  const { gets, memory, sources } = await rack(3);
  const key = walKey(CLUSTER, { timeMs: 1, id: 'x' });
  await memory.put(key, Buffer.from('0123456789'));
  for (const [n, source] of sources.entries())
    expect(await read(source, key, n)).toBe('0123456789'.slice(n, n + 4));
  expect(gets).toHaveLength(1);
  await apps.shift()!.close();
  expect(await read(sources[1]!, key, 5)).toBe('5678');
  expect(gets).toHaveLength(2);
});

test('only nodes are served, and flushes only', async () => {
  const { nodes, sources, memory } = await rack(2);
  await memory.put('other', Buffer.from('secret'));
  const asked = await fetch(`${nodes[0]!.http}${ZONE_PATH}?key=other&start=0&length=4`);
  expect(asked.status).toBe(403);
  // As many characters as a proof has, and more bytes.
  const headers = { 'x-floe-proof': 'é'.repeat(64) };
  const strange = await fetch(`${nodes[0]!.http}${ZONE_PATH}?key=other&start=0&length=4`, {
    headers,
  });
  expect(strange.status).toBe(403);
  const bad = await fetch(`${nodes[0]!.http}${ZONE_PATH}?key=other&start=-1&length=4`);
  expect(bad.status).toBe(400);
  // What isn't there is missing for all.
  const key = walKey(CLUSTER, { timeMs: 1, id: 'none' });
  await expect(read(sources[1]!, key, 0)).rejects.toMatchObject({ code: 'not-found' });
});
