import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { MemoryObjectStore } from '../objects/memory.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { Flushed, FlushTarget } from './flush-target.ts';
import { objectTarget } from './object-target.ts';
import { type AppendRequest, OpenFlush } from './open-flush.ts';
import type { FlushReply, FlushRequest } from './sequencer-port.ts';
import { SlabPool } from './slab.ts';
import { testItem } from './test-items.ts';

const nobody: AppendRequest = { items: [], outcomes: [], remaining: 0, resolve: () => {} };
const slabs = SlabPool.create(4_096, 1);
const slab = slabs.acquire()!;

let clock: ManualClock;
/** What became of each PUT: resolve or reject it. */
let puts: { key: string; resolve(): void; reject(error: Error): void }[];
let committed: FlushRequest[];
let target: FlushTarget;

beforeEach(() => {
  clock = new ManualClock();
  puts = [];
  committed = [];
  const memory = new MemoryObjectStore(clock, 'test');
  const store: ObjectStore = Object.assign(Object.create(memory) as ObjectStore, {
    put: (key: string) =>
      new Promise<void>((resolve, reject) => {
        puts.push({ key, resolve, reject });
      }),
  });
  target = objectTarget({
    store,
    sequencer: {
      retireFiles: async () => {},
      roll: async () => {},
      submit: async (request) => {
        committed.push(request);
        return { objectKey: request.object!.key } as FlushReply;
      },
    },
    slabs,
    clusterId: 'AAAAAAAAAAAAAAAAAAAAAA',
    clock,
    ids: seededIds(seededPrng(1)),
    logger: silentLogger,
    metrics: noMetrics,
    hedgeMs: 100,
    hedgeShare: 0.05,
    giveUpMs: 1_000,
  });
});

function flush(number: number): Promise<Flushed> {
  const open = new OpenFlush(slab, 0, 0);
  open.add(testItem({ partitionId: 1 }), nobody, 0);
  return target.flush(open, new Uint8Array(16).fill(number));
}

const ids = () => committed.map((request) => request.flushId[0]);

test('flushes commit in order whatever order their PUTs end in', async () => {
  const flushes = [flush(1), flush(2), flush(3)];
  puts[2]!.resolve();
  puts[1]!.resolve();
  await clock.advance(1);
  expect(ids()).toEqual([]);
  puts[0]!.resolve();
  await Promise.all(flushes);
  expect(ids()).toEqual([1, 2, 3]);
});

test('a slow PUT is hedged under another key; the slab is held until both have ended', async () => {
  const flushing = flush(1);
  await clock.advance(100);
  expect(puts).toHaveLength(2);
  expect(puts[1]!.key).not.toBe(puts[0]!.key);
  puts[1]!.resolve();
  const { reply, settled } = await flushing;
  expect(reply.objectKey).toBe(puts[1]!.key);
  let ended = false;
  void settled!.then(() => {
    ended = true;
  });
  await clock.advance(1);
  expect(ended).toBe(false);
  puts[0]!.reject(new FloeError('cancelled', 'aborted'));
  await clock.advance(1);
  expect(ended).toBe(true);
  expect(committed).toHaveLength(1);
});

test('a PUT slower than nearly all others is hedged, a share of them at most', async () => {
  // As many as it takes to know what is usual: 60 ms each.
  for (let n = 0; n < 20; n += 1) {
    const flushing = flush(n);
    await clock.advance(60);
    puts.at(-1)!.resolve();
    await flushing;
  }
  expect(puts).toHaveLength(20);
  const hedgedAfter: number[] = [];
  for (let n = 0; n < 10; n += 1) {
    const before = puts.length;
    const startedMs = clock.monotonic();
    const flushing = flush(n);
    while (puts.length === before + 1 && clock.monotonic() - startedMs < 300)
      await clock.advance(5);
    hedgedAfter.push(clock.monotonic() - startedMs);
    puts.at(-1)!.resolve();
    await flushing;
  }
  expect(hedgedAfter.filter((ms) => ms <= 75).length).toBeGreaterThanOrEqual(1);
  expect(hedgedAfter.filter((ms) => ms <= 75).length).toBeLessThanOrEqual(3);
  // The others not before they count as lost.
  for (const ms of hedgedAfter) if (ms > 75) expect(ms).toBeGreaterThanOrEqual(100);
});

test('a refused PUT is tried again under a fresh key', async () => {
  const flushing = flush(1);
  puts[0]!.reject(new FloeError('conflict', '409'));
  await clock.advance(100);
  puts[1]!.resolve();
  await flushing;
  expect(puts[1]!.key).not.toBe(puts[0]!.key);
});

test('a PUT given up fails its flush for good and releases its successor', async () => {
  const first = flush(1);
  const second = flush(2);
  puts[1]!.resolve();
  const refused = expect(first).rejects.toMatchObject({ code: 'unavailable' });
  await clock.advance(1_000);
  await refused;
  await second;
  // Even if it arrives after all.
  puts[0]!.resolve();
  await clock.advance(1_000);
  expect(ids()).toEqual([2]);
});

test('what retrying can not cure fails at once', async () => {
  const flushing = flush(1);
  const refused = expect(flushing).rejects.toMatchObject({ code: 'unauthorized' });
  puts[0]!.reject(new FloeError('unauthorized', 'no'));
  await clock.advance(100);
  for (const put of puts.slice(1)) put.reject(new FloeError('unauthorized', 'no'));
  await refused;
  expect(ids()).toEqual([]);
});
