// A crash at every step of compaction by key: before and after each call that leaves something behind. What is read
// afterwards is right, and the next life finishes the work.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededPrng } from '../../base/prng.ts';
import { RecordCursor } from '../../protocol/record-cursor.ts';
import { KeyCompactor } from './key-compactor.ts';
import { loadRecent } from './open-log.ts';
import { LocalRangeCleaner } from './range-cleaner.ts';
import { batchesOf, TEST_CLUSTER, TestLog } from './test-log.ts';
import { clusterTag } from './wal-format.ts';

let log: TestLog;
beforeEach(async () => {
  log = await TestLog.open({ fileBytes: 32 * 1024 });
});
afterEach(() => log.stop());

/** Calls that a crash may come before or after. */
class Fuse {
  calls = 0;
  readonly #at: number;
  readonly #after: boolean;

  /** Burns at call `at`, before it happens or after. */
  constructor(at: number, after: boolean) {
    this.#at = at;
    this.#after = after;
  }

  wrap<T extends object>(domain: T): T {
    return new Proxy(domain, {
      get: (target, name) => {
        const method = Reflect.get(target, name);
        if (typeof method !== 'function') return method;
        return async (...args: unknown[]) => {
          this.calls += 1;
          const burns = this.calls === this.#at;
          if (burns && !this.#after) throw new FloeError('unavailable', 'the power is out');
          const result = await method.apply(target, args);
          if (burns) throw new FloeError('unavailable', 'the power is out');
          return result;
        };
      },
    });
  }
}

function keyCompactor(partitionIds: readonly number[], fuse: Fuse): KeyCompactor {
  const policy = {
    minLagMs: 0,
    maxLagMs: Infinity,
    minDirtyRatio: 0,
    deleteRetentionMs: 0,
    segmentMs: 0,
    segmentBytes: 1,
  };
  const { metadata } = log;
  return new KeyCompactor({
    clusterId: TEST_CLUSTER,
    store: fuse.wrap(log.store),
    source: fuse.wrap(log.source),
    metadata: { log: fuse.wrap(metadata.log), objects: fuse.wrap(metadata.objects) },
    reader: log.reader,
    cleaner: new LocalRangeCleaner(clusterTag(TEST_CLUSTER), 1 << 30),
    partitions: () => partitionIds.map((partitionId) => ({ partitionId, policy })),
    endOf: () => undefined,
    pin: () => Infinity,
    roll: () => log.seal(),
    mapBytes: 24 * 32,
    objectBytes: 16 * 1024,
    blockBytes: 2 * 1024,
    clock: log.clock,
    ids: log.ids,
    prng: seededPrng(7),
    logger: silentLogger,
    metrics: noMetrics,
    onReplaced: (objectIds) => log.reader.replaced(objectIds),
    onCompacted: () => {},
    onAbortsGone: () => {},
  });
}

async function untilDone(subject: KeyCompactor): Promise<void> {
  for (let steps = 0; (await subject.step()) > 0; steps += 1) expect(steps).toBeLessThan(1_000);
}

type Seen = readonly [offset: number, key: string, value: string | null];

async function records(partitionId: number): Promise<Seen[]> {
  const reader = log.openReader();
  await loadRecent(reader, log.metadata);
  const seen: Seen[] = [];
  const cursor = new RecordCursor();
  const text = (start: number, length: number) =>
    Buffer.from(cursor.bytes.slice(start, start + length)).toString();
  const end = await log.endOf(partitionId);
  for (let offset = 0; offset < end; ) {
    const found = await log.read(partitionId, offset, { reader, maxBytes: 5_000 });
    const before = offset;
    for (const { bytes, baseOffset, endOffset } of batchesOf(found)) {
      cursor.open(bytes, 0, { baseOffset });
      while (cursor.next()) {
        const value = cursor.valueLength < 0 ? null : text(cursor.valueStart, cursor.valueLength);
        seen.push([cursor.offset, text(cursor.keyStart, cursor.keyLength), value]);
      }
      offset = endOffset;
    }
    found.release();
    expect(offset).toBeGreaterThan(before);
  }
  return seen;
}

test('whatever step it ends at, the log reads as it should and the next life goes on', async () => {
  const partitionIds = await log.createTopic(2);
  const written = new Map(partitionIds.map((partitionId) => [partitionId, [] as Seen[]]));
  const prng = seededPrng(11);
  const append = async () => {
    await log.append(
      partitionIds.map((partitionId) => {
        const batch = Array.from({ length: 1 + prng.int(4) }, () => ({
          key: `k${prng.int(40)}`,
          value: prng.int(9) === 0 ? null : 'v'.repeat(prng.int(400)),
        }));
        const all = written.get(partitionId)!;
        for (const { key, value } of batch) all.push([all.length, key, value]);
        return { partitionId, records: batch };
      }),
    );
  };
  let crashes = 0;
  // Every call at first, then every third: they come again for each row and object.
  for (let at = 1, finished = 0; finished < 2; at += at < 20 ? 1 : 3) {
    for (let n = 0; n < 6; n += 1) await append();
    await log.clock.advance(5_000);
    const fuse = new Fuse(at, crashes % 2 === 0);
    let crashed = false;
    try {
      await untilDone(keyCompactor(partitionIds, fuse));
    } catch (caught) {
      expect(caught).toMatchObject({ code: 'unavailable' });
      crashed = true;
      crashes += 1;
    }
    if (!crashed) finished += 1;
    for (const [partitionId, all] of written) check(await records(partitionId), all);
    // Every fourth life gets to the end, so that sources change and pile up in turns.
    if (crashes % 4 === 0) await untilDone(keyCompactor(partitionIds, new Fuse(-1, false)));
  }
  expect(crashes).toBeGreaterThan(15);
  // Keys find room in the map a part at a time.
  for (let n = 0; n < 10; n += 1) await untilDone(keyCompactor(partitionIds, new Fuse(-1, false)));
  for (const [partitionId, all] of written) {
    const newest = new Map(all.map(([offset, key]) => [key, offset]));
    for (const [offset, key] of await records(partitionId)) expect(newest.get(key)).toBe(offset);
  }
  // What crashes left behind belongs to nobody, and the sweep would find it: no row knows it.
  const known = new Set(
    (await log.metadata.objects.list('sealed', 0, 1_000)).map(({ key }) => key),
  );
  let orphans = 0;
  for await (const { key } of log.store.list(`${TEST_CLUSTER}/stream/`))
    if (!known.has(key)) orphans += 1;
  expect(orphans).toBeLessThanOrEqual(crashes);
}, 60_000);

function check(seen: readonly Seen[], all: readonly Seen[]): void {
  const newest = new Map(all.map(([offset, key]) => [key, offset]));
  const left = new Set<number>();
  let before = -1;
  for (const record of seen) {
    expect(record[0]).toBeGreaterThan(before);
    before = record[0];
    left.add(record[0]);
    expect(record).toEqual(all[record[0]]);
  }
  for (const [offset, key, value] of all)
    if (!left.has(offset) && value !== null) expect(newest.get(key)).toBeGreaterThan(offset);
}
