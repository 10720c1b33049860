// Compaction by key of transactional topics: seen as a reader of committed records sees it, which filters by the list
// that comes with a read, as Kafka's clients do.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { type Prng, seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { metadataOn, openDatabase, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import type { TransactionEvent, TransactionState } from '../../metadata/transactions.ts';
import {
  baseOffset,
  batchEnd,
  crcMatches,
  isControl,
  isTransactional,
  lastOffsetDelta,
  producerId,
  recordCount,
} from '../../protocol/record-batch.ts';
import { buildBatch } from '../../protocol/record-builder.ts';
import { RecordCursor } from '../../protocol/record-cursor.ts';
import { LocalObjectStore } from '../objects/local.ts';
import { nodeDisk } from './disk.ts';
import { KeyCompactor } from './key-compactor.ts';
import type { AppendItem, Isolation } from './log.ts';
import { type InThreadLog, openInThread } from './open-in-thread.ts';
import { LocalRangeCleaner } from './range-cleaner.ts';
import { readSettings } from './read-settings.ts';
import { logSettings } from './settings.ts';
import { clusterTag } from './wal-format.ts';

const CLUSTER_ID = 'AAECAwQFBgcICQoLDA0ODw';
const RETENTION_MS = 10_000;

let directory: string;
let clock: ManualClock;
let metadata: SqliteMetadata;
let opened: InThreadLog;
let store: LocalObjectStore;
let database: ReturnType<typeof openDatabase>;
const chance = seededPrng(9);
const ids = seededIds(chance);

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'floe-keys-'));
  clock = new ManualClock();
  database = openDatabase(':memory:');
  store = await LocalObjectStore.open(directory, { clock, ids });
  await open();
});
afterEach(async () => {
  await opened.stop();
  metadata.close();
  rmSync(directory, { recursive: true });
});

async function open(): Promise<void> {
  metadata = metadataOn(database);
  opened = await openInThread({
    metadata,
    clusterId: CLUSTER_ID,
    store,
    disk: nodeDisk(directory),
    settings: resolveSettings(
      { ...logSettings, ...readSettings },
      { 'log.slab.bytes': '65536', 'log.slab.count': '6', 'log.read.crc.sample': '1' },
    ),
    clock,
    // Flush ids of lives differ.
    prng: chance,
    ids,
    logger: silentLogger,
    metrics: noMetrics,
  });
}

/** A new life over the same disk and metadata. */
async function reopen(): Promise<void> {
  await opened.stop();
  await open();
}

function keyCompactor(partitionIds: readonly number[], mapBytes = 24 * 64): KeyCompactor {
  const policy = {
    minLagMs: 0,
    maxLagMs: Infinity,
    minDirtyRatio: 0,
    deleteRetentionMs: RETENTION_MS,
    segmentMs: 0,
    segmentBytes: 1,
  };
  return new KeyCompactor({
    clusterId: CLUSTER_ID,
    store,
    source: opened.source,
    metadata,
    reader: opened.reader,
    cleaner: new LocalRangeCleaner(clusterTag(CLUSTER_ID), 1 << 30),
    partitions: () => partitionIds.map((partitionId) => ({ partitionId, policy })),
    endOf: () => undefined,
    pin: () => Infinity,
    async roll() {
      await opened.host.sequencer.roll();
      // The front hears of it a turn later.
      await new Promise((resolve) => setImmediate(resolve));
    },
    mapBytes,
    objectBytes: 64 * 1024,
    blockBytes: 2 * 1024,
    clock,
    ids,
    prng: seededPrng(3),
    logger: silentLogger,
    metrics: noMetrics,
    onReplaced: (objectIds) => opened.reader.replaced(objectIds),
    onCompacted: (...args) => opened.log.compacted(...args),
    onAbortsGone: (...args) => opened.log.abortsGone(...args),
  });
}

async function untilDone(subject: KeyCompactor): Promise<void> {
  // Rolls are spaced out.
  await clock.advance(5_000);
  for (let steps = 0; (await subject.step()) > 0; steps += 1) expect(steps).toBeLessThan(2_000);
}

async function createTopic(): Promise<number> {
  const topic = await opened.directory.create({
    topicId: ids.uuid(),
    name: 'changelog',
    partitionCount: 1,
    config: {},
    nowMs: clock.now(),
  });
  return topic.partitions[0]!;
}

interface Written {
  readonly offset: number;
  readonly key: string;
  readonly value: string | null;
  readonly writtenMs: number;
  /** Undefined while its transaction is open. */
  committed: boolean | undefined;
}

/** Everything that was written into one partition. */
const written: Written[] = [];
beforeEach(() => {
  written.length = 0;
});

interface KeyValue {
  readonly key: string;
  readonly value: string | null;
}

async function append(item: AppendItem, records: readonly KeyValue[], committed?: boolean) {
  const [outcome] = await opened.log.append([item]);
  expect(outcome!.errorCode).toBe(0);
  const batch = records.map((record, n) => ({
    ...record,
    offset: outcome!.baseOffset + n,
    writtenMs: clock.now(),
    committed,
  }));
  written.push(...batch);
  return batch;
}

function itemOf(
  partitionId: number,
  records: readonly KeyValue[],
  more: Partial<AppendItem> = {},
): AppendItem {
  const { producerId: id = -1, producerEpoch = -1, baseSequence = -1, transaction } = more;
  const timestamp = clock.now();
  const bytes = buildBatch(
    records.map((record) => ({ ...record, timestamp })),
    { producerId: id, producerEpoch, baseSequence, transactional: transaction !== undefined },
  );
  return {
    partitionId,
    bytes,
    recordCount: records.length,
    lastOffsetDelta: records.length - 1,
    producerId: id,
    producerEpoch,
    baseSequence,
    maxTimestamp: timestamp,
    logAppendTimeMs: -1,
    ...(transaction === undefined ? {} : { transaction }),
  };
}

class Producer {
  readonly #id: string;
  readonly #partitionId: number;
  #state!: TransactionState;
  #sequence = 0;
  readonly open: Written[] = [];

  constructor(id: string, partitionId: number) {
    this.#id = id;
    this.#partitionId = partitionId;
  }

  async #apply(event: TransactionEvent): Promise<void> {
    const request = { transactionalId: this.#id, event };
    const [outcome] = await metadata.transactions.apply([request], clock.now());
    expect(outcome!.errorCode).toBe(0);
    if (outcome!.state === undefined) return;
    if (outcome!.state.producerEpoch !== this.#state?.producerEpoch) this.#sequence = 0;
    this.#state = outcome!.state;
  }

  async init(): Promise<this> {
    await this.#apply({ type: 'init', timeoutMs: 600_000 });
    return this;
  }

  async send(records: readonly KeyValue[]): Promise<void> {
    const { producerId: id, producerEpoch, incarnation } = this.#state;
    const transaction = { incarnation, mode: 'implicit' } as const;
    const more = { producerId: id, producerEpoch, baseSequence: this.#sequence, transaction };
    this.#sequence += records.length;
    this.open.push(...(await append(itemOf(this.#partitionId, records, more), records)));
  }

  async end(committed: boolean): Promise<void> {
    const { producerId: id, producerEpoch } = this.#state;
    await this.#apply({ type: 'end', committed, bump: true, producerId: id, producerEpoch });
    for (const record of this.open.splice(0)) record.committed = committed;
  }
}

interface Read {
  readonly records: {
    readonly offset: number;
    readonly key: string;
    readonly value: string | null;
  }[];
  readonly markers: number;
  readonly aborted: number;
}

/** The log as a client of the isolation sees it: aborted batches are left out as Kafka's clients do. */
async function readAll(partitionId: number, isolation: Isolation, maxBytes = 3_000): Promise<Read> {
  const records: Read['records'] = [];
  let markers = 0;
  let aborted = 0;
  const marks = opened.log.watermarks(partitionId)!;
  const end = isolation === 'read_committed' ? marks.lastStableOffset : marks.highWatermark;
  for (let offset = marks.logStartOffset; offset < end; ) {
    const before = offset;
    const partitions = [{ partitionId, offset, maxBytes }];
    const read = await opened.log.read({ partitions, maxBytes, isolation, purpose: 'consumer' });
    const { runs, abortedTransactions, errorCode } = read.partitions[0]!;
    expect(errorCode).toBe(0);
    const list = abortedTransactions.toSorted((a, b) => a.firstOffset - b.firstOffset);
    const open = new Set<number>();
    aborted += list.length;
    for (const run of runs) {
      let base = run.baseOffset;
      for (let at = 0, to: number; (to = batchEnd(run.bytes, at)) !== -1; at = to) {
        expect(crcMatches(run.bytes, at)).toBe(true);
        if (run.patched) base = baseOffset(run.bytes, at);
        const last = base + lastOffsetDelta(run.bytes, at);
        while (list.length > 0 && list[0]!.firstOffset <= last) open.add(list.shift()!.producerId);
        const id = producerId(run.bytes, at);
        if (isControl(run.bytes, at)) {
          if (recordCount(run.bytes, at) > 0) markers += 1;
          open.delete(id);
        } else if (!(isTransactional(run.bytes, at) && open.has(id))) {
          for (const record of recordsOf(run.bytes, at, base))
            if (record.offset >= offset) records.push(record);
        }
        base = last + 1;
        if (last >= offset) offset = base;
      }
    }
    read.release();
    expect(offset).toBeGreaterThan(before);
  }
  return { records, markers, aborted };
}

function* recordsOf(bytes: Uint8Array, at: number, base: number) {
  const cursor = new RecordCursor();
  cursor.open(bytes, at, { baseOffset: base });
  const text = (start: number, length: number) =>
    Buffer.from(cursor.bytes.slice(start, start + length)).toString();
  while (cursor.next()) {
    const value = cursor.valueLength < 0 ? null : text(cursor.valueStart, cursor.valueLength);
    yield { offset: cursor.offset, key: text(cursor.keyStart, cursor.keyLength), value };
  }
}

/** Nothing aborted, nothing changed, and nothing gone that was not superseded by what is committed. */
async function check(partitionId: number, maxBytes: number): Promise<void> {
  const { lastStableOffset } = opened.log.watermarks(partitionId)!;
  const { records } = await readAll(partitionId, 'read_committed', maxBytes);
  const byOffset = new Map(written.map((record) => [record.offset, record]));
  const seen = new Set<number>();
  for (const { offset, key, value } of records) {
    expect(byOffset.get(offset)).toMatchObject({ key, value, committed: true });
    expect(seen.has(offset)).toBe(false);
    seen.add(offset);
  }
  const newest = new Map<string, number>();
  for (const { key, offset, committed } of written)
    if (committed === true && offset < lastStableOffset) newest.set(key, offset);
  for (const { offset, key, value, committed, writtenMs } of written) {
    if (committed !== true || offset >= lastStableOffset || seen.has(offset)) continue;
    const expired = value === null && clock.now() - writtenMs >= RETENTION_MS;
    if (!expired) expect(newest.get(key), `${key} at ${offset}`).toBeGreaterThan(offset);
  }
}

test('aborted records go at once, their marker after its time, and its range with it (L7)', async () => {
  const partition = await createTopic();
  const producer = await new Producer('t', partition).init();
  await producer.send([{ key: 'a', value: 'committed' }]);
  await producer.end(true);
  await producer.send([{ key: 'a', value: 'aborted' }]);
  await producer.end(false);
  await producer.send([{ key: 'b', value: 'open' }]);
  await untilDone(keyCompactor([partition]));
  // An aborted record supersedes nothing, an open one is not touched.
  expect((await readAll(partition, 'read_uncommitted')).records).toEqual([
    { offset: 0, key: 'a', value: 'committed' },
    { offset: 4, key: 'b', value: 'open' },
  ]);
  expect(await metadata.log.abortedTransactions(partition, 0, 4)).toHaveLength(1);
  await producer.end(true);
  const last = await readAll(partition, 'read_committed');
  expect(last.records).toHaveLength(2);
  // Twice the horizon: first the marker is found idle, then its time is up.
  for (let n = 0; n < 3; n += 1) {
    await append(itemOf(partition, [{ key: 'c', value: `${n}` }]), [], true);
    await untilDone(keyCompactor([partition]));
    await clock.advance(61_000);
  }
  expect(await metadata.log.abortedTransactions(partition, 0, 9)).toEqual([]);
  const after = await readAll(partition, 'read_committed');
  // The markers of the two that still have records stay.
  expect(after.markers).toBe(2);
  expect(after.aborted).toBe(0);
  expect(after.records.map(({ key, value }) => [key, value])).toEqual([
    ['a', 'committed'],
    ['b', 'open'],
    ['c', '2'],
  ]);
  // What the producer commits now is read: nothing of the old range lives on, in no life.
  await producer.send([{ key: 'a', value: 'again' }]);
  await producer.end(true);
  for (let life = 0; life < 2; life += 1) {
    expect((await readAll(partition, 'read_committed')).records.at(-1)).toMatchObject({
      key: 'a',
      value: 'again',
    });
    await reopen();
  }
});

test.each([1, 2, 3, 4])(
  'model: seed %i',
  async (seed) => {
    const prng = seededPrng(seed);
    const partition = await createTopic();
    const producers = await Promise.all(
      ['x', 'y', 'z'].map((id) => new Producer(id, partition).init()),
    );
    let subject = keyCompactor([partition]);
    for (let step = 0; step < 150; step += 1) {
      const dice = prng.next();
      const producer = producers[prng.int(3)]!;
      if (dice < 0.4) await producer.send(randomRecords(prng));
      else if (dice < 0.5) {
        const records = randomRecords(prng);
        await append(itemOf(partition, records), records, true);
      } else if (dice < 0.7) {
        if (producer.open.length > 0) await producer.end(prng.int(3) > 0);
      } else if (dice < 0.85) {
        await clock.advance(prng.int(8_000));
        for (let n = prng.int(10); n > 0; n -= 1) await subject.step();
      } else if (dice < 0.9) {
        await reopen();
        subject = keyCompactor([partition]);
      } else await check(partition, 200 + prng.int(4_000));
    }
    for (const producer of producers) if (producer.open.length > 0) await producer.end(true);
    for (let n = 0; n < 5; n += 1) {
      const records = [{ key: 'last', value: `${n}` }];
      await append(itemOf(partition, records), records, true);
      await untilDone(subject);
      await check(partition, 1_000);
      await clock.advance(61_000);
    }
    expect(await metadata.log.abortedTransactions(partition, 0, 100_000)).toEqual([]);
    const { records } = await readAll(partition, 'read_committed');
    const { records: all } = await readAll(partition, 'read_uncommitted');
    expect(all).toEqual(records);
    expect(new Set(records.map(({ key }) => key)).size).toBe(records.length);
  },
  30_000,
);

function randomRecords(prng: Prng): KeyValue[] {
  return Array.from({ length: 1 + prng.int(4) }, () => ({
    key: `k${prng.int(12)}`,
    value: prng.int(6) === 0 ? null : 'v'.repeat(1 + prng.int(80)),
  }));
}
