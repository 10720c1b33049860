// Chunks and zones in one process: how many requests reach the store, and what becomes of a dead owner.
import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { noMetrics } from '../../base/metrics.ts';
import { resolveSettings } from '../../base/settings.ts';
import { countingStore } from '../objects/decorators/counting.ts';
import { MemoryObjectStore } from '../objects/memory.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { ChunkCache } from './chunk-cache.ts';
import { readSettings } from './read-settings.ts';
import { type ZonePeer, type ZoneSource, zoneSource } from './zone-source.ts';

const KIB = 1024;
const WAL = 'cluster/wal/000000000000001-a.wal';
const STREAM = 'cluster/stream/000000000000001-a.log';
const clock = new ManualClock();
const bytes = Uint8Array.from({ length: 200 * KIB }, (_, n) => n * 7 + (n >> 8));
let store: ObjectStore;
let gets: string[];

beforeEach(async () => {
  gets = [];
  store = countingStore(new MemoryObjectStore(clock), clock, ({ operation, key }) => {
    if (operation === 'get') gets.push(key);
  });
  await store.put(WAL, bytes);
  await store.put(STREAM, bytes);
});

function open(): ZoneSource {
  const settings = resolveSettings(readSettings, { 'log.read.chunk.bytes': String(64 * KIB) });
  return zoneSource({ store, clock, metrics: noMetrics, settings });
}

async function read(source: ZoneSource, key: string, start: number, length: number) {
  const into = new Uint8Array(length);
  await source.read({ objectId: 1, key, generation: 0 }, [{ position: start, into }], {
    purpose: 'consumer',
  });
  expect(Buffer.compare(into, bytes.subarray(start, start + length))).toBe(0);
}

test('many partitions of one flush are one request', async () => {
  const source = open();
  await Promise.all(Array.from({ length: 50 }, (_, n) => read(source, WAL, n * KIB, KIB)));
  expect(gets).toHaveLength(1);
  await read(source, WAL, 10, 150 * KIB);
  expect(gets).toHaveLength(3);
});

test('what was compacted is read as it is asked for', async () => {
  const source = open();
  await read(source, STREAM, 5, 100 * KIB);
  await read(source, STREAM, 5, 100 * KIB);
  expect(gets).toEqual([STREAM, STREAM]);
});

test('an object that ends before is damaged, a missing one is missing', async () => {
  const source = open();
  const into = new Uint8Array(10);
  const ask = (key: string, position: number) =>
    source.read({ objectId: 1, key, generation: 0 }, [{ position, into }], { purpose: 'table' });
  await expect(ask(WAL, bytes.length - 5)).rejects.toMatchObject({ code: 'corrupt' });
  await expect(ask('cluster/wal/x.wal', 0)).rejects.toMatchObject({ code: 'not-found' });
});

test('the cache stays within its bound, and forgets what is gone', async () => {
  const cache = new ChunkCache({
    chunkBytes: 1_000,
    maxBytes: 10_000,
    fetch: async (_, start, length) => new Uint8Array(Math.max(0, Math.min(length, 5_500 - start))),
  });
  const into = new Uint8Array(5_500);
  for (let n = 0; n < 20; n += 1) {
    expect(await cache.read(`k${n}`, 0, into)).toBe(5_500);
    expect(cache.stats.bytes).toBeLessThanOrEqual(10_000);
  }
  cache.forget(['k19', 'k18']);
  expect(cache.stats.bytes).toBe(0);
  expect(await cache.read('k19', 5_400, into.subarray(0, 600))).toBe(100);
});

/** Nodes of one zone; the owner of a key is chosen by its last character. */
function zone(count: number) {
  const nodes = Array.from({ length: count }, open);
  const dead = new Set<number>();
  const served = { reads: 0 };
  const peers = nodes.map(
    (node, n): ZonePeer => ({
      read: async (key, range, signal) => {
        if (dead.has(n))
          return new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(new FloeError('timeout', 'dead'))),
          );
        served.reads += 1;
        return node.serve(key, range);
      },
    }),
  );
  const owner = (key: string) => key.charCodeAt(key.length - 5) % count;
  for (const [n, node] of nodes.entries())
    node.setOwners((key) => (owner(key) === n ? undefined : peers[owner(key)]));
  return { nodes, dead, served, owner };
}

test('bytes that came damaged are asked for again, of the store itself', async () => {
  const { nodes, owner } = zone(3);
  const keeper = nodes[owner(WAL)]!;
  const other = nodes[(owner(WAL) + 1) % 3]!;
  const { get } = store;
  let damaged = 1;
  store.get = async (...args) => {
    const found = await get.call(store, ...args);
    if (damaged-- > 0) found[100]! ^= 1;
    return found;
  };
  // The damage is kept by the owner, and handed on.
  for (const node of [keeper, other]) await expect(read(node, WAL, 0, KIB)).rejects.toThrow();
  other.distrust!(WAL);
  await read(other, WAL, 0, KIB);
  await expect(read(keeper, WAL, 0, KIB)).rejects.toThrow();
  keeper.distrust!(WAL);
  await read(keeper, WAL, 0, KIB);
  const asked = gets.length;
  for (const node of [keeper, other]) await read(node, WAL, KIB, KIB);
  expect(gets).toHaveLength(asked);
});

test('a zone asks for each chunk about once', async () => {
  const { nodes } = zone(3);
  for (let object = 0; object < 6; object += 1) {
    const key = `cluster/wal/00${object}${object}.wal`;
    await store.put(key, bytes.subarray(0, 60 * KIB));
    for (const node of nodes)
      await Promise.all([0, 1, 2, 3].map((n) => read(node, key, n * 10 * KIB, KIB)));
  }
  expect(gets).toHaveLength(6);
});

test('a dead owner costs its deadline once in a while, never the read', async () => {
  const { nodes, dead, owner } = zone(2);
  dead.add(owner(WAL));
  const reader = nodes[1 - owner(WAL)]!;
  const reading = read(reader, WAL, 0, KIB);
  await clock.advance(300);
  await reading;
  expect(gets).toHaveLength(1);
  // It rests meanwhile: no waiting.
  await read(reader, WAL, KIB, KIB);
  dead.clear();
  await clock.advance(2_000);
  const { served } = zone(2);
  expect(served.reads).toBe(0);
  await read(reader, WAL, 2 * KIB, KIB);
  expect(reader.stats.fetches).toBe(1);
});
