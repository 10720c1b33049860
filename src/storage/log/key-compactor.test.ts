import { afterEach, beforeEach, expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededPrng } from '../../base/prng.ts';
import type { ObjectEntry } from '../../metadata/log.ts';
import { Attribute, attributes, baseTimestamp } from '../../protocol/record-batch.ts';
import { RecordCursor } from '../../protocol/record-cursor.ts';
import type { CompactionPolicy } from './clean-choice.ts';
import { Compactor } from './compactor.ts';
import { KeyCompactor, type KeyCompactorOptions } from './key-compactor.ts';
import { loadRecent } from './open-log.ts';
import { LocalRangeCleaner } from './range-cleaner.ts';
import type { LogReader } from './reader.ts';
import { batchesOf, TEST_CLUSTER, TestLog } from './test-log.ts';
import { clusterTag } from './wal-format.ts';

const KIB = 1024;
const policy: CompactionPolicy = {
  minLagMs: 0,
  maxLagMs: Infinity,
  minDirtyRatio: 0,
  deleteRetentionMs: 10_000,
  segmentMs: 1_000,
  segmentBytes: 1 << 30,
};

let log: TestLog;
beforeEach(async () => {
  log = await TestLog.open({ fileBytes: 64 * KIB });
});
afterEach(() => log.stop());

function keyCompactor(
  partitionIds: readonly number[],
  more: Partial<KeyCompactorOptions> & { readonly policy?: CompactionPolicy } = {},
): KeyCompactor {
  return new KeyCompactor({
    clusterId: TEST_CLUSTER,
    store: log.store,
    source: log.source,
    metadata: log.metadata,
    reader: log.reader,
    cleaner: new LocalRangeCleaner(clusterTag(TEST_CLUSTER), 1 << 30),
    partitions: () =>
      partitionIds.map((partitionId) => ({ partitionId, policy: more.policy ?? policy })),
    endOf: () => undefined,
    pin: () => Infinity,
    roll: () => log.seal(),
    mapBytes: 1024 * KIB,
    objectBytes: 256 * KIB,
    blockBytes: 4 * KIB,
    clock: log.clock,
    ids: log.ids,
    prng: seededPrng(7),
    logger: silentLogger,
    metrics: noMetrics,
    onReplaced: (objectIds) => log.reader.replaced(objectIds),
    onCompacted: () => {},
    onAbortsGone: () => {},
    ...more,
  });
}

async function untilDone(subject: KeyCompactor): Promise<number> {
  let steps = 0;
  while ((await subject.step()) > 0) expect((steps += 1)).toBeLessThan(2_000);
  return steps;
}

interface Seen {
  readonly offset: number;
  readonly key: string | null;
  readonly value: string | null;
  readonly timestamp: number;
}

/** All records of a partition by fetches of random sizes, in order; fails where a read does not go on. */
async function records(partitionId: number, reader: LogReader = log.reader): Promise<Seen[]> {
  const seen: Seen[] = [];
  const end = await log.endOf(partitionId);
  const cursor = new RecordCursor();
  const text = (start: number, length: number) =>
    length < 0 ? null : Buffer.from(cursor.bytes.slice(start, start + length)).toString();
  for (let offset = await startOf(partitionId); offset < end; ) {
    const found = await log.read(partitionId, offset, {
      reader,
      maxBytes: 1 + ((offset * 37) % 9_000),
    });
    const before = offset;
    for (const { bytes, baseOffset, endOffset } of batchesOf(found)) {
      cursor.open(bytes, 0, { baseOffset });
      while (cursor.next()) {
        if (cursor.offset < offset) continue;
        const key = text(cursor.keyStart, cursor.keyLength);
        const value = text(cursor.valueStart, cursor.valueLength);
        seen.push({ offset: cursor.offset, key, value, timestamp: cursor.timestamp });
      }
      expect(endOffset).toBeGreaterThan(offset);
      offset = endOffset;
    }
    found.release();
    expect(offset).toBeGreaterThan(before);
  }
  return seen;
}

async function startOf(partitionId: number): Promise<number> {
  return (await log.metadata.log.partitions([partitionId]))[0]!.logStartOffset;
}

const plain = (seen: readonly Seen[]) => seen.map(({ offset, key, value }) => [offset, key, value]);

test('of each key the last record stays, at its offset, with its time', async () => {
  const [partition] = (await log.createTopic(1)) as [number];
  for (let n = 0; n < 30; n += 1) {
    await log.append([
      {
        partitionId: partition,
        compression: n % 5,
        records: ['a', 'b', `c${n % 3}`].map((key) => ({ key, value: `${key}${n}`, timestamp: n })),
      },
    ]);
  }
  await log.clock.advance(5_000);
  expect(await untilDone(keyCompactor([partition]))).toBeGreaterThan(0);
  const expected = [
    [83, 'c0', 'c027'],
    [86, 'c1', 'c128'],
    [87, 'a', 'a29'],
    [88, 'b', 'b29'],
    [89, 'c2', 'c229'],
  ];
  const seen = await records(partition);
  expect(plain(seen)).toEqual(expected);
  expect(seen.map(({ timestamp }) => timestamp)).toEqual([27, 28, 29, 29, 29]);
  // A reader that starts now agrees, and so does one that looks by time.
  const fresh = log.openReader();
  await loadRecent(fresh, log.metadata);
  expect(plain(await records(partition, fresh))).toEqual(expected);
  const range = { logStartOffset: 0, endOffset: 90 };
  expect(await fresh.offsetForTime(partition, 5, range)).toEqual({ offset: 83, timestamp: 27 });
  expect(await fresh.offsetForTime(partition, 28, range)).toEqual({ offset: 86, timestamp: 28 });
  expect(await fresh.maxTimestamp(partition, range)).toEqual({ offset: 87, timestamp: 29 });
  // At rest.
  expect(await untilDone(keyCompactor([partition]))).toBe(0);
});

test('a tombstone stays for its time after it was first compacted, then it goes too', async () => {
  const [partition] = (await log.createTopic(1)) as [number];
  await log.append([
    {
      partitionId: partition,
      records: [
        { key: 'a', value: '1', timestamp: 5 },
        { key: 'b', value: '1', timestamp: 6 },
        { key: 'a', value: null, timestamp: 7 },
      ],
    },
  ]);
  await log.append([{ partitionId: partition, records: [{ key: 'c', value: '1', timestamp: 8 }] }]);
  await log.clock.advance(60_000);
  await untilDone(keyCompactor([partition]));
  const kept = await records(partition);
  expect(plain(kept)).toEqual([
    [1, 'b', '1'],
    [2, 'a', null],
    [3, 'c', '1'],
  ]);
  // KIP-534: the horizon is in the batch, and the times of its records are what they were.
  expect(kept.map(({ timestamp }) => timestamp)).toEqual([6, 7, 8]);
  const [batch] = await log.readAll(partition);
  expect(attributes(batch!.bytes) & Attribute.DELETE_HORIZON).not.toBe(0);
  expect(baseTimestamp(batch!.bytes)).toBe(log.clock.now() + policy.deleteRetentionMs);
  await log.clock.advance(policy.deleteRetentionMs - 1);
  expect(await untilDone(keyCompactor([partition]))).toBe(0);
  await log.clock.advance(1);
  // Nothing was produced: that the time has come is reason enough.
  expect(await untilDone(keyCompactor([partition]))).toBeGreaterThan(0);
  expect(plain(await records(partition))).toEqual([
    [1, 'b', '1'],
    [3, 'c', '1'],
  ]);
  expect(await untilDone(keyCompactor([partition]))).toBe(0);
});

test('the end of a log can be read on from even when nothing of it stays', async () => {
  const [partition] = (await log.createTopic(1)) as [number];
  await log.append([
    { partitionId: partition, records: [{ key: 'a', value: null, timestamp: 1 }] },
  ]);
  await log.clock.advance(60_000);
  for (let n = 0; n < 2; n += 1) {
    await untilDone(keyCompactor([partition]));
    await log.clock.advance(policy.deleteRetentionMs);
  }
  expect(await records(partition)).toEqual([]);
  const [batch] = await log.readAll(partition);
  expect(batch).toMatchObject({ baseOffset: 0, endOffset: 1 });
  await log.append([{ partitionId: partition, records: [{ key: 'b', value: '1', timestamp: 2 }] }]);
  expect(plain(await records(partition))).toEqual([[1, 'b', '1']]);
});

test('the time of a tombstone begins with the round that knows it', async () => {
  const [partition] = (await log.createTopic(1)) as [number];
  const append = (key: string, value: string | null, timestamp: number) =>
    log.append([{ partitionId: partition, records: [{ key, value, timestamp }] }]);
  await append('a', 'old', 1);
  await append('b', '1', 2);
  await append('a', null, 3);
  await append('c', '1', 4);
  await log.seal();
  await log.clock.advance(60_000);
  // Its row is rewritten, but somebody still has to read from 2 on as it is.
  await untilDone(keyCompactor([partition], { pin: () => 2 }));
  await log.clock.advance(policy.deleteRetentionMs);
  // Only now does the old value go: who has read it shall find the tombstone.
  await untilDone(keyCompactor([partition]));
  expect(plain(await records(partition))).toEqual([
    [1, 'b', '1'],
    [2, 'a', null],
    [3, 'c', '1'],
  ]);
  await log.clock.advance(policy.deleteRetentionMs);
  await untilDone(keyCompactor([partition]));
  expect((await records(partition)).map(({ key }) => key)).toEqual(['b', 'c']);
});

test('what changed under its compaction is compacted again, before any tombstone of it goes', async () => {
  const [partition] = (await log.createTopic(1)) as [number];
  const fill = (n: number) => ({ key: `fill${n}`, value: 'v'.repeat(3_000), timestamp: n });
  await log.append([
    { partitionId: partition, records: [{ key: 'a', value: 'old', timestamp: 1 }, fill(1)] },
  ]);
  await log.seal();
  await log.append([
    { partitionId: partition, records: [{ key: 'a', value: null, timestamp: 2 }, fill(2)] },
  ]);
  await log.seal();
  await log.clock.advance(60_000);
  let conflicts = 1;
  const objects = log.metadata.objects;
  const metadata = {
    log: log.metadata.log,
    objects: {
      cleanings: () => objects.cleanings(),
      noteCleaned: (cleanings: Parameters<typeof objects.noteCleaned>[0]) =>
        objects.noteCleaned(cleanings),
      replace: async (request: Parameters<typeof objects.replace>[0]) => {
        if (conflicts-- > 0) throw new FloeError('conflict', 'merged meanwhile');
        return objects.replace(request);
      },
    },
  };
  // An object a row, so that only the first of the two swaps fails.
  const subject = keyCompactor([partition], { metadata, objectBytes: 1 });
  for (let rounds = 0; rounds < 3; rounds += 1) {
    await untilDone(subject);
    await log.clock.advance(policy.deleteRetentionMs);
  }
  const left = (await records(partition)).map(({ key }) => key);
  expect(left).toEqual(['fill1', 'fill2']);
});

test('a row that others rewrote under its compaction, and whose object is gone, is no damage', async () => {
  const [partition] = (await log.createTopic(1)) as [number];
  const append = async (value: string) => {
    await log.append([{ partitionId: partition, records: [{ key: 'a', value, timestamp: 1 }] }]);
    await log.seal();
  };
  await append('one');
  await append('two');
  let gone = false;
  const source: KeyCompactorOptions['source'] = {
    read: async (...args) => {
      if (gone) return log.source.read(...args);
      gone = true;
      await untilDone(keyCompactor([partition]));
      throw new FloeError('not-found', 'its grace is over');
    },
  };
  const subject = keyCompactor([partition], { source });
  expect(await subject.step()).toBe(0);
  await append('three');
  await untilDone(subject);
  expect((await records(partition)).map(({ value }) => value)).toEqual(['three']);
});

test('partitions at rest are not asked about until something changes', async () => {
  const partitions = await log.createTopic(40);
  const ends = new Map<number, number>();
  const append = async (partitionId: number, value: string | null) => {
    const records = [{ key: 'a', value, timestamp: log.clock.now() }];
    await log.append([{ partitionId, records }]);
    ends.set(partitionId, (ends.get(partitionId) ?? 0) + 1);
  };
  for (const partitionId of partitions.slice(0, 30)) {
    await append(partitionId, 'one');
    await append(partitionId, 'two');
  }
  await log.seal();
  const asked: (readonly number[])[] = [];
  const metadata: KeyCompactorOptions['metadata'] = {
    objects: log.metadata.objects,
    log: {
      partitions(ids = []) {
        asked.push(ids);
        return log.metadata.log.partitions(ids);
      },
      entriesFrom: (...args) => log.metadata.log.entriesFrom(...args),
      abortedTransactions: (...args) => log.metadata.log.abortedTransactions(...args),
      forgetAborted: (...args) => log.metadata.log.forgetAborted(...args),
    },
  };
  let ratio = 0;
  const subject = keyCompactor([], {
    metadata,
    endOf: (partitionId) => ends.get(partitionId) ?? 0,
    partitions: () =>
      partitions.map((partitionId) => ({
        partitionId,
        policy: { ...policy, minDirtyRatio: ratio },
      })),
  });
  const askedOf = async () => {
    asked.length = 0;
    await untilDone(subject);
    return [...new Set(asked.flat())].toSorted((a, b) => a - b);
  };
  expect(await askedOf()).toEqual(partitions);
  await askedOf();
  // Nothing has changed: not one statement.
  expect(await askedOf()).toEqual([]);
  expect(asked).toEqual([]);
  const [first, second] = partitions as [number, number];
  await append(first, null);
  await append(second, 'three');
  await log.seal();
  expect(await askedOf()).toEqual([first, second]);
  await askedOf();
  expect(await askedOf()).toEqual([]);
  // The tombstone comes of age.
  await log.clock.advance(policy.deleteRetentionMs);
  expect(await askedOf()).toEqual([first]);
  expect(await records(first)).toEqual([]);
  await askedOf();
  ratio = 0.1;
  expect(await askedOf()).toEqual(partitions);
});

test('a partition whose bytes came damaged is left for a while, and the others go on', async () => {
  const [bad, good] = (await log.createTopic(2)) as [number, number];
  for (const value of ['one', 'two']) {
    for (const partitionId of [bad, good])
      await log.append([{ partitionId, records: [{ key: 'a', value, timestamp: 1 }] }]);
    await log.seal();
  }
  const badKeys = new Set(
    (await log.metadata.log.entriesFrom(bad, 0, 10)).map(({ objectKey }) => objectKey),
  );
  expect(badKeys.size).toBe(2);
  let damaged = true;
  const distrusted: string[] = [];
  const source: KeyCompactorOptions['source'] = {
    read: async (object, reads, options) => {
      await log.source.read(object, reads, options);
      const [{ position, into }] = reads as [(typeof reads)[number]];
      // The first block of a file is that of the partition that wrote first.
      if (damaged && position < 4_096) into[into.length - 1]! ^= 1;
    },
    distrust: (key) => distrusted.push(key),
  };
  const { gauges, metrics } = gaugesOf();
  const uncleanable = () => gauges.get('floe_log_cleaner_uncleanable_partitions')!();
  const subject = keyCompactor([bad, good], { source, metrics });
  await expect(subject.step()).rejects.toMatchObject({ code: 'corrupt' });
  expect(badKeys).toContain(distrusted[0]);
  expect(uncleanable()).toBe(1);
  await untilDone(subject);
  const valuesOf = async (partitionId: number) =>
    (await records(partitionId)).map(({ value }) => value);
  expect(await valuesOf(good)).toEqual(['two']);
  expect(await valuesOf(bad)).toEqual(['one', 'two']);
  damaged = false;
  await untilDone(subject);
  expect(await valuesOf(bad)).toEqual(['one', 'two']);
  await log.clock.advance(60_000);
  await untilDone(subject);
  expect(await valuesOf(bad)).toEqual(['two']);
  expect(uncleanable()).toBe(0);
});

function gaugesOf() {
  const gauges = new Map<string, () => number>();
  const metrics = {
    ...noMetrics,
    observeGauge: (name: string, _: string, read: () => number) => void gauges.set(name, read),
  };
  return { gauges, metrics };
}

test('rows that others merge while they are asked for are asked for again', async () => {
  const [partition] = (await log.createTopic(1)) as [number];
  const row = (baseOffset: number, endOffset: number) =>
    ({ partitionId: partition, baseOffset, endOffset, bytes: 1 }) as ObjectEntry;
  const page = Array.from({ length: 256 }, (_, n) => row(n, n + 1));
  const answers = [page, [row(200, 300)], [row(0, 300)]];
  const asked: number[] = [];
  const known = { partitionId: partition, logStartOffset: 0, maxTimestamp: 1, sizeBytes: 300 };
  const metadata = {
    log: {
      ...log.metadata.log,
      partitions: async () => [{ ...known, highWatermark: 300, lastStableOffset: 300 }],
      entriesFrom: async (_: number, from: number) => {
        asked.push(from);
        return answers.shift()!;
      },
    },
    objects: log.metadata.objects,
  } as unknown as KeyCompactorOptions['metadata'];
  // A table still has to read all of it.
  const subject = keyCompactor([partition], { metadata, pin: () => 0 });
  expect(await subject.step()).toBe(0);
  expect(asked).toEqual([0, 256, 0]);
});

/** What was written, by offset, against what is left: the rules, whatever happened meanwhile. */
class Model {
  readonly written: (Seen & { readonly writtenMs: number })[] = [];

  check(seen: readonly Seen[], logStart: number, nowMs: number): void {
    const left = new Set<number>();
    let before = -1;
    for (const record of seen) {
      expect(record.offset).toBeGreaterThan(before);
      before = record.offset;
      left.add(record.offset);
      const { writtenMs: _, ...original } = this.written[record.offset]!;
      expect(record).toEqual(original);
    }
    const newest = this.newest();
    for (const record of this.written) {
      if (record.offset < logStart || left.has(record.offset)) continue;
      const superseded = newest.get(record.key!)! > record.offset;
      const expired = record.value === null && nowMs - record.writtenMs >= policy.deleteRetentionMs;
      if (!superseded && !expired)
        expect.fail(`${record.key} at ${record.offset} is gone and was not superseded`);
    }
  }

  newest(): Map<string, number> {
    return new Map(this.written.map(({ key, offset }) => [key!, offset]));
  }
}

test.each([1, 2, 3, 4, 5, 6])(
  'model: seed %i',
  async (seed) => {
    const prng = seededPrng(seed);
    const [one, two] = (await log.createTopic(2)) as [number, number];
    const models = new Map([one, two].map((partitionId) => [partitionId, new Model()]));
    const small = { mapBytes: 24 * 16, objectBytes: (4 + prng.int(60)) * KIB };
    let subject = keyCompactor([one, two], small);
    const merge = () =>
      new Compactor({
        clusterId: TEST_CLUSTER,
        store: log.store,
        source: log.source,
        metadata: log.metadata,
        limits: {
          smallRunBytes: 4 * KIB,
          gapBytes: 256,
          smallShareBytes: 16 * KIB,
          fanIn: 2,
          objectBytes: 32 * KIB,
          minAgeMs: 0,
        },
        blockBytes: 4 * KIB,
        clock: log.clock,
        ids: log.ids,
        logger: silentLogger,
        metrics: noMetrics,
        onReplaced: (objectIds) => log.reader.replaced(objectIds),
      });
    const append = async () => {
      const appends = [];
      for (let n = 1 + prng.int(6); n > 0; n -= 1) {
        const partitionId = prng.int(2) === 0 ? one : two;
        const model = models.get(partitionId)!;
        const writtenMs = log.clock.now();
        const batch = Array.from({ length: 1 + prng.int(8) }, () => {
          const value = prng.int(5) === 0 ? null : 'v'.repeat(prng.int(300));
          const record = { key: `k${prng.int(25)}`, value, timestamp: writtenMs - prng.int(50) };
          model.written.push({ offset: model.written.length, ...record, writtenMs });
          return record;
        });
        appends.push({ partitionId, records: batch, compression: prng.int(5) });
      }
      await log.append(appends);
    };
    for (let step = 0; step < 120; step += 1) {
      const dice = prng.next();
      if (dice < 0.5) await append();
      else if (dice < 0.7) for (let n = prng.int(12); n > 0; n -= 1) await subject.step();
      else if (dice < 0.75) subject = keyCompactor([one, two], small);
      else if (dice < 0.85) await merge().step();
      else if (dice < 0.9) await log.clock.advance(prng.int(6_000));
      else if (dice < 0.92) {
        const offset = prng.int(Math.floor((await log.endOf(one)) / 3) + 1);
        await log.metadata.log.deleteRecords(one, offset);
        await log.metadata.objects.dropExpired(100);
      } else {
        for (const [partitionId, model] of models)
          model.check(await records(partitionId), await startOf(partitionId), log.clock.now());
      }
    }
    await log.clock.advance(20_000);
    for (const partitionId of [one, two])
      await log.append([
        { partitionId, records: [{ key: 'last', value: 'x', timestamp: log.clock.now() }] },
      ]);
    await log.seal();
    await untilDone(subject);
    await untilDone(keyCompactor([one, two]));
    await log.clock.advance(20_000);
    await untilDone(keyCompactor([one, two]));
    for (const [partitionId, model] of models) {
      const logStart = await startOf(partitionId);
      model.written.push({
        offset: model.written.length,
        key: 'last',
        value: 'x',
        timestamp: log.clock.now() - 20_000,
        writtenMs: log.clock.now() - 20_000,
      });
      const fresh = log.openReader();
      await loadRecent(fresh, log.metadata);
      const seen = await records(partitionId, fresh);
      model.check(seen, logStart, log.clock.now());
      const newest = model.newest();
      for (const { key, offset, value } of seen) {
        expect(newest.get(key!)).toBe(offset);
        expect(value).not.toBeNull();
      }
      await expectTiled(partitionId, logStart);
    }
  },
  30_000,
);

/** Rows and flushes hold every offset once, and sizes add up. */
async function expectTiled(partitionId: number, logStart: number): Promise<void> {
  const rows = await log.metadata.log.entriesFrom(partitionId, logStart, 10_000);
  let next = rows[0]!.baseOffset;
  expect(next).toBeLessThanOrEqual(logStart);
  for (const { baseOffset, endOffset } of rows) {
    expect(baseOffset).toBe(next);
    next = endOffset;
  }
  expect(next).toBe(await log.endOf(partitionId));
}
