import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { baseOffset, batchBytes, crcMatches, leaderEpoch } from '../../protocol/record-batch.ts';
import { LocalObjectStore } from '../objects/local.ts';
import { MemoryObjectStore } from '../objects/memory.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import type { ReadResult } from './log.ts';
import { type OpenedLog, openLog } from './open-log.ts';
import { readSettings } from './read-settings.ts';
import { logSettings } from './settings.ts';
import { testItem } from './test-items.ts';

let directory: string;
let opened: OpenedLog;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-open-'));
});
afterEach(async () => {
  await opened.stop();
  rmSync(directory, { recursive: true });
});

const localStore = () =>
  LocalObjectStore.open(join(directory, 'objects'), { clock: systemClock, ids: systemIds });

async function open(store: ObjectStore): Promise<OpenedLog> {
  opened = await openLog({
    dataDir: directory,
    store,
    settings: resolveSettings(
      { ...logSettings, ...readSettings },
      { 'log.slab.bytes': '262144', 'log.slab.count': '4', 'log.wal.file.bytes': '1048576' },
    ),
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    logger: silentLogger,
    logLevel: 'silent',
    metrics: noMetrics,
  });
  return opened;
}

async function createTopic(count: number): Promise<readonly number[]> {
  const topic = await opened.directory.create({
    topicId: systemIds.uuid(),
    name: 'orders',
    partitionCount: count,
    config: {},
    nowMs: 1,
  });
  return topic.partitions;
}

/** Base offsets and first payload byte of all batches of a partition, read in steps of `maxBytes`. */
async function readAll(partitionId: number, maxBytes: number): Promise<[number, number][]> {
  const found: [number, number][] = [];
  const end = opened.log.watermarks(partitionId)!.highWatermark;
  for (let offset = opened.log.watermarks(partitionId)!.logStartOffset; offset < end; ) {
    const result: ReadResult = await opened.log.read({
      partitions: [{ partitionId, offset, maxBytes }],
      maxBytes,
      isolation: 'read_committed',
      purpose: 'consumer',
    });
    expect(result.partitions[0]!.errorCode).toBe(0);
    for (const run of result.partitions[0]!.runs) {
      let next = run.baseOffset;
      for (let at = 0; at < run.bytes.length; at += batchBytes(run.bytes, at)) {
        expect(crcMatches(run.bytes, at)).toBe(true);
        if (run.patched) {
          expect(baseOffset(run.bytes, at)).toBe(next);
          expect(leaderEpoch(run.bytes, at)).toBe(0);
        }
        if (next >= offset) found.push([next, run.bytes[at + 61]!]);
        next += 1;
      }
      offset = next;
    }
    result.release();
  }
  return found;
}

const stores = [
  ['a local folder', localStore],
  ['an object store', async () => new MemoryObjectStore(systemClock, 'test')],
] as const;

for (const [name, makeStore] of stores) {
  test(`batches come back at their offsets, before and after a restart, on ${name}`, async () => {
    const store = await makeStore();
    await open(store);
    const partitions = await createTopic(3);
    const woken: number[] = [];
    opened.log.subscribe([partitions[0]!], (partitionId) => woken.push(partitionId));
    const sends = Array.from({ length: 90 }, (_, n) =>
      opened.log.append([
        testItem({ partitionId: partitions[n % 3]!, fill: n, bytes: n % 2 === 0 ? 9_000 : 50 }),
      ]),
    );
    const outcomes = (await Promise.all(sends)).flat();
    expect(outcomes.map((o) => o.errorCode)).toEqual(new Array(90).fill(0));
    expect(outcomes.map((o) => o.baseOffset)).toEqual(
      Array.from({ length: 90 }, (_, n) => Math.floor(n / 3)),
    );
    expect(woken.length).toBeGreaterThan(0);
    const expected = (p: number) => Array.from({ length: 30 }, (_, n) => [n, n * 3 + p]);
    for (const p of [0, 1, 2]) expect(await readAll(partitions[p]!, 20_000)).toEqual(expected(p));
    await opened.stop();
    await open(store);
    for (const p of [0, 1, 2]) {
      expect(opened.log.watermarks(partitions[p]!)).toMatchObject({ highWatermark: 30 });
      expect(await readAll(partitions[p]!, 20_000)).toEqual(expected(p));
    }
    const [more] = await opened.log.append([testItem({ partitionId: partitions[0]!, fill: 9 })]);
    expect(more!.baseOffset).toBe(30);
  });
}

test('a data directory is held by one process at a time', async () => {
  const store = await localStore();
  await open(store);
  const first = opened;
  await expect(open(store)).rejects.toMatchObject({ code: 'conflict' });
  opened = first;
});

test('single bad items are answered with their code', async () => {
  await open(await localStore());
  const [a] = await createTopic(1);
  const outcomes = await opened.log.append([
    testItem({ partitionId: 4711 }),
    testItem({ partitionId: a!, bytes: 300_000 }),
    testItem({ partitionId: a! }),
  ]);
  expect(outcomes.map((o) => o.errorCode)).toEqual([3, 10, 0]);
  const read = await opened.log.read({
    partitions: [
      { partitionId: 4711, offset: 0, maxBytes: 100 },
      { partitionId: a!, offset: 5, maxBytes: 100 },
      { partitionId: a!, offset: 0, maxBytes: 1 },
    ],
    maxBytes: 1,
    isolation: 'read_uncommitted',
    purpose: 'consumer',
  });
  expect(read.partitions.map((p) => p.errorCode)).toEqual([3, 1, 0]);
  expect(read.partitions[2]!.bytes).toBe(101);
  read.release();
  expect(await opened.log.deleteRecords(a!, -1)).toBe(1);
  expect(opened.log.watermarks(a!)).toMatchObject({ logStartOffset: 1 });
});
