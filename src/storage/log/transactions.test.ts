// Transactions through the whole log: what readers see while they are open and after they ended, and
// that it stays so, byte by byte, from the tail to compacted objects and over restarts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import type { TransactionEvent, TransactionState } from '../../metadata/transactions.ts';
import {
  batchBytes,
  crcMatches,
  isControl,
  lastOffsetDelta,
  patchBaseOffset,
  patchLeaderEpoch,
  producerEpoch,
  producerId,
} from '../../protocol/record-batch.ts';
import { LocalObjectStore } from '../objects/local.ts';
import { MemoryObjectStore } from '../objects/memory.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { Compactor } from './compactor.ts';
import { CONTROL_BATCH_BYTES } from './control-batch.ts';
import { nodeDisk } from './disk.ts';
import type { Isolation, ReadPartitionResult } from './log.ts';
import { localRoot, withVisibleEnds } from './open-front.ts';
import { openInThread } from './open-in-thread.ts';
import { type OpenedLog, openLog } from './open-log.ts';
import { readSettings } from './read-settings.ts';
import { logSettings } from './settings.ts';
import { testItem } from './test-items.ts';
import { TEST_CLUSTER } from './test-log.ts';

/** The log in threads or, faster, in this one. */
type Node = Pick<OpenedLog, 'log' | 'metadata' | 'directory' | 'reader' | 'source'> & {
  readonly clusterId: string;
  roll(): Promise<void>;
  stop(): Promise<void>;
};

let directory: string;
let opened: Node;
let store: ObjectStore;
let threads = false;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-txn-'));
  threads = false;
});
afterEach(async () => {
  await opened.stop();
  rmSync(directory, { recursive: true });
});

const common = {
  settings: resolveSettings(
    { ...logSettings, ...readSettings },
    { 'log.slab.bytes': '65536', 'log.slab.count': '6', 'log.read.crc.sample': '1' },
  ),
  clock: systemClock,
  prng: systemPrng,
  ids: systemIds,
  logger: silentLogger,
  metrics: noMetrics,
};

async function open(): Promise<void> {
  opened = threads
    ? await openLog({ ...common, dataDir: directory, store, logLevel: 'silent' })
    : await openHere();
}

async function openHere(): Promise<Node> {
  const metadata = openSqliteMetadata(join(directory, 'metadata.db'));
  const root = localRoot(store);
  const disk = root === undefined ? {} : { disk: nodeDisk(root) };
  const node = await openInThread({ ...common, ...disk, metadata, clusterId: TEST_CLUSTER, store });
  return {
    ...node,
    metadata: withVisibleEnds(metadata, node.log),
    clusterId: TEST_CLUSTER,
    roll: () => node.host.sequencer.roll(),
    async stop() {
      await node.stop();
      metadata.close();
    },
  };
}

async function reopen(): Promise<void> {
  await opened.stop();
  await open();
}

async function createTopic(count = 2): Promise<readonly number[]> {
  const topic = await opened.directory.create({
    topicId: systemIds.uuid(),
    name: `orders-${systemIds.uuid()}`,
    partitionCount: count,
    config: {},
    nowMs: 1,
  });
  return topic.partitions;
}

/** A client with one transactional id, counting its sequences as clients do. */
class Producer {
  state!: TransactionState;
  readonly #id: string;
  readonly #sequences = new Map<number, number>();
  constructor(id: string) {
    this.#id = id;
  }

  async init(): Promise<this> {
    await this.apply({ type: 'init', timeoutMs: 60_000 });
    return this;
  }

  async apply(event: TransactionEvent): Promise<number> {
    const request = { transactionalId: this.#id, event };
    const [outcome] = await opened.metadata.transactions.apply([request], 1_000);
    const before = this.state;
    if (outcome!.state !== undefined) this.state = outcome!.state;
    if (this.state.producerEpoch !== before?.producerEpoch) this.#sequences.clear();
    return outcome!.errorCode;
  }

  item(partitionId: number, fill = 1, bytes = 60) {
    const sequence = this.#sequences.get(partitionId) ?? 0;
    this.#sequences.set(partitionId, sequence + 1);
    const { producerId: id, producerEpoch: epoch, incarnation } = this.state;
    const transaction = { incarnation, mode: 'implicit' } as const;
    return testItem({ partitionId, producerId: id, epoch, sequence, fill, bytes, transaction });
  }

  async send(partitionId: number, fill = 1, bytes = 60): Promise<number> {
    const [outcome] = await opened.log.append([this.item(partitionId, fill, bytes)]);
    expect(outcome!.errorCode).toBe(0);
    return outcome!.baseOffset;
  }

  end(committed: boolean): Promise<number> {
    const { producerId: id, producerEpoch: epoch } = this.state;
    return this.apply({ type: 'end', committed, bump: true, producerId: id, producerEpoch: epoch });
  }
}

async function plain(partitionId: number, bytes = 60): Promise<void> {
  const [outcome] = await opened.log.append([testItem({ partitionId, fill: 9, bytes })]);
  expect(outcome!.errorCode).toBe(0);
}

interface Found {
  readonly offset: number;
  readonly control: boolean;
  /** As it goes over the wire. */
  readonly bytes: Buffer;
}

/** One read; checks CRCs, that offsets have no gap, and the sum of bytes. */
async function readOnce(
  partitionId: number,
  offset: number,
  more: { readonly maxBytes?: number; readonly isolation?: Isolation } = {},
): Promise<{ readonly result: ReadPartitionResult; readonly batches: Found[] }> {
  const { maxBytes = 1_000_000, isolation = 'read_uncommitted' } = more;
  const partitions = [{ partitionId, offset, maxBytes }];
  const read = await opened.log.read({ partitions, maxBytes, isolation, purpose: 'consumer' });
  const result = read.partitions[0]!;
  const batches: Found[] = [];
  let sum = 0;
  for (const run of result.runs) {
    let next = run.baseOffset;
    sum += run.bytes.length;
    for (let at = 0; at < run.bytes.length; at += batchBytes(run.bytes, at)) {
      expect(crcMatches(run.bytes, at)).toBe(true);
      const bytes = Buffer.from(run.bytes.slice(at, at + batchBytes(run.bytes, at)));
      patchBaseOffset(bytes, 0, next);
      patchLeaderEpoch(bytes, 0, 0);
      if (batches.length > 0) expect(next).toBe(batches.at(-1)!.offset + 1);
      batches.push({ offset: next, control: isControl(bytes), bytes });
      next += lastOffsetDelta(run.bytes, at) + 1;
    }
  }
  read.release();
  expect(result.bytes).toBe(sum);
  return { result, batches };
}

/** All batches from the log's start to its end, in reads of about `maxBytes`. */
async function readAll(partitionId: number, maxBytes: number, from = 0): Promise<Found[]> {
  const all: Found[] = [];
  const { highWatermark } = opened.log.watermarks(partitionId)!;
  for (let offset = from; offset < highWatermark; ) {
    const { batches } = await readOnce(partitionId, offset, { maxBytes });
    expect(batches.length).toBeGreaterThan(0);
    all.push(...batches);
    offset = batches.at(-1)!.offset + 1;
  }
  return all;
}

/** Compacts until nothing is left to do. */
async function compact(): Promise<number> {
  const { clusterId, source, metadata, reader } = opened;
  const compactor = new Compactor({
    clusterId,
    store,
    source,
    metadata,
    limits: {
      smallRunBytes: 0,
      gapBytes: 1024,
      smallShareBytes: 1_000_000,
      fanIn: 2,
      objectBytes: 10_000_000,
      minAgeMs: 0,
    },
    blockBytes: 4_096,
    clock: systemClock,
    ids: systemIds,
    logger: silentLogger,
    metrics: noMetrics,
    onReplaced: (objectIds) => reader.replaced(objectIds),
  });
  let steps = 0;
  while (steps < 20 && (await compactor.step()) > 0) steps += 1;
  return steps;
}

const stores = [
  [
    'a local folder',
    () => LocalObjectStore.open(join(directory, 'objects'), { clock: systemClock, ids: systemIds }),
  ],
  ['an object store', async () => new MemoryObjectStore(systemClock, 'test')],
] as const;

for (const [name, makeStore] of stores) {
  test(`an open transaction holds readers of committed records back, on ${name}`, async () => {
    store = await makeStore();
    threads = name === 'a local folder';
    await open();
    const [p, q] = (await createTopic()) as [number, number];
    const [a, b] = [await new Producer('a').init(), await new Producer('b').init()];
    await plain(p);
    const woken: string[] = [];
    const stable = () => opened.log.watermarks(p)!.lastStableOffset;
    opened.log.subscribe([p, q], (id) => woken.push(`${id}:${stable()}`));
    expect(await a.send(p)).toBe(1);
    await plain(p);
    expect(await b.send(p)).toBe(3);
    expect(opened.log.watermarks(p)).toMatchObject({ lastStableOffset: 1, highWatermark: 4 });
    const held = await readOnce(p, 0, { isolation: 'read_committed' });
    expect(held.batches.map(({ offset }) => offset)).toEqual([0]);
    expect((await readOnce(p, 1, { isolation: 'read_committed' })).batches).toEqual([]);
    expect((await readOnce(p, 0)).batches).toHaveLength(4);
    expect(await opened.log.offsetForTime(p, 0, 'read_committed')).toBeUndefined();
    await reopen();
    expect(opened.log.watermarks(p)).toMatchObject({ lastStableOffset: 1, highWatermark: 4 });
    opened.log.subscribe([p, q], (id) => woken.push(`${id}:${stable()}`));
    woken.length = 0;
    expect(await a.end(true)).toBe(0);
    // The answer comes after the log has moved.
    expect(opened.log.watermarks(p)).toMatchObject({ lastStableOffset: 3, highWatermark: 5 });
    expect(await b.end(false)).toBe(0);
    expect(opened.log.watermarks(p)).toMatchObject({ lastStableOffset: 6, highWatermark: 6 });
    expect(woken).toEqual([`${p}:3`, `${p}:6`]);
    const all = await readAll(p, 1_000_000);
    expect(all.map(({ control }) => control)).toEqual([false, false, false, false, true, true]);
    const whole = await readOnce(p, 0, { isolation: 'read_committed' });
    expect(whole.result.abortedTransactions).toEqual([
      { producerId: b.state.producerId, firstOffset: 3 },
    ]);
    expect((await readOnce(p, 0)).result.abortedTransactions).toEqual([]);
    const marker = all[5]!.bytes;
    expect([producerId(marker), producerEpoch(marker)]).toEqual([b.state.producerId, 1]);
    expect(marker.length).toBe(CONTROL_BATCH_BYTES);
  });

  test(`what was read stays, from the tail to compacted objects, on ${name}`, async () => {
    store = await makeStore();
    await open();
    const [p, q] = (await createTopic()) as [number, number];
    const [a, b] = [await new Producer('a').init(), await new Producer('b').init()];
    const fill = async () => {
      for (let n = 0; n < 6; n += 1) {
        await Promise.all([a.send(p, n, 700), a.send(q, n), plain(p, n % 2 === 0 ? 5_000 : 50)]);
        if (n % 2 === 0) await b.send(p, n);
        await a.end(n % 3 === 0);
        if (n % 2 === 1) await b.end(n % 4 === 1);
      }
    };
    await fill();
    const expected = new Map<number, Found[]>();
    for (const id of [p, q]) expected.set(id, await readAll(id, 1_000_000));
    expect(expected.get(p)!.filter(({ control }) => control).length).toBe(9);
    /** What readers of committed records leave out, read by read. */
    const aborted = async () => {
      const found = new Set<string>();
      const end = opened.log.watermarks(p)!.lastStableOffset;
      for (let offset = 0; offset < end; ) {
        const read = await readOnce(p, offset, { maxBytes: 9_000, isolation: 'read_committed' });
        for (const { producerId: by, firstOffset } of read.result.abortedTransactions)
          found.add(`${by}@${firstOffset}`);
        offset = read.batches.at(-1)!.offset + 1;
      }
      return [...found].sort();
    };
    let left = await aborted();
    expect(left.length).toBeGreaterThan(3);
    const check = async () => {
      for (const id of [p, q]) {
        for (const maxBytes of [78, 6_000])
          expect(await readAll(id, maxBytes)).toEqual(expected.get(id));
        for (const { offset } of expected.get(id)!.filter(({ control }) => control))
          expect((await readOnce(id, offset, { maxBytes: 1 })).batches[0]!.offset).toBe(offset);
      }
      expect(await aborted()).toEqual(left);
    };
    await check();
    await reopen();
    await check();
    await opened.roll();
    await reopen();
    await check();
    await fill();
    for (const id of [p, q]) expected.set(id, await readAll(id, 1_000_000));
    left = await aborted();
    await opened.roll();
    await check();
    expect(await compact()).toBeGreaterThan(0);
    await check();
    await reopen();
    await check();
    // Markers after everything before them was compacted.
    await a.send(q);
    expect(await compact()).toBeGreaterThanOrEqual(0);
    await a.end(true);
    expect((await readAll(q, 1_000)).at(-1)!.control).toBe(true);
    await reopen();
    expect((await readAll(q, 1_000)).at(-1)!.control).toBe(true);
    // On an object store the markers had an object of their own, without bytes: it is compacted like others.
    await opened.roll();
    await compact();
    const last = await readAll(q, 1_000);
    expect(last.at(-1)!.control).toBe(true);
    await reopen();
    expect(await readAll(q, 1_000)).toEqual(last);
    if (name === 'an object store') {
      const open = await opened.metadata.objects.list('open', 0, 10);
      expect(open).toEqual([]);
    }
  });
}

test('a batch admitted before the end of its transaction is refused after it (L6)', async () => {
  store = await stores[0][1]();
  await open();
  const [p] = (await createTopic()) as [number];
  const a = await new Producer('a').init();
  await a.send(p);
  const late = a.item(p);
  await a.end(true);
  const [stale] = await opened.log.append([late]);
  expect(stale!.errorCode).toBe(47);
  // Without a new epoch (v1) it is the incarnation that tells.
  const forged = testItem({
    partitionId: p,
    producerId: a.state.producerId,
    epoch: a.state.producerEpoch,
    sequence: 0,
    transaction: { incarnation: a.state.incarnation - 1, mode: 'verify' },
  });
  const [outside] = await opened.log.append([forged]);
  expect(outside!.errorCode).toBe(48);
  expect(opened.log.watermarks(p)).toMatchObject({ lastStableOffset: 2, highWatermark: 2 });
});

test('a file is sealed at so many commits, though ends of transactions take no bytes', async () => {
  const ports = { clock: systemClock, ids: systemIds };
  store = await LocalObjectStore.open(join(directory, 'objects'), ports);
  const before = common.settings['log.wal.file.commits'];
  Object.assign(common.settings, { 'log.wal.file.commits': 10 });
  try {
    await open();
    const [p] = await createTopic();
    const producer = await new Producer('a').init();
    for (let n = 0; n < 25; n += 1) {
      await producer.send(p!);
      await producer.end(n % 3 !== 0);
      const rows = await opened.metadata.log.flushesAfter(0, 100);
      // A commit more may come in before the file is sealed.
      expect(rows.length).toBeLessThanOrEqual(11);
    }
    const found = await readAll(p!, 1_000_000);
    expect(found.filter(({ control }) => control).length).toBe(25);
    await reopen();
    expect(await readAll(p!, 1_000_000)).toEqual(found);
  } finally {
    Object.assign(common.settings, { 'log.wal.file.commits': before });
  }
});

test('markers that join an object under its compaction are not lost with it', async () => {
  store = await stores[1][1]();
  await open();
  const [p] = (await createTopic(1)) as [number];
  const a = await new Producer('a').init();
  await a.send(p);
  const { objects } = opened.metadata;
  const [open1] = await objects.list('open', 0, 10);
  const [flush] = await objects.flushesOf([open1!.objectId]);
  await a.end(true);
  const swap = { object: { key: 'stream/x', bytes: 1 }, entries: [], replaced: [], nowMs: 1 };
  const openObjects = [open1!.objectId];
  await expect(
    objects.replace({ ...swap, openObjects, openCommit: flush!.commitNumber }),
  ).rejects.toMatchObject({ code: 'conflict' });
  await reopen();
  expect((await readAll(p, 1_000)).map(({ control }) => control)).toEqual([false, true]);
});

test('deleted records take aborted ranges along, a deleted topic its part of a transaction', async () => {
  store = await stores[0][1]();
  await open();
  const [p] = (await createTopic()) as [number];
  const [r] = (await createTopic(1)) as [number];
  const a = await new Producer('a').init();
  await a.send(p);
  await a.end(false);
  await a.send(p);
  await a.send(r);
  const { log, metadata, directory } = opened;
  expect(await metadata.log.abortedTransactions(p, 0, 2)).toHaveLength(1);
  await log.deleteRecords(p, 2);
  expect(await metadata.log.abortedTransactions(p, 0, 2)).toHaveLength(0);
  expect(log.watermarks(p)).toMatchObject({ logStartOffset: 2, lastStableOffset: 2 });
  await log.deleteRecords(p, -1);
  expect(log.watermarks(p)).toMatchObject({ logStartOffset: 3, lastStableOffset: 3 });
  await directory.delete(directory.byPartition(r)!.topic.topicId);
  expect([...(await metadata.transactions.describe(['a']))[0]!.partitions]).toEqual([p]);
  expect(await a.end(true)).toBe(0);
  expect(log.watermarks(p)).toMatchObject({ lastStableOffset: 4, highWatermark: 4 });
  expect((await readOnce(p, 3)).batches.map(({ control }) => control)).toEqual([true]);
});
