import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import type { PartitionLog } from '../../metadata/log.ts';
import { streamKey, walKey } from '../paths.ts';
import { Collector, type CollectorOptions } from './collector.ts';
import { applyRetention, type RetentionOptions } from './retention.ts';
import { TEST_CLUSTER, TestLog } from './test-log.ts';

const MINUTE = 60_000;
let log: TestLog;
let deleted: number[];
let freed: number[];
let gone: string[];
beforeEach(async () => {
  log = await TestLog.open();
  deleted = [];
  freed = [];
  gone = [];
});
afterEach(() => log.stop());

function collector(more: Partial<CollectorOptions> = {}): Collector {
  return new Collector({
    clusterId: TEST_CLUSTER,
    store: log.store,
    objects: log.metadata.objects,
    clock: log.clock,
    logger: silentLogger,
    metrics: noMetrics,
    graceMs: MINUTE,
    orphanAgeMs: 60 * MINUTE,
    retireFiles: (keys) => log.host.sequencer.retireFiles(keys),
    onDeleted: (objectIds) => {
      deleted.push(...objectIds);
      log.reader.replaced(objectIds);
    },
    onGone: (keys) => void gone.push(...keys),
    onFreed: async (partitionIds) => void freed.push(...partitionIds),
    ...more,
  });
}

function retention(more: Partial<RetentionOptions> = {}): RetentionOptions {
  return {
    log: log.metadata.log,
    policy: () => ({ retentionMs: -1, retentionBytes: -1 }),
    pin: () => Infinity,
    offsetReaching: log.reader.offsetReaching.bind(log.reader),
    onMoved: () => {},
    ...more,
  };
}

/** Four sealed files of 100 records each, timestamps a minute apart. */
async function fill(partitionId: number): Promise<string[]> {
  const keys: string[] = [];
  for (let file = 0; file < 4; file += 1) {
    const records = Array.from({ length: 25 }, (_, n) => ({
      value: 'x'.repeat(100),
      timestamp: MINUTE * (file * 100 + n),
    }));
    for (let flush = 0; flush < 4; flush += 1)
      keys.push((await log.append([{ partitionId, records }])).objectKey);
    await log.seal();
  }
  return [...new Set(keys)];
}

const onDisk = (key: string) => existsSync(join(log.root, key));
const logOf = async (partitionId: number): Promise<PartitionLog> =>
  (await log.metadata.log.partitions([partitionId]))[0]!;

test('by time: no record goes before its time, whole entries go after it', async () => {
  const [a] = (await log.createTopic(1)) as [number];
  await fill(a);
  const keep = (retentionMs: number, nowMs: number) =>
    applyRetention(retention({ policy: () => ({ retentionMs, retentionBytes: -1 }) }), nowMs);
  expect(await keep(1_000 * MINUTE, 1_000 * MINUTE)).toBe(0);
  // Entries of the first file reach minute 24; what began before the cut stays with it.
  expect(await keep(10 * MINUTE, 24 * MINUTE + 10 * MINUTE)).toBe(0);
  expect(await keep(10 * MINUTE, 25 * MINUTE + 10 * MINUTE)).toBe(1);
  expect((await logOf(a)).logStartOffset).toBe(100);
  expect(await keep(-1, 1e15)).toBe(0);
  expect(await keep(10 * MINUTE, 1e12)).toBe(1);
  expect((await logOf(a)).logStartOffset).toBe(400);
});

test('by size: whole objects go while what is left is enough', async () => {
  const [a] = (await log.createTopic(1)) as [number];
  await fill(a);
  const { sizeBytes } = await logOf(a);
  const keep = (retentionBytes: number) =>
    applyRetention(retention({ policy: () => ({ retentionMs: -1, retentionBytes }) }), 0);
  expect(await keep(sizeBytes)).toBe(0);
  expect(await keep(sizeBytes * 0.75 + 1)).toBe(0);
  expect(await keep(sizeBytes * 0.5)).toBe(1);
  expect((await logOf(a)).logStartOffset).toBe(200);
});

test('by size: what DeleteRecords or an earlier run cut off does not count twice', async () => {
  const [a] = (await log.createTopic(1)) as [number];
  await fill(a);
  const { sizeBytes } = await logOf(a);
  const keep = (share: number) => {
    const retentionBytes = sizeBytes * share;
    return applyRetention(retention({ policy: () => ({ retentionMs: -1, retentionBytes }) }), 0);
  };
  // The rows below the log start are still there: only the collector drops them.
  await log.metadata.log.deleteRecords(a, 100);
  expect(await keep(0.75)).toBe(0);
  expect(await keep(0.5)).toBe(1);
  expect(await keep(0.5)).toBe(0);
  expect((await logOf(a)).logStartOffset).toBe(200);
  await collector().collect();
  expect(freed).toEqual([a]);
  expect((await logOf(a)).sizeBytes).toBe(sizeBytes / 2);
  expect(await keep(0.5)).toBe(0);
});

test('of many partitions retention looks at those that hold records, and reads nothing of the others', async () => {
  const ids = await log.createTopic(50);
  const filled = [ids[7]!, ids[31]!];
  for (const partitionId of filled) await fill(partitionId);
  const looked: number[] = [];
  const policy = (partitionId: number) => {
    looked.push(partitionId);
    return { retentionMs: 1, retentionBytes: -1 };
  };
  const read: number[] = [];
  const { metadata } = log;
  const counted: RetentionOptions['log'] = {
    written: async (after, limit) => {
      const rows = await metadata.log.written(after, limit);
      read.push(rows.length);
      return rows;
    },
    entriesFrom: (...args) => metadata.log.entriesFrom(...args),
    moveLogStarts: (moves) => metadata.log.moveLogStarts(moves),
  };
  const apply = () => applyRetention(retention({ log: counted, policy }), 1_000 * MINUTE);
  expect(await apply()).toBe(2);
  expect([looked, read]).toEqual([filled, [2]]);
  expect(await apply()).toBe(0);
  expect([looked, read]).toEqual([filled, [2, 0]]);
});

test('a pin holds retention back, and partitions without a policy keep everything', async () => {
  const [a, b] = (await log.createTopic(2)) as [number, number];
  await fill(a);
  await fill(b);
  const moved: PartitionLog[] = [];
  const options = retention({
    policy: (partitionId) =>
      partitionId === a ? { retentionMs: 1, retentionBytes: 0 } : undefined,
    pin: () => 150,
    onMoved: (partitions) => moved.push(...partitions),
  });
  expect(await applyRetention(options, 1e12)).toBe(1);
  expect(moved.map(({ partitionId, logStartOffset }) => [partitionId, logStartOffset])).toEqual([
    [a, 150],
  ]);
  expect((await logOf(b)).logStartOffset).toBe(0);
});

test('records without timestamps have no age', async () => {
  const [a] = (await log.createTopic(1)) as [number];
  await log.append([{ partitionId: a, records: [{ value: 'x' }] }]);
  const options = retention({ policy: () => ({ retentionMs: 1, retentionBytes: -1 }) });
  expect(await applyRetention(options, 1e12)).toBe(0);
});

test('bytes go in order: row, grace, file; and only those of nobody', async () => {
  const [a] = (await log.createTopic(1)) as [number];
  const keys = await fill(a);
  const before = await logOf(a);
  await log.metadata.log.deleteRecords(a, 250);
  const subject = collector();
  expect(await subject.collect()).toEqual({ deleted: 0 });
  expect(keys.map(onDisk)).toEqual([true, true, true, true]);
  expect((await logOf(a)).sizeBytes).toBe(before.sizeBytes / 2);
  await log.clock.advance(MINUTE - 1);
  expect(await subject.collect()).toEqual({ deleted: 0 });
  await log.clock.advance(1);
  expect(await subject.collect()).toEqual({ deleted: 2 });
  expect(keys.map(onDisk)).toEqual([false, false, true, true]);
  expect(deleted).toHaveLength(2);
  expect(gone).toEqual(keys.slice(0, 2));
  expect(await subject.collect()).toEqual({ deleted: 0 });
  expect(await log.readAll(a, { offset: 250 })).toHaveLength(6);
  // A reader with an old plan asks again and is told the truth.
  expect((await logOf(a)).logStartOffset).toBe(250);
});

test('a deleted topic gives its bytes back', async () => {
  const [a] = (await log.createTopic(1, 'gone')) as [number];
  const keys = await fill(a);
  const [topic] = await log.metadata.topics.list();
  await log.metadata.topics.delete(topic!.topicId);
  const subject = collector();
  await subject.collect();
  await log.clock.advance(MINUTE);
  expect(await subject.collect()).toEqual({ deleted: 4 });
  expect(keys.map(onDisk)).toEqual([false, false, false, false]);
});

test('orphans are claimed, left their grace, and deleted; what is young or foreign is not', async () => {
  const nowMs = log.clock.now();
  const name = (ageMs: number) => ({ timeMs: nowMs - ageMs, id: log.ids.uuid() });
  const old = [walKey(TEST_CLUSTER, name(1e9)), streamKey(TEST_CLUSTER, name(61 * MINUTE))];
  const young = [walKey(TEST_CLUSTER, name(59 * MINUTE)), streamKey(TEST_CLUSTER, name(0))];
  const foreign = [
    `${TEST_CLUSTER}/wal/notes.txt`,
    `${TEST_CLUSTER}/warehouse/t/data.parquet`,
    'other/wal/x',
  ];
  for (const key of [...old, ...young, ...foreign]) await log.store.put(key, Buffer.from('x'));
  const subject = collector();
  expect(await subject.sweep()).toEqual({ claimed: 2 });
  expect(await subject.collect()).toEqual({ deleted: 0 });
  await log.clock.advance(MINUTE);
  expect(await subject.collect()).toEqual({ deleted: 2 });
  const heads = await Promise.all([...old, ...young, ...foreign].map((key) => log.store.head(key)));
  expect(heads.map((head) => head !== undefined)).toEqual([
    false,
    false,
    true,
    true,
    true,
    true,
    true,
  ]);
  // One of the young has come of age.
  expect(await subject.sweep()).toEqual({ claimed: 1 });
});

test('L10: between a commit and the sweep, whoever is second loses', async () => {
  const [a] = (await log.createTopic(1)) as [number];
  const { columns, batches } = log.lay([]);
  expect(batches.count).toBe(0);
  const key = walKey(TEST_CLUSTER, { timeMs: 1, id: log.ids.uuid() });
  await log.store.put(key, Buffer.from('x'));
  expect(await log.metadata.objects.claimKeys([key], 5)).toEqual([key]);
  const object = { key, kind: 'object', generation: 0, bytes: 1 } as const;
  const late = log.host.sequencer.submit({ flushId: new Uint8Array(16), columns, slab: 0, object });
  await expect(late).rejects.toMatchObject({ code: 'conflict' });
  // And the other way round: a committed key is no orphan.
  const { objectKey } = await log.append([{ partitionId: a, records: [{ value: 'x' }] }]);
  expect(await log.metadata.objects.claimKeys([objectKey, key], 5)).toEqual([]);
});

test('L10: forgetting what is referred to is a bug', async () => {
  const [a] = (await log.createTopic(1)) as [number];
  await fill(a);
  const [object] = await log.metadata.objects.list('sealed', 0, 1);
  await expect(log.metadata.objects.forget([object!.objectId])).rejects.toThrow(/L10/);
});

test('L10: while a restore waits to be confirmed, nothing is given up, deleted or claimed', async () => {
  const [partitionId] = await log.createTopic(1);
  const keys = await fill(partitionId!);
  await log.metadata.log.moveLogStarts([
    { partitionId: partitionId!, logStartOffset: 400, freedBytes: 0 },
  ]);
  const orphan = walKey(TEST_CLUSTER, { timeMs: 0, id: 'later' });
  await log.store.put(orphan, new Uint8Array(1));
  await log.clock.advance(120 * MINUTE);
  let confirmed = false;
  const waiting = collector({ mayDelete: async () => confirmed });
  const turn = async () => {
    const { claimed } = await waiting.sweep();
    await waiting.collect();
    await log.clock.advance(120 * MINUTE);
    return { claimed, deleted: (await waiting.collect()).deleted };
  };
  expect(await turn()).toEqual({ claimed: 0, deleted: 0 });
  expect([...keys, orphan].every(onDisk)).toBe(true);
  confirmed = true;
  expect((await turn()).claimed).toBe(1);
  expect(onDisk(orphan)).toBe(false);
});
