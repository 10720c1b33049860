// Several maintainers of one log over a store: they share the work and never do it twice, one that is slow, dead or a zombie
// breaks nothing, and between the rows of a partition there is never a gap, so that retention, look-ups by time, reads,
// compaction by key and the sweep need not know how many there are.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import type { LeaseToken } from '../../metadata/leases.ts';
import type { FlushRow, ObjectEntry } from '../../metadata/log.ts';
import type { ReplaceEntries } from '../../metadata/objects.ts';
import { entriesOf, openIndex } from '../../metadata/packed-index.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { MemoryObjectStore } from '../objects/memory.ts';
import type { ObjectStore } from '../objects/object-store.ts';
import { streamPrefix } from '../paths.ts';
import { Collector } from './collector.ts';
import { Compactor } from './compactor.ts';
import { entryEnd } from './entries.ts';
import { KeyCompactor } from './key-compactor.ts';
import { compactionOf } from './maintenance.ts';
import { maintenanceSettings } from './maintenance-settings.ts';
import { type InThreadLog, openInThread } from './open-in-thread.ts';
import { LocalRangeCleaner } from './range-cleaner.ts';
import { readSettings } from './read-settings.ts';
import { applyRetention, type RetentionPolicy } from './retention.ts';
import { logSettings } from './settings.ts';
import { batchesOf, TEST_CLUSTER, toItem } from './test-log.ts';
import { clusterTag } from './wal-format.ts';

const KIB = 1024;
const PARTITIONS = 4;
/** Of those that die; the others renew theirs. */
const LEASE_MS = 10_000;
const RENEWED_MS = 1_000_000_000;
const GRACE_MS = 60_000;
const ORPHAN_AGE_MS = 3_600_000;
/** Between two flushes. */
const FLUSH_MS = 1_000;

const settings = resolveSettings(
  { ...logSettings, ...readSettings, ...maintenanceSettings },
  {
    'log.slab.bytes': String(64 * KIB),
    'log.flush.bytes': String(64 * KIB),
    'log.tail.bytes': '0',
    'log.compact.age.ms': '0',
    'log.compact.gather.ms': '0',
    // Four flushes fill one.
    'log.compact.object.bytes': String(68 * KIB),
    'log.compact.block.bytes': String(4 * KIB),
    'log.compact.store.share.bytes': String(64 * KIB),
    'log.compact.fan.in': '2',
  },
);

let clock: ManualClock;
let metadata: SqliteMetadata;
let memory: MemoryObjectStore;
let opened: InThreadLog;
let partitions: readonly number[];
/** Records of each partition, each of which holds its offset. */
let written: number;
/** Of records, by offset. */
let times: number[];
/** What gave way in swaps, by name: nothing may do so twice. */
let swaps: (readonly string[])[];
const prng = seededPrng(7);
const ids = seededIds(seededPrng(3));

beforeEach(async () => {
  clock = new ManualClock();
  metadata = openSqliteMetadata(':memory:', { clock });
  memory = new MemoryObjectStore(clock);
  opened = await openInThread({
    metadata,
    clusterId: TEST_CLUSTER,
    store: memory,
    settings,
    clock,
    prng,
    ids,
    logger: silentLogger,
    metrics: noMetrics,
  });
  const topic = await opened.directory.create({
    topicId: ids.uuid(),
    name: 'topic',
    partitionCount: PARTITIONS,
    config: {},
    nowMs: clock.now(),
  });
  partitions = topic.partitions;
  written = 0;
  times = [];
  swaps = [];
});
afterEach(async () => {
  await drive(opened.stop());
  metadata.close();
});

/** Lets virtual time go by until it is settled. */
async function drive<T>(work: Promise<T>): Promise<T> {
  let over = false;
  const settled = work.finally(() => {
    over = true;
  });
  settled.catch(() => {});
  while (!over) await clock.advance(5);
  return settled;
}

/** So many flushes, each with a record of every partition: the key one of eight, the value its offset. */
async function flush(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const value = `${written}`.padEnd(4 * KIB - 200);
    const record = { key: `k${written % 8}`, value, timestamp: clock.now() };
    times.push(record.timestamp);
    const items = partitions.map((partitionId) => toItem({ partitionId, records: [record] }));
    for (const { errorCode } of await drive(opened.log.append(items))) expect(errorCode).toBe(0);
    written += 1;
    await clock.advance(FLUSH_MS);
  }
}

async function leaseOf(name: string, nodeId: number, durationMs = RENEWED_MS): Promise<LeaseToken> {
  const holder = { nodeId, session: `${nodeId}` };
  const [token] = await metadata.leases.acquire({ names: [name], holder, durationMs });
  return token!;
}

/** Holds whatever passes while it is closed. */
class Gate {
  #open: (() => void) | undefined;
  #closed: Promise<void> | undefined;

  close(): void {
    this.#closed = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  open(): void {
    this.#open?.();
    this.#closed = undefined;
  }

  through(): Promise<void> | undefined {
    return this.#closed;
  }
}

/** A node that compacts, whose PUTs and swaps can be held up. */
class Maintainer {
  readonly nodeId: number;
  readonly put = new Gate();
  readonly swap = new Gate();
  compactor!: Compactor;

  constructor(nodeId: number) {
    this.nodeId = nodeId;
  }

  static async of(nodeId: number, durationMs?: number): Promise<Maintainer> {
    const maintainer = new Maintainer(nodeId);
    await maintainer.begin(durationMs);
    return maintainer;
  }

  /** Under a new lease, or a renewed one. */
  async begin(durationMs?: number): Promise<void> {
    const { put, swap, nodeId } = this;
    const store: ObjectStore = {
      uri: memory.uri,
      async put(key, body, how) {
        await put.through();
        await memory.put(key, body, how);
      },
      get: (key, how) => memory.get(key, how),
      head: (key) => memory.head(key),
      list: (prefix, how) => memory.list(prefix, how),
      delete: (keys) => memory.delete(keys),
    };
    const { objects, log } = metadata;
    const replace = async (request: ReplaceEntries) => {
      await swap.through();
      const objectId = await objects.replace({ ...request, nowMs: clock.now() });
      const rows = request.replaced.map((row) => Object.values(row).join('/'));
      swaps.push([...request.openObjects.map(String), ...rows]);
      await expectTiled();
      return objectId;
    };
    this.compactor = new Compactor({
      clusterId: TEST_CLUSTER,
      store,
      source: opened.source,
      metadata: {
        log,
        objects: new Proxy(objects, {
          get(target, name) {
            if (name === 'replace') return replace;
            return (Reflect.get(target, name) as (...args: never[]) => unknown).bind(target);
          },
        }),
      },
      ...compactionOf(settings, true),
      blockBytes: settings['log.compact.block.bytes'],
      clock,
      ids,
      logger: silentLogger,
      metrics: noMetrics,
      lease: await leaseOf(`maintenance/compaction/${nodeId}`, nodeId, durationMs),
      swapWithinMs: ORPHAN_AGE_MS / 2,
      onReplaced: (objectIds) => opened.reader.replaced(objectIds),
    });
  }
}

/** Rows, and behind them flushes, hold every offset of every partition from its log start to its end once. */
async function expectTiled(): Promise<void> {
  const flushes = await metadata.log.flushesAfter(0, 10_000);
  for (const log of await metadata.log.partitions(partitions)) {
    const rows = await metadata.log.entriesFrom(log.partitionId, log.logStartOffset, 10_000);
    let next = rows[0]?.baseOffset ?? firstUnsealed(flushes, log.partitionId) ?? log.highWatermark;
    expect(next).toBeLessThanOrEqual(log.logStartOffset);
    for (const { baseOffset, endOffset } of rows) {
      expect(baseOffset).toBe(next);
      next = endOffset;
    }
    for (const { index } of flushes) {
      const packed = openIndex(index);
      const [start, end] = entriesOf(packed, log.partitionId);
      for (let n = start; n < end; n += 1) {
        expect(packed.baseOffsets[n]).toBe(next);
        next = entryEnd(packed, n);
      }
    }
    expect(next).toBe(log.highWatermark);
  }
}

function firstUnsealed(flushes: readonly FlushRow[], partitionId: number): number | undefined {
  for (const { index } of flushes) {
    const packed = openIndex(index);
    const [start, end] = entriesOf(packed, partitionId);
    if (start < end) return packed.baseOffsets[start];
  }
  return undefined;
}

/** Every record from the log start to the end, by fetches as a consumer makes them, at its offset. */
async function expectReadable(keys?: ReadonlySet<string>): Promise<void> {
  for (const partitionId of partitions) {
    const { logStartOffset, highWatermark } = opened.log.watermarks(partitionId)!;
    let count = 0;
    for (let offset = logStartOffset; offset < highWatermark; ) {
      const reading = opened.log.read({
        partitions: [{ partitionId, offset, maxBytes: 10 * KIB }],
        maxBytes: 10 * KIB,
        isolation: 'read_uncommitted',
        purpose: 'consumer',
      });
      const { partitions: found, release } = await drive(reading);
      expect(found[0]!.errorCode).toBe(0);
      const before = offset;
      for (const { baseOffset, endOffset, bytes } of batchesOf(found[0]!)) {
        const value = /\d+ {9}/.exec(bytes.toString('latin1'));
        if (value !== null) expect(Number(value[0])).toBe(baseOffset);
        count += value === null ? 0 : 1;
        offset = endOffset;
      }
      release();
      expect(offset).toBeGreaterThan(before);
    }
    expect(count).toBe(keys === undefined ? highWatermark - logStartOffset : keys.size);
  }
}

const openObjects = () => metadata.objects.list('open', 0, 1_000);

const rowsOf = (partitionId: number): Promise<readonly ObjectEntry[]> =>
  metadata.log.entriesFrom(partitionId, 0, 1_000);

async function streamKeys(): Promise<readonly string[]> {
  const keys: string[] = [];
  for await (const { key } of memory.list(streamPrefix(TEST_CLUSTER))) keys.push(key);
  return keys;
}

function collector(): Collector {
  return new Collector({
    clusterId: TEST_CLUSTER,
    store: memory,
    objects: metadata.objects,
    clock,
    logger: silentLogger,
    metrics: noMetrics,
    graceMs: GRACE_MS,
    orphanAgeMs: ORPHAN_AGE_MS,
    retireFiles: async () => {},
    onGone: () => {},
    onDeleted: (objectIds) => opened.reader.replaced(objectIds),
    onFreed: async () => {},
  });
}

test('three share the work, none does what another does, and all of it reads back', async () => {
  await flush(48);
  const three = [await Maintainer.of(1), await Maintainer.of(2), await Maintainer.of(3)];
  const steps = [0, 0, 0];
  await drive(
    Promise.all(
      three.map(async ({ compactor }, n) => {
        while ((await compactor.step()) > 0) steps[n]! += 1;
      }),
    ),
  );
  for (const count of steps) expect(count).toBeGreaterThan(3);
  expect(await openObjects()).toEqual([]);
  const sources = swaps.flat();
  expect(new Set(sources).size).toBe(sources.length);
  // What was written is what is referred to, or was merged: nothing was written in vain.
  expect(await streamKeys()).toHaveLength(swaps.length);
  const probe = await leaseOf('maintenance/compaction/4', 4);
  expect(await metadata.objects.claimedByOthers(probe)).toEqual([]);
  await expectReadable();
});

test('who is done first waits for who is at work on older flushes', async () => {
  await flush(8);
  const [slow, quick] = [await Maintainer.of(1), await Maintainer.of(2)];
  slow.put.close();
  const first = slow.compactor.step();
  await clock.advance(5);
  const second = quick.compactor.step();
  await clock.advance(5_000);
  expect(await streamKeys()).toHaveLength(1);
  expect(await openObjects()).toHaveLength(8);
  slow.put.open();
  await drive(Promise.all([first, second]));
  expect(await openObjects()).toEqual([]);
  expect((await rowsOf(partitions[0]!)).map(({ baseOffset }) => baseOffset)).toEqual([0, 4]);
  await expectReadable();
});

test('who waits goes on from the start when the one before it dies', async () => {
  await flush(8);
  const [dead, quick] = [await Maintainer.of(1, LEASE_MS), await Maintainer.of(2)];
  dead.put.close();
  const never = dead.compactor.step();
  await clock.advance(5);
  const second = quick.compactor.step();
  await clock.advance(LEASE_MS / 2);
  expect(await openObjects()).toHaveLength(8);
  await clock.advance(LEASE_MS);
  await drive(second);
  // It gave up what it had made, and begins where the other died.
  expect(await openObjects()).toHaveLength(8);
  for (const left of [4, 0]) {
    await drive(quick.compactor.step());
    expect(await openObjects()).toHaveLength(left);
  }
  // A zombie, whose node has begun anew: what it has in hand comes to nothing.
  await leaseOf('maintenance/compaction/1', 1);
  dead.put.open();
  await drive(never);
  expect(swaps).toHaveLength(2);
  await expect(dead.compactor.step()).rejects.toMatchObject({ code: 'conflict' });
  await expectReadable();
  // Both orphans are swept once they are old enough, not before.
  expect(await streamKeys()).toHaveLength(4);
  expect((await collector().sweep()).claimed).toBe(0);
  await clock.advance(ORPHAN_AGE_MS + GRACE_MS);
  expect((await collector().sweep()).claimed).toBe(2);
  await clock.advance(GRACE_MS);
  await collector().collect();
  expect(await streamKeys()).toHaveLength(2);
  await expectReadable();
});

test('a maintainer that lost its lease claims nothing and writes nothing', async () => {
  await flush(4);
  const zombie = await Maintainer.of(1, 0);
  await leaseOf('maintenance/compaction/1', 1);
  await expect(zombie.compactor.step()).rejects.toMatchObject({ code: 'conflict' });
  expect(await openObjects()).toHaveLength(4);
  expect(await streamKeys()).toEqual([]);
});

test('a swap that comes after the sweep refers to nothing that is gone', async () => {
  await flush(4);
  const zombie = await Maintainer.of(1);
  zombie.swap.close();
  const late = zombie.compactor.step();
  await clock.advance(ORPHAN_AGE_MS + GRACE_MS);
  expect((await collector().sweep()).claimed).toBe(1);
  await clock.advance(GRACE_MS);
  expect((await collector().collect()).deleted).toBe(1);
  // Its lease was renewed all the while, and its key is known to nobody any more.
  zombie.swap.open();
  await drive(late);
  expect(await openObjects()).toHaveLength(4);
  await drive(zombie.compactor.step());
  expect(await openObjects()).toEqual([]);
  await expectReadable();
});

test('a PUT that arrives when everything is over is swept', async () => {
  await flush(4);
  const dead = await Maintainer.of(1, LEASE_MS);
  dead.put.close();
  const never = dead.compactor.step();
  await clock.advance(LEASE_MS + 1);
  const living = await Maintainer.of(2);
  await drive(living.compactor.step());
  await clock.advance(ORPHAN_AGE_MS + GRACE_MS);
  expect((await collector().sweep()).claimed).toBe(0);
  dead.put.open();
  await drive(never);
  expect(await streamKeys()).toHaveLength(2);
  expect((await collector().sweep()).claimed).toBe(1);
  await clock.advance(GRACE_MS);
  await collector().collect();
  expect(await streamKeys()).toHaveLength(1);
  await expectReadable();
});

/** Flushes 8 to 11 are sealed last: 12 to 15 are rewritten and wait for them. */
async function overtaken(): Promise<() => Promise<void>> {
  await flush(8);
  const [slow, quick] = [await Maintainer.of(1), await Maintainer.of(2)];
  for (let n = 0; n < 2; n += 1) await drive(quick.compactor.step());
  await flush(8);
  slow.put.close();
  const first = slow.compactor.step();
  await clock.advance(5);
  const second = quick.compactor.step();
  await clock.advance(500);
  expect(await openObjects()).toHaveLength(8);
  return async () => {
    slow.put.open();
    await drive(Promise.all([first, second]));
    expect(await openObjects()).toEqual([]);
  };
}

async function retain(policy: RetentionPolicy): Promise<readonly number[]> {
  const { reader, log } = opened;
  await drive(
    applyRetention(
      {
        log: metadata.log,
        policy: () => policy,
        pin: () => Infinity,
        offsetReaching: (...args) => reader.offsetReaching(...args),
        onMoved: (moved) => log.logStartsMoved(moved),
      },
      clock.now(),
    ),
  );
  return partitions.map((partitionId) => log.watermarks(partitionId)!.logStartOffset);
}

test.each(['while flushes are overtaken', 'afterwards'])(
  'look-ups by time find the first record, and reads go on: %s',
  async (when) => {
    const finish = await overtaken();
    if (when === 'afterwards') await finish();
    for (let n = 0; n < 16; n += 1) {
      const found = opened.log.offsetForTime(partitions[1]!, times[n]!, 'read_uncommitted');
      expect(await drive(found)).toEqual({ offset: n, timestamp: times[n] });
    }
    expect(await drive(opened.log.maxTimestamp(partitions[2]!))).toMatchObject({ offset: 15 });
    await expectReadable();
    if (when !== 'afterwards') await finish();
    await expectReadable();
  },
);

test.each(['while flushes are overtaken', 'afterwards'])(
  'retention takes nothing that is due later, and what is due goes: %s',
  async (when) => {
    const finish = await overtaken();
    if (when === 'afterwards') await finish();
    // By time, to the record.
    const retentionMs = clock.now() - times[6]!;
    expect(await retain({ retentionMs, retentionBytes: -1 })).toEqual([6, 6, 6, 6]);
    // By size: whole shares of sealed objects, the newest stay.
    const [log] = await metadata.log.partitions([partitions[0]!]);
    const record = log!.sizeBytes / 16;
    const kept = await retain({ retentionMs: -1, retentionBytes: record * 7 });
    expect(kept).toEqual([8, 8, 8, 8]);
    await expectReadable();
    if (when !== 'afterwards') await finish();
    await expectTiled();
    await collector().collect();
    await expectReadable();
    // Also where the log ends in what is about to be swapped.
    expect(await retain({ retentionMs: 0, retentionBytes: -1 })).toEqual([16, 16, 16, 16]);
  },
);

test('compaction by key goes on beside merges of others', async () => {
  await flush(24);
  const two = [await Maintainer.of(1), await Maintainer.of(2)];
  const cleaner = new KeyCompactor({
    clusterId: TEST_CLUSTER,
    store: memory,
    source: opened.source,
    metadata,
    reader: opened.reader,
    cleaner: new LocalRangeCleaner(clusterTag(TEST_CLUSTER), 1 << 30),
    partitions: () =>
      partitions.map((partitionId) => ({
        partitionId,
        policy: {
          minLagMs: 0,
          maxLagMs: Infinity,
          minDirtyRatio: 0,
          deleteRetentionMs: 1_000,
          segmentMs: 1,
          segmentBytes: 1,
        },
      })),
    endOf: () => undefined,
    pin: () => Infinity,
    roll: async () => {
      while ((await two[0]!.compactor.gather()) > 0);
    },
    mapBytes: 64 * KIB,
    objectBytes: 16 * KIB,
    blockBytes: 4 * KIB,
    clock,
    ids,
    prng,
    logger: silentLogger,
    metrics: noMetrics,
    lease: await leaseOf('maintenance/log', 1),
    onReplaced: (objectIds) => opened.reader.replaced(objectIds),
    onCompacted: (...args) => opened.log.compacted(...args),
    onAbortsGone: (...args) => opened.log.abortsGone(...args),
  });
  for (let round = 0; round < 12; round += 1) {
    if (round % 3 === 0) await flush(4);
    const cleaned = (async () => {
      for (let n = 0; n < 40; n += 1) await cleaner.step();
    })();
    await drive(Promise.all([cleaned, ...two.map(({ compactor }) => compactor.step())]));
    await expectTiled();
  }
  await drive(Promise.all(two.map(({ compactor }) => untilDone(() => compactor.step()))));
  // A step of nothing may also be a round that ended because rows had changed under it.
  for (let rounds = 0; rounds < 3; rounds += 1) await drive(untilDone(() => cleaner.step()));
  await expectTiled();
  await expectReadable(new Set(Array.from({ length: 8 }, (_, n) => `k${n}`)));
});

async function untilDone(step: () => Promise<number>): Promise<void> {
  for (let steps = 0; (await step()) > 0; steps += 1) expect(steps).toBeLessThan(1_000);
}
