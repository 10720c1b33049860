// Consumers that stop reading hold on to what they were given: producers go on all the same, and memory stays bounded.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { batchEnd } from '../../protocol/record-batch.ts';
import { LocalObjectStore } from '../objects/local.ts';
import { nodeDisk } from './disk.ts';
import type { ReadResult } from './log.ts';
import { type InThreadLog, openInThread } from './open-in-thread.ts';
import { readSettings } from './read-settings.ts';
import { logSettings } from './settings.ts';
import { testItem } from './test-items.ts';

const SLABS = 6;
const SLAB_BYTES = 65_536;
const COPY_BYTES = 131_072;

let root: string;
let metadata: SqliteMetadata;
let opened: InThreadLog;
let partition: number;
const clock = new ManualClock();
const prng = seededPrng(1);

async function start(set: Readonly<Record<string, string>> = {}): Promise<void> {
  root = mkdtempSync(join(tmpdir(), 'floe-pressure-'));
  metadata = openSqliteMetadata(':memory:');
  const ids = seededIds(prng);
  opened = await openInThread({
    metadata,
    clusterId: 'AAECAwQFBgcICQoLDA0ODw',
    store: await LocalObjectStore.open(root, { clock, ids }),
    disk: nodeDisk(root),
    settings: resolveSettings(
      { ...logSettings, ...readSettings },
      {
        'log.slab.bytes': String(SLAB_BYTES),
        'log.slab.count': String(SLABS),
        'log.read.copy.bytes': String(COPY_BYTES),
        ...set,
      },
    ),
    clock,
    prng,
    ids,
    logger: silentLogger,
    metrics: noMetrics,
  });
  const topic = await opened.directory.create({
    topicId: ids.uuid(),
    name: 'busy',
    partitionCount: 1,
    config: {},
    nowMs: clock.now(),
  });
  partition = topic.partitions[0]!;
}

async function stop(): Promise<void> {
  await opened.stop();
  metadata.close();
  rmSync(root, { recursive: true });
}

beforeEach(() => start());
afterEach(stop);

const append = (bytes: number, fill = 1) =>
  opened.log.append([testItem({ partitionId: partition, bytes, fill })]);

/** What a consumer is given from `offset` on, and holds until it lets go. */
async function fetch(offset: number, maxBytes = 1_000_000): Promise<ReadResult> {
  const read = await opened.log.read({
    partitions: [{ partitionId: partition, offset, maxBytes }],
    maxBytes,
    isolation: 'read_uncommitted',
    purpose: 'consumer',
  });
  expect(read.partitions[0]!.errorCode).toBe(0);
  expect(read.partitions[0]!.bytes).toBeGreaterThan(0);
  return read;
}

test('however many readers hold what they read, no batch is refused and every reader is served', async () => {
  const held: ReadResult[] = [];
  let copied = 0;
  for (let n = 0; n < 60; n += 1) {
    const [outcome] = await append(20_000, n);
    expect(outcome).toMatchObject({ errorCode: 0, baseOffset: n });
    const read = await fetch(n);
    held.push(read);
    const [run] = read.partitions[0]!.runs;
    // What is shared is a slab or a block of the cache, what is not is a copy.
    if (!(run!.bytes.buffer instanceof SharedArrayBuffer)) copied += run!.bytes.length;
    expect(batchEnd(run!.bytes, 0)).toBe(run!.bytes.length);
    expect(run!.bytes.at(-1)).toBe(n);
  }
  // Readers hold two of six slabs; copies stop at their bound, but for one batch each.
  expect(copied).toBeLessThanOrEqual(60 * 20_061);
  expect(opened.slabs.free).toBeGreaterThan(0);
  for (const read of held) read.release();
  expect(opened.slabs.free).toBeGreaterThanOrEqual(SLABS - 4);
});

test('readers leave producers the slabs that may be in flight', async () => {
  await stop();
  await start({ 'log.slab.count': '40', 'log.in.flight.bytes': String(16 * SLAB_BYTES) });
  const held: ReadResult[] = [];
  for (let n = 0; n < 60; n += 1) {
    await append(60_000, n);
    held.push(await fetch(n));
  }
  const pinned = new Set(held.map((read) => read.partitions[0]!.runs[0]!.bytes.buffer));
  const slabs = [...pinned].filter((buffer) => buffer instanceof SharedArrayBuffer);
  // One is being filled.
  expect(slabs).toHaveLength(40 - 16 - 1);
  for (const read of held) read.release();
});

test('past the bound of copies a read returns one batch', async () => {
  for (let n = 0; n < 8; n += 1) await append(9_000, n);
  const held = [];
  // Two reads take the slabs that readers may hold; the next ones are copies of all that is there, until the bound.
  const sizes: number[] = [];
  for (let n = 0; n < 40; n += 1) {
    const read = await fetch(0);
    held.push(read);
    sizes.push(read.partitions[0]!.bytes);
    await append(9_000, 50 + n);
  }
  expect(Math.max(...sizes)).toBeGreaterThan(9_061);
  expect(sizes.at(-1)).toBeGreaterThan(0);
  for (const read of held) read.release();
});

test('without a free slab batches wait in order, and the log says it is congested', async () => {
  // Somebody (a worker of another thread) holds all slabs but the one being filled.
  await append(1_000);
  const taken: number[] = [];
  for (let slab = opened.slabs.acquire(); slab !== undefined; slab = opened.slabs.acquire())
    taken.push(slab.number);
  const first = append(60_000, 1);
  let relieved = false;
  const sent = [first, ...[2, 3, 4].map((fill) => append(60_000, fill))];
  expect(opened.log.congested).toBe(true);
  opened.log.whenRelieved(() => {
    relieved = true;
  });
  let done = 0;
  for (const outcome of sent) void outcome.then(() => (done += 1));
  for (let n = 0; n < 5; n += 1) {
    await clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
  }
  // The first has found room in the slab that is being filled.
  expect(done).toBe(1);
  expect(relieved).toBe(false);
  for (const number of taken.splice(0)) opened.slabs.release(number);
  const outcomes = [];
  for (const outcome of sent) {
    let over = false;
    void outcome.then(() => (over = true));
    for (let n = 0; !over && n < 1_000; n += 1) {
      await clock.advance(10);
      await new Promise((resolve) => setImmediate(resolve));
    }
    outcomes.push((await outcome)[0]!);
  }
  expect(outcomes.map(({ errorCode, baseOffset }) => [errorCode, baseOffset])).toEqual([
    [0, 1],
    [0, 2],
    [0, 3],
    [0, 4],
  ]);
  expect(relieved).toBe(true);
  expect(opened.log.congested).toBe(false);
});

test('what waits for a slab at the end is answered', async () => {
  await append(1_000);
  const taken: number[] = [];
  for (let slab = opened.slabs.acquire(); slab !== undefined; slab = opened.slabs.acquire())
    taken.push(slab.number);
  const waiting = append(65_000);
  await opened.log.stop();
  expect((await waiting)[0]).toMatchObject({ errorCode: 56 });
  for (const number of taken) opened.slabs.release(number);
});
