import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { MemoryObjectStore } from '../objects/memory.ts';
import { walKey } from '../paths.ts';
import type { ByteSource } from './byte-source.ts';
import type { ChoiceLimits } from './compact-choice.ts';
import { chooseJob } from './compact-choice.ts';
import { Compactor, type CompactorOptions } from './compactor.ts';
import { layoutFlush } from './layout.ts';
import { loadRecent } from './open-log.ts';
import { TEST_CLUSTER, TestLog, toItem } from './test-log.ts';
import { clusterTag } from './wal-format.ts';

const KIB = 1024;
const limits: ChoiceLimits = {
  smallRunBytes: 16 * KIB,
  gapBytes: 1 * KIB,
  smallShareBytes: 64 * KIB,
  fanIn: 4,
  objectBytes: 256 * KIB,
  minAgeMs: 0,
};

let log: TestLog;
let replaced: number[];
beforeEach(async () => {
  log = await TestLog.open({ fileBytes: 1024 * KIB, settings: { 'log.read.gap.bytes': '1024' } });
  replaced = [];
});
afterEach(() => log.stop());

function compactor(more: Partial<CompactorOptions> = {}): Compactor {
  return new Compactor({
    clusterId: TEST_CLUSTER,
    store: log.store,
    source: log.source,
    metadata: log.metadata,
    limits,
    blockBytes: 64 * KIB,
    clock: log.clock,
    ids: log.ids,
    logger: silentLogger,
    metrics: noMetrics,
    onReplaced(objectIds) {
      replaced.push(...objectIds);
      log.reader.replaced(objectIds);
    },
    ...more,
  });
}

async function untilDone(subject: Compactor): Promise<number> {
  let steps = 0;
  while ((await subject.step()) > 0) expect((steps += 1)).toBeLessThan(200);
  return steps;
}

test('one partition of many, written record by record, reads back in large reads', async () => {
  const partitions = await log.createTopic(100);
  // An hour by the clock: each flush brings one record of every second partition.
  for (let n = 0; n < 200; n += 1) {
    await log.clock.advance(18_000);
    const half = partitions.filter((_, index) => index % 2 === n % 2);
    await log.append(
      half.map((partitionId) => ({
        partitionId,
        records: [{ key: `${n}`, value: Buffer.alloc(900, n), timestamp: log.clock.now() }],
      })),
    );
  }
  await log.seal();
  const read = async () => {
    log.gets.length = 0;
    const batches = await log.readAll(partitions[42]!, { reader: log.openReader() });
    const bytes = batches.reduce((sum, batch) => sum + batch.bytes.length, 0);
    // The index of each object is read once, beside its data.
    const objects = new Set(log.gets.map(({ key }) => key)).size;
    return { batches, bytes, calls: log.gets.length - objects };
  };
  const before = await read();
  expect(before.batches).toHaveLength(100);
  expect(before.calls).toBeGreaterThan(before.bytes / (2 * KIB));
  const subject = compactor({ limits: { ...limits, objectBytes: 1024 * KIB } });
  await untilDone(subject);
  const after = await read();
  expect(after.batches).toEqual(before.batches);
  // At most one call per 64 KiB, but for the few youngest objects, which wait for company.
  expect(after.calls).toBeLessThanOrEqual(Math.ceil(after.bytes / (64 * KIB)) + limits.fanIn - 1);
  expect(after.calls).toBeLessThan(before.calls / 10);
  // Nothing else was lost either, and the reader that lived through it agrees.
  for (const partitionId of partitions) expect(await log.readAll(partitionId)).toHaveLength(100);
  expect(await log.readAll(partitions[42]!)).toEqual(before.batches);
}, 60_000);

test('what is deleted or expired is not copied, and its space comes back', async () => {
  const gone = await log.createTopic(1, 'gone');
  const [kept, cut] = (await log.createTopic(2, 'kept')) as [number, number];
  for (let n = 0; n < 40; n += 1) {
    await log.append([
      { partitionId: gone[0]!, records: [{ value: 'x'.repeat(4_000) }] },
      { partitionId: kept, records: [{ value: `k${n}` }] },
      { partitionId: cut, records: [{ value: `c${n}` }] },
    ]);
  }
  await log.seal();
  const topic = (await log.metadata.topics.list()).find(({ name }) => name === 'gone')!;
  await log.metadata.topics.delete(topic.topicId);
  await log.metadata.log.deleteRecords(cut, 30);
  expect(await untilDone(compactor())).toBe(1);
  const entries = await log.metadata.log.entriesFrom(cut, 0, 10);
  expect(
    entries.map(({ baseOffset, endOffset, recordCount }) => [baseOffset, endOffset, recordCount]),
  ).toEqual([[30, 40, 10]]);
  expect(await log.readAll(kept)).toHaveLength(40);
  expect(await log.readAll(cut, { offset: 30 })).toHaveLength(10);
  await expectSizes([kept, cut]);
  const [object] = await log.metadata.objects.claimUnreferenced(log.clock.now(), 10);
  expect(replaced).toContain(object!.objectId);
});

test('commits keep their numbers, whatever lies together by now', async () => {
  const partitions = (await log.createTopic(3)) as [number, number, number];
  const expected = new Map(partitions.map((id) => [id, [] as number[]]));
  const produce = async (flushes: number) => {
    for (let n = 0; n < flushes; n += 1) {
      const some = partitions.filter((_, index) => n % (index + 1) === 0);
      await log.append(
        some.map((partitionId) => ({ partitionId, records: [{ value: `${n}` }, { value: 'y' }] })),
      );
      const commit = await log.metadata.log.lastCommitNumber();
      for (const id of some) expected.get(id)!.push(commit, commit);
    }
  };
  const check = async () => {
    for (const reader of [log.reader, log.openReader()]) {
      for (const [id, commits] of expected) {
        for (const from of [0, 7, commits.length - 1]) {
          const steps = await reader.commitSteps(id, from, commits.length);
          const found = commits.slice(from).map((_, n) => {
            const at = steps.offsets.findLastIndex((offset) => offset <= from + n);
            return steps.commits[at];
          });
          expect(found).toEqual(commits.slice(from));
        }
      }
    }
  };
  await produce(20);
  await check();
  await log.seal();
  await check();
  await produce(10);
  await log.seal();
  await untilDone(compactor());
  await produce(5);
  await check();
});

test('tiny shares of many partitions come to rest', async () => {
  const partitions = await log.createTopic(100);
  await log.append(partitions.map((partitionId) => ({ partitionId, records: [{ value: 'x' }] })));
  await log.seal();
  // Headers and index outweigh the records, in the file and in the object that replaces it.
  expect(await untilDone(compactor())).toBe(1);
});

/** Sizes follow what is kept, or retention by size would count what is gone and delete more. */
async function expectSizes(partitionIds: readonly number[]): Promise<void> {
  for (const { partitionId, sizeBytes } of await log.metadata.log.partitions(partitionIds)) {
    const left = await log.metadata.log.entriesFrom(partitionId, 0, 10);
    expect(sizeBytes).toBe(left.reduce((sum, { bytes }) => sum + bytes, 0));
  }
}

test('a source that changed during a step makes it void', async () => {
  const partitions = await log.createTopic(50);
  for (let n = 0; n < 20; n += 1)
    await log.append(
      partitions.map((partitionId) => ({ partitionId, records: [{ value: 'x'.repeat(100) }] })),
    );
  await log.seal();
  // Another compactor swaps between this one's reads and its own swap.
  let raced = false;
  const source: ByteSource = {
    async read(...args) {
      await log.source.read(...args);
      if (raced) return;
      raced = true;
      await untilDone(compactor());
    },
  };
  await compactor({ source }).step();
  for (const partitionId of partitions) expect(await log.readAll(partitionId)).toHaveLength(20);
  const keys = (await log.metadata.objects.list('sealed', 0, 100)).map(({ key }) => key);
  const stored: string[] = [];
  for await (const { key } of log.store.list(`${TEST_CLUSTER}/stream/`)) stored.push(key);
  expect(stored.filter((key) => !keys.includes(key))).toHaveLength(1);
});

test('damage does not spread: a step over a bad batch fails and swaps nothing', async () => {
  const partitions = await log.createTopic(50);
  for (let n = 0; n < 20; n += 1)
    await log.append(
      partitions.map((partitionId) => ({ partitionId, records: [{ value: 'x'.repeat(100) }] })),
    );
  await log.seal();
  const source: ByteSource = {
    async read(object, reads, options) {
      await log.source.read(object, reads, options);
      for (const { into } of reads) if (into.length > 50_000) into[40_000]! ^= 1;
    },
  };
  await expect(compactor({ source }).step()).rejects.toMatchObject({ code: 'corrupt' });
  expect(replaced).toEqual([]);
  for (const partitionId of partitions) expect(await log.readAll(partitionId)).toHaveLength(20);
});

test('a damaged object is left alone, and the others are rewritten', async () => {
  const partitions = await log.createTopic(50);
  const keys = new Set<string>();
  for (let n = 0; n < 40; n += 1) {
    const appends = partitions.map((partitionId) => ({
      partitionId,
      records: [{ value: 'x'.repeat(100) }],
    }));
    keys.add((await log.append(appends)).objectKey);
    if (n % 20 === 19) await log.seal();
  }
  const [bad] = keys;
  const source: ByteSource = {
    async read(object, reads, options) {
      await log.source.read(object, reads, options);
      if (object.key === bad) for (const { into } of reads) into[100]! ^= 1;
    },
  };
  const subject = compactor({ source, limits: { ...limits, objectBytes: 100 * KIB } });
  await expect(subject.step()).rejects.toMatchObject({ code: 'corrupt' });
  expect(await untilDone(subject)).toBeGreaterThan(0);
  const left = new Set<string>();
  for (const partitionId of partitions)
    for (const { objectKey } of await log.metadata.log.entriesFrom(partitionId, 0, 10))
      left.add(objectKey);
  expect([...keys].filter((key) => left.has(key))).toEqual([bad]);
});

/** Merges worth doing: several objects with the same partitions. */
async function mergeable(partitions: readonly number[]): Promise<string[]> {
  const keys = new Set<string>();
  for (let n = 0; n < 2 * limits.fanIn - 1; n += 1) {
    const records = [{ value: 'x'.repeat(2_000) }];
    const appends = partitions.map((partitionId) => ({ partitionId, records }));
    keys.add((await log.append(appends)).objectKey);
    await log.seal();
  }
  return [...keys];
}

/** Damages reads of `key` as long as `lasts` says, and tells of them. */
function damaging(key: string, lasts: (reads: number) => boolean) {
  const seen = { reads: 0, distrusted: [] as string[] };
  const source: ByteSource = {
    async read(object, reads, options) {
      await log.source.read(object, reads, options);
      if (object.key !== key) return;
      seen.reads += 1;
      if (lasts(seen.reads)) for (const { into } of reads) into[100]! ^= 1;
    },
    distrust: (one) => seen.distrusted.push(one),
  };
  return { source, seen };
}

test('an object whose bytes came damaged once is rewritten later', async () => {
  const partitions = await log.createTopic(20);
  const [bad] = await mergeable(partitions);
  const { source, seen } = damaging(bad!, (reads) => reads === 1);
  const subject = compactor({ source });
  await expect(subject.step()).rejects.toMatchObject({ details: { key: bad } });
  expect(seen.distrusted).toEqual([bad]);
  expect(subject.damaged).toBe(1);
  await untilDone(subject);
  // Others that were to be merged with it go on without it.
  expect(replaced.length).toBeGreaterThanOrEqual(limits.fanIn);
  const idOf = async (key: string) =>
    (await log.metadata.objects.list('sealed', 0, 100)).find((one) => one.key === key)?.objectId;
  const badId = await idOf(bad!);
  expect(replaced).not.toContain(badId);
  await log.clock.advance(60_000);
  await mergeable(partitions);
  await untilDone(subject);
  expect(replaced).toContain(badId);
  expect(subject.damaged).toBe(0);
});

test('an object that stays damaged is tried ever more seldom', async () => {
  const [bad] = await mergeable(await log.createTopic(20));
  const { source, seen } = damaging(bad!, () => true);
  const subject = compactor({ source });
  for (let minutes = 0; minutes < 240; minutes += 1) {
    await untilDone(subject).catch(() => {});
    await log.clock.advance(60_000);
  }
  expect(subject.damaged).toBe(1);
  expect(seen.distrusted.length).toBeLessThan(15);
});

test('unsealed objects whose bytes came damaged once are rewritten later; who wants more sealed goes on', async () => {
  const partitions = await log.createTopic(4);
  const store = new MemoryObjectStore(log.clock);
  let damaged = true;
  const source: ByteSource = {
    read: async (object, reads) => {
      for (const { position, into } of reads) {
        await store.get(object.key, { start: position, into });
        if (damaged) into[100]! ^= 1;
      }
    },
  };
  for (let n = 0; n < 3; n += 1) await putFlush(store, partitions, n);
  const subject = compactor({ store, source });
  expect(await subject.gather()).toBe(0);
  expect(subject.damaged).toBe(1);
  damaged = false;
  expect(await untilDone(subject)).toBe(0);
  await log.clock.advance(60_000);
  expect(await untilDone(subject)).toBeGreaterThan(0);
  await untilDone(subject);
  expect(subject.damaged).toBe(0);
});

test('objects of single flushes become one stream object', async () => {
  const partitions = await log.createTopic(4);
  const store = new MemoryObjectStore(log.clock);
  const source: ByteSource = {
    read: async (object, reads) => {
      for (const { position, into } of reads) {
        const from =
          object.key.includes('/wal/') || object.key.includes('/stream/') ? store : log.store;
        const found = await from.get(object.key, { start: position, into });
        expect(found).toHaveLength(into.length);
      }
    },
  };
  log.reader = log.openReader(source);
  for (let n = 0; n < 10; n += 1) await putFlush(store, partitions, n);
  const before = await Promise.all(partitions.map((partitionId) => log.readAll(partitionId)));
  expect(before.map((batches) => batches.length)).toEqual([10, 10, 10, 10]);
  expect(await untilDone(compactor({ store, source }))).toBe(1);
  await expectSizes(partitions);
  // The order of changes of a key across partitions goes by it (K1).
  expect((await log.metadata.log.entriesFrom(partitions[0]!, 0, 10))[0]!.commitNumber).toBe(10);
  const fresh = log.openReader(source);
  await loadRecent(fresh, log.metadata);
  for (const reader of [log.reader, fresh]) {
    const after = await Promise.all(
      partitions.map((partitionId) => log.readAll(partitionId, { reader })),
    );
    expect(after).toEqual(before);
  }
  expect(await log.metadata.log.flushesAfter(0, 100)).toEqual([]);
  expect(await log.metadata.objects.claimUnreferenced(log.clock.now(), 100)).toHaveLength(10);
});

/** A flush as it goes to S3: one object, committed by the sequencer. */
async function putFlush(store: MemoryObjectStore, partitions: readonly number[], n: number) {
  const { batches, columns, slab } = log.lay(
    partitions.map((partitionId) => toItem({ partitionId, records: [{ value: `v${n}` }] })),
  );
  const key = walKey(TEST_CLUSTER, { timeMs: log.clock.now(), id: log.ids.uuid() });
  const flushId = new Uint8Array(16).fill(n + 1);
  const options = {
    slab,
    position: 0,
    clusterTag: clusterTag(TEST_CLUSTER),
    generation: 0,
    flushId,
  };
  const order = Uint32Array.from(partitions, (_, i) => i);
  const layout = layoutFlush({ batches, order, ...options });
  await store.put(key, layout.parts);
  const object = { key, kind: 'object', generation: 0, bytes: layout.bytes } as const;
  log.reader.follow(await log.host.sequencer.submit({ flushId, columns, slab: 0, object }));
}

test('chooses what is scattered, then what is dead, then what should be merged', () => {
  const use = (
    objectId: number,
    more: {
      kind?: 'file' | 'object';
      entries: number;
      runs: number;
      liveBytes: number;
      bytes?: number;
    },
  ) => ({
    object: {
      objectId,
      key: `k${objectId}`,
      kind: more.kind ?? 'object',
      generation: 0,
      state: 'sealed' as const,
      bytes: more.bytes ?? more.liveBytes,
      createdMs: 0,
      changedMs: 0,
    },
    entries: more.entries,
    runs: more.runs,
    liveBytes: more.liveBytes,
  });
  const choose = (
    uses: Parameters<typeof chooseJob>[0],
    settled = new Set<number>(),
    minAgeMs = 0,
  ) => chooseJob(uses, 1_000, { limits: { ...limits, minAgeMs }, settled });
  const scattered = use(1, { kind: 'file', entries: 100, runs: 1_000, liveBytes: 100 * KIB });
  const large = use(2, { kind: 'file', entries: 16, runs: 16, liveBytes: 1_024 * KIB });
  const alone = use(3, { kind: 'file', entries: 1, runs: 1_000, liveBytes: 100 * KIB });
  const dead = use(4, { entries: 1, runs: 1, liveBytes: 100 * KIB, bytes: 900 * KIB });
  const small = [5, 6, 7, 8, 9].map((id) =>
    use(id, { entries: 100, runs: 100, liveBytes: 200 * KIB }),
  );
  expect(choose([scattered, large, alone, dead, ...small])).toEqual({
    reason: 'scattered',
    objectIds: [1],
  });
  expect(choose([large, dead, ...small])).toEqual({ reason: 'dead', objectIds: [4] });
  expect(choose([large, ...small])).toMatchObject({ reason: 'merge', objectIds: [5, 6, 7, 8] });
  expect(choose([large, ...small], new Set([5]))).toMatchObject({
    reason: 'merge',
    objectIds: [6, 7, 8, 9],
  });
  // Larger shares are left for their like: rewriting them for the sake of small ones gains little.
  const larger = [10, 11, 12].map((id) => use(id, { entries: 10, runs: 10, liveBytes: 200 * KIB }));
  expect(choose([...larger, ...small])).toMatchObject({ objectIds: [5, 6, 7, 8] });
  expect(choose([...larger, use(13, larger[0]!)])).toMatchObject({ objectIds: [10, 11, 12, 13] });
  expect(choose([large, ...small], new Set([5, 6]))).toBeUndefined();
  expect(choose([large])).toBeUndefined();
  expect(choose([scattered], new Set(), 2_000)).toBeUndefined();
});
