import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FlushCommit, NewObjectEntry } from '../log.ts';
import { describeEntries, openIndex } from '../packed-index.ts';
import { type TestBatch, testColumns } from '../test-batches.ts';
import { openSqliteMetadata, type SqliteMetadata } from './index.ts';

let directory: string;
let metadata: SqliteMetadata;
let flushNumber = 0;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-log-'));
  metadata = openSqliteMetadata(join(directory, 'm.db'));
});
afterEach(() => {
  metadata.close();
  rmSync(directory, { recursive: true });
});

function reopen(): void {
  metadata.close();
  metadata = openSqliteMetadata(join(directory, 'm.db'));
}

async function partitions(count: number): Promise<readonly number[]> {
  const topic = await metadata.topics.create({
    topicId: '11111111-1111-4111-8111-111111111111',
    name: 'orders',
    partitionCount: count,
    config: {},
    nowMs: 5,
  });
  return topic.partitions;
}

function flush(batches: readonly TestBatch[], key = 'wal/1', nowMs = 1000): FlushCommit {
  const flushId = new Uint8Array(16);
  flushId[15] = ++flushNumber;
  return {
    flushId,
    object: { key, kind: 'file', generation: 1, bytes: 0 },
    nowMs,
    batches: testColumns(batches),
  };
}

test('a commit assigns offsets, survives a restart and is returned again to a retry', async () => {
  const [a, b] = (await partitions(2)) as [number, number];
  const first = flush([
    { partitionId: b, records: 3, maxTimestamp: 50 },
    { partitionId: a, records: 2, producerId: 0, sequence: 0 },
    { partitionId: b, records: 1, maxTimestamp: 40 },
    { partitionId: 999, records: 1 },
  ]);
  const [done] = await metadata.log.commit([first]);
  expect([...done!.baseOffsets]).toEqual([0, 0, 3, -1]);
  expect([...done!.errorCodes]).toEqual([0, 0, 0, 3]);
  reopen();
  const [again] = await metadata.log.commit([first]);
  expect(again).toEqual({ ...done, fresh: false });
  expect(await metadata.log.partitions([a, b])).toMatchObject([
    { highWatermark: 2, sizeBytes: 200, maxTimestamp: -1 },
    { highWatermark: 4, sizeBytes: 400, maxTimestamp: 50 },
  ]);
  const [row] = await metadata.log.flushesAfter(0, 10);
  expect(describeEntries(openIndex(row!.index))).toMatchObject([
    { partitionId: a, baseOffset: 0, endOffset: 2, position: 300, length: 200 },
    { partitionId: b, baseOffset: 0, endOffset: 3, position: 0, length: 300, maxTimestamp: 50 },
    { partitionId: b, baseOffset: 3, endOffset: 4, position: 500, length: 100, maxTimestamp: 50 },
  ]);
});

test('sequences hold inside a transaction, across checkpoints and restarts', async () => {
  const [a] = (await partitions(1)) as [number];
  const { producerId } = await metadata.producers.initProducerId(1000);
  const send = (sequence: number) => flush([{ partitionId: a, producerId, sequence }]);
  await metadata.log.commit([send(0), send(1)]);
  expect(metadata.log.checkpoint(100)).toBe(false);
  await metadata.log.commit([send(2), send(3), send(4), send(5)]);
  reopen();
  const outcomes = await metadata.log.commit([send(1), send(5), send(0), send(7), send(6)]);
  expect(outcomes.map((o) => [o.errorCodes[0], o.baseOffsets[0], o.duplicates[0]])).toEqual([
    [0, 1, 1],
    [0, 5, 1],
    [45, -1, 0],
    [45, -1, 0],
    [0, 6, 0],
  ]);
});

test('sealing swaps rows for entries; pruning keeps what a restart needs', async () => {
  const [a] = (await partitions(1)) as [number];
  const [one] = await metadata.log.commit([flush([{ partitionId: a, records: 4 }])]);
  const entry: NewObjectEntry = {
    partitionId: a,
    baseOffset: 0,
    endOffset: 4,
    indexPosition: 400,
    indexLength: 60,
    bytes: 400,
    recordCount: 4,
    runCount: 1,
    maxTimestamp: -1,
    commitNumber: one!.commitNumber,
  };
  await metadata.log.seal({ objectId: one!.objectId, bytes: 500, entries: [entry] });
  await metadata.log.seal({ objectId: one!.objectId, bytes: 500, entries: [entry] });
  expect(await metadata.log.flushesAfter(0, 10)).toEqual([]);
  expect(await metadata.log.entriesFrom(a, 3, 10)).toMatchObject([
    { ...entry, objectKey: 'wal/1' },
  ]);
  expect(await metadata.log.entriesFrom(a, 4, 10)).toEqual([]);
  await expect(metadata.log.commit([flush([{ partitionId: a }])])).rejects.toMatchObject({
    code: 'conflict',
  });
  const [two] = await metadata.log.commit([flush([{ partitionId: a }], 'wal/2')]);
  expect(two!.baseOffsets[0]).toBe(4);
  expect(metadata.log.pruneFlushes(5000, 10)).toBe(0);
  metadata.log.checkpoint(10);
  expect(metadata.log.pruneFlushes(5000, 10)).toBe(1);
  reopen();
  expect(metadata.log.lastCommit).toBe(two!.commitNumber);
  expect(await metadata.log.partitions()).toMatchObject([{ highWatermark: 5, sizeBytes: 500 }]);
});

test('log starts move forward only and deleted topics are gone for good', async () => {
  const [a, b] = (await partitions(2)) as [number, number];
  await metadata.log.commit([flush([{ partitionId: a, records: 9 }])]);
  expect(await metadata.log.deleteRecords(a, 4)).toMatchObject({ logStartOffset: 4 });
  expect(
    await metadata.log.moveLogStarts([
      { partitionId: a, logStartOffset: 3, freedBytes: 300 },
      { partitionId: 999, logStartOffset: 3, freedBytes: 0 },
    ]),
  ).toMatchObject([{ partitionId: a, logStartOffset: 4, sizeBytes: 600 }]);
  await expect(metadata.log.deleteRecords(a, 10)).rejects.toMatchObject({ code: 'invalid' });
  expect(await metadata.log.deleteRecords(a, -1)).toMatchObject({ logStartOffset: 9 });
  await metadata.topics.delete('11111111-1111-4111-8111-111111111111');
  const [late] = await metadata.log.commit([flush([{ partitionId: b }])]);
  expect(late!.errorCodes[0]).toBe(3);
  reopen();
  expect(await metadata.log.partitions()).toEqual([]);
});

test('a transaction that fails changes nothing in memory', async () => {
  const [a] = (await partitions(1)) as [number];
  const bad = { ...flush([{ partitionId: a }]), flushId: null as unknown as Uint8Array };
  await expect(metadata.log.commit([flush([{ partitionId: a }]), bad])).rejects.toThrow();
  expect(await metadata.log.partitions()).toMatchObject([{ highWatermark: 0 }]);
  const [done] = await metadata.log.commit([flush([{ partitionId: a }])]);
  expect(done).toMatchObject({ commitNumber: 1 });
  expect(done!.baseOffsets[0]).toBe(0);
});

test('producer state expires with idleness, and only then may a sequence start anywhere', async () => {
  const [a] = (await partitions(1)) as [number];
  const day = 86_400_000;
  const { producerId } = await metadata.producers.initProducerId(1000);
  const send = (sequence: number, nowMs: number) =>
    flush([{ partitionId: a, producerId, sequence }], 'wal/1', nowMs);
  await metadata.log.commit([send(0, 1000)]);
  metadata.log.checkpoint(10);
  expect(await metadata.producers.expire(500, 10)).toBe(0);
  expect(await metadata.producers.expire(2000, 10)).toBe(1);
  const [young] = await metadata.log.commit([send(5, 3000)]);
  expect(young!.errorCodes[0]).toBe(45);
  const [old] = await metadata.log.commit([send(5, 3000 + 2 * day)]);
  expect(old!.errorCodes[0]).toBe(0);
});

test('producer state survives DeleteRecords and retention', async () => {
  const [a] = (await partitions(1)) as [number];
  const { producerId } = await metadata.producers.initProducerId(1000);
  const send = (sequence: number) => flush([{ partitionId: a, producerId, sequence }]);
  await metadata.log.commit([send(0)]);
  await metadata.log.deleteRecords(a, -1);
  await metadata.log.moveLogStarts([{ partitionId: a, logStartOffset: 1, freedBytes: 0 }]);
  reopen();
  const [again, next, hole] = await metadata.log.commit([send(0), send(1), send(9)]);
  expect([again!.duplicates[0], again!.baseOffsets[0]]).toEqual([1, 0]);
  expect([next!.errorCodes[0], next!.baseOffsets[0]]).toEqual([0, 1]);
  expect(hole!.errorCodes[0]).toBe(45);
});
