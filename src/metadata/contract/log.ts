// Contract of `LogMetadata`, `ObjectsMetadata` and `ProducersMetadata`, for every store. Not for production code.
// What is peculiar to one store has tests beside it.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { FlushCommit, NewObjectEntry } from '../log.ts';
import { describeEntries, openIndex } from '../packed-index.ts';
import {
  cleaningOf,
  createTopic,
  Flushes,
  type OpenStore,
  ORDERS,
  type StoreUnderTest,
  settled,
} from './store.ts';

/** Runs the suite on stores that `open` makes. */
export function logContract(name: string, open: OpenStore): void {
  describe(`log contract: ${name}`, () => {
    let store: StoreUnderTest;
    let flushes: Flushes;
    beforeEach(async () => {
      store = await open();
      flushes = new Flushes();
    });
    afterEach(() => store.close());

    const log = () => store.metadata.log;
    const commit = (...of: FlushCommit[]) => log().commit(of);
    const partitions = (count: number) => createTopic(store.metadata, count);
    const codes = (done: readonly { readonly errorCodes: Int16Array }[]) =>
      done.map(({ errorCodes }) => [...errorCodes]);

    test('a commit assigns offsets, survives a restart and is returned again to a retry', async () => {
      const [a, b] = (await partitions(2)) as [number, number];
      await store.at(1000);
      const first = flushes.of([
        { partitionId: b, records: 3, maxTimestamp: 50 },
        { partitionId: a, records: 2, producerId: 0, sequence: 0 },
        { partitionId: b, records: 1, maxTimestamp: 40 },
        { partitionId: 999, records: 1 },
      ]);
      const [done] = await commit(first);
      expect([...done!.baseOffsets]).toEqual([0, 0, 3, -1]);
      expect([...done!.errorCodes]).toEqual([0, 0, 0, 3]);
      expect(done).toMatchObject({ fresh: true, commitNumber: 1, committedMs: 1000 });
      await store.reopen();
      await store.at(7000);
      const other = { ...first, object: { ...first.object, key: 'wal/hedged' } };
      const [again] = await commit(other);
      expect(again).toEqual({ ...done, fresh: false });
      expect(await log().partitions([a, b, 999])).toMatchObject([
        { partitionId: a, highWatermark: 2, sizeBytes: 200, maxTimestamp: -1 },
        { partitionId: b, highWatermark: 4, sizeBytes: 400, maxTimestamp: 50 },
      ]);
      const rows = await log().flushesAfter(0, 10);
      expect(rows).toMatchObject([{ commitNumber: 1, objectKey: first.object.key }]);
      expect([...rows[0]!.flushId]).toEqual([...first.flushId]);
      expect(describeEntries(openIndex(rows[0]!.index))).toMatchObject([
        { partitionId: a, baseOffset: 0, endOffset: 2, position: 300, length: 200 },
        { partitionId: b, baseOffset: 0, endOffset: 3, position: 0, length: 300, maxTimestamp: 50 },
        { partitionId: b, baseOffset: 3, endOffset: 4, position: 500, length: 100 },
      ]);
    });

    test('sequences hold inside a transaction, across transactions and restarts (L5)', async () => {
      const [a] = (await partitions(1)) as [number];
      const { producerId } = await store.metadata.producers.initProducerId(1000);
      const send = (sequence: number) => flushes.of([{ partitionId: a, producerId, sequence }]);
      await commit(send(0), send(1));
      await commit(send(2), send(3), send(4), send(5));
      await store.reopen();
      const outcomes = await commit(send(1), send(5), send(0), send(7), send(6));
      expect(outcomes.map((o) => [o.errorCodes[0], o.baseOffsets[0], o.duplicates[0]])).toEqual([
        [0, 1, 1],
        [0, 5, 1],
        [45, -1, 0],
        [45, -1, 0],
        [0, 6, 0],
      ]);
    });

    test('commit numbers have no gap; what fails takes none and changes nothing', async () => {
      const [a] = (await partitions(1)) as [number];
      const object = flushes.of([]).object;
      await store.metadata.objects.claimKeys([object.key], 1);
      const late = { ...flushes.of([{ partitionId: a }]), object };
      await expect(commit(flushes.of([{ partitionId: a }]), late)).rejects.toMatchObject({
        code: 'conflict',
      });
      expect(await log().partitions()).toMatchObject([{ highWatermark: 0, sizeBytes: 0 }]);
      const done = await commit(flushes.of([{ partitionId: a }]), flushes.of([{ partitionId: a }]));
      expect(done.map(({ commitNumber }) => commitNumber)).toEqual([1, 2]);
      expect(await log().lastCommitNumber()).toBe(2);
    });

    test('sealing swaps rows for entries', async () => {
      const [a] = (await partitions(1)) as [number];
      const [one] = await commit(flushes.of([{ partitionId: a, records: 4 }], { key: 'wal/one' }));
      const entry = entryOf(a, { end: 4, commitNumber: one!.commitNumber });
      const sealed = { objectId: one!.objectId, bytes: 500, entries: [entry] };
      await log().seal(sealed);
      await log().seal(sealed);
      expect(await log().flushesAfter(0, 10)).toEqual([]);
      expect(await log().entriesFrom(a, 3, 10)).toMatchObject([{ ...entry, objectKey: 'wal/one' }]);
      expect(await log().entriesFrom(a, 4, 10)).toEqual([]);
      expect(await store.metadata.objects.notOpen([one!.objectId, 999])).toEqual([
        one!.objectId,
        999,
      ]);
      await expect(
        commit(flushes.of([{ partitionId: a }], { key: 'wal/one' })),
      ).rejects.toMatchObject({ code: 'conflict' });
      const [two] = await commit(flushes.of([{ partitionId: a }]));
      expect(two!.baseOffsets[0]).toBe(4);
      await expect(log().seal({ ...sealed, objectId: 999 })).rejects.toMatchObject({
        code: 'not-found',
      });
    });

    test('log starts move forward only and deleted topics are gone for good', async () => {
      const [a, b] = (await partitions(2)) as [number, number];
      await commit(flushes.of([{ partitionId: a, records: 9 }]));
      expect(await log().deleteRecords(a, 4)).toMatchObject({ logStartOffset: 4 });
      const { 'log-starts': starts } = (await log().snapshot()).versions;
      expect(
        await log().moveLogStarts([
          { partitionId: a, logStartOffset: 3, freedBytes: 300 },
          { partitionId: 999, logStartOffset: 3, freedBytes: 0 },
        ]),
      ).toMatchObject([{ partitionId: a, logStartOffset: 4, sizeBytes: 600 }]);
      await expect(log().deleteRecords(a, 10)).rejects.toMatchObject({ code: 'invalid' });
      await expect(log().deleteRecords(a, -2)).rejects.toMatchObject({ code: 'invalid' });
      await expect(log().deleteRecords(999, 0)).rejects.toMatchObject({ code: 'not-found' });
      expect(await log().deleteRecords(a, -1)).toMatchObject({ logStartOffset: 9 });
      const { versions } = await log().snapshot();
      expect(versions['log-starts']).toBeGreaterThan(starts);
      await store.metadata.topics.delete(ORDERS);
      expect((await log().snapshot()).versions.topics).toBeGreaterThan(versions.topics);
      const late = await commit(flushes.of([{ partitionId: b }]));
      expect(codes(late)).toEqual([[3]]);
      await store.reopen();
      expect(await log().partitions()).toEqual([]);
    });

    test('producer state expires with idleness, and only then may a sequence start anywhere', async () => {
      const [a] = (await partitions(1)) as [number];
      const day = 86_400_000;
      await store.at(1000);
      const { producerId } = await store.metadata.producers.initProducerId(1000);
      const send = async (sequence: number, nowMs: number) => {
        await store.at(nowMs);
        return codes(
          await commit(flushes.of([{ partitionId: a, producerId, sequence }], { nowMs })),
        );
      };
      expect(await send(0, 1000)).toEqual([[0]]);
      await store.reopen();
      expect(await store.metadata.producers.expire(500, 10)).toBe(0);
      await settled(store);
      expect(await store.metadata.producers.expire(2000, 10)).toBe(1);
      expect(await send(5, 3000)).toEqual([[45]]);
      expect(await send(5, 3000 + 2 * day)).toEqual([[0]]);
    });

    test('producer state survives DeleteRecords and retention', async () => {
      const [a] = (await partitions(1)) as [number];
      const { producerId } = await store.metadata.producers.initProducerId(1000);
      const send = (sequence: number) => flushes.of([{ partitionId: a, producerId, sequence }]);
      await commit(send(0));
      await log().deleteRecords(a, -1);
      await log().moveLogStarts([{ partitionId: a, logStartOffset: 1, freedBytes: 0 }]);
      await store.reopen();
      const [again, next, hole] = await commit(send(0), send(1), send(9));
      expect([again!.duplicates[0], again!.baseOffsets[0]]).toEqual([1, 0]);
      expect([next!.errorCodes[0], next!.baseOffsets[0]]).toEqual([0, 1]);
      expect(hole!.errorCodes[0]).toBe(45);
    });

    test('whoever follows gets every commit, sealed or not, with what it began', async () => {
      const [a] = (await partitions(1)) as [number];
      const start = await log().snapshot();
      expect(start).toMatchObject({ lastCommit: 0, transactions: [] });
      expect(await log().follow(0, 10)).toEqual({
        rows: [],
        lastCommit: 0,
        versions: start.versions,
      });
      const apply = async (event: object) => {
        const request = { transactionalId: 't', event: event as never };
        const [outcome] = await store.metadata.transactions.apply([request], 1000);
        return outcome!;
      };
      const { state } = await apply({ type: 'init', timeoutMs: 60_000 });
      const { producerId, producerEpoch: epoch, incarnation } = state!;
      const transaction = { incarnation, mode: 'implicit' } as const;
      const plain = flushes.of([{ partitionId: a, records: 2 }]);
      const begins = flushes.of([{ partitionId: a, producerId, epoch, sequence: 0, transaction }]);
      const [one, two] = await commit(plain, begins);
      const entry = entryOf(a, { end: 2, commitNumber: 1 });
      await log().seal({ objectId: one!.objectId, bytes: 200, entries: [entry] });
      const opened = await log().snapshot();
      expect(opened).toMatchObject({ lastCommit: 2, partitions: [{ lastStableOffset: 2 }] });
      expect([...opened.transactions[0]!.open]).toEqual([[producerId, 2]]);
      expect(await log().transactions()).toEqual(opened.transactions);
      const end = { type: 'end', committed: false, bump: false, producerId, producerEpoch: epoch };
      expect(await apply(end)).toMatchObject({ errorCode: 0, commitNumber: 3 });
      const all = await log().follow(0, 10);
      expect(all.lastCommit).toBe(3);
      expect(all.rows.map(({ commitNumber, begun }) => [commitNumber, begun])).toEqual([
        [1, []],
        [2, [{ partitionId: a, producerId, firstOffset: 2 }]],
        [3, []],
      ]);
      expect(all.rows[0]).toMatchObject({ objectKey: plain.object.key, objectId: one!.objectId });
      expect([...all.rows[1]!.flushId]).toEqual([...begins.flushId]);
      expect(all.rows[1]).toMatchObject({ committedMs: two!.committedMs });
      expect([...all.rows[2]!.flushId.subarray(0, 8)]).toEqual(new Array(8).fill(0));
      expect(describeEntries(openIndex(all.rows[2]!.index))).toMatchObject([
        { partitionId: a, baseOffset: 3, endOffset: 4, kind: 2 },
      ]);
      const cut = await log().follow(1, 1);
      expect(cut).toMatchObject({ rows: [{ commitNumber: 2 }], lastCommit: 3 });
      await expect(log().follow(4, 1)).rejects.toMatchObject({ code: 'not-found' });
      expect(await log().abortedTransactions(a, 0, 4)).toEqual([{ producerId, firstOffset: 2 }]);
      expect((await log().snapshot()).transactions).toEqual([
        { partitionId: a, open: new Map(), lastAbortedOffset: 3 },
      ]);
    });

    test('whoever is second to a key loses: the sweeper or the commit (L10)', async () => {
      const [a] = (await partitions(1)) as [number];
      const { objects } = store.metadata;
      await store.at(1000);
      expect(await objects.claimKeys(['wal/b', 'wal/a', 'wal/b'], 1000)).toEqual(
        expect.arrayContaining(['wal/a', 'wal/b']),
      );
      await expect(
        commit(flushes.of([{ partitionId: a }], { key: 'wal/a' })),
      ).rejects.toMatchObject({ code: 'conflict' });
      await commit(flushes.of([{ partitionId: a }], { key: 'wal/c' }));
      await store.at(2000);
      expect(await objects.claimKeys(['wal/a', 'wal/c', 'wal/d'], 2000)).toEqual(['wal/d']);
      const due = await objects.deletable(1500, 10);
      expect(due.map(({ key }) => key).sort()).toEqual(['wal/a', 'wal/b']);
      await objects.forget(due.map(({ objectId }) => objectId));
      expect(await objects.claimKeys(['wal/a'], 3000)).toEqual(['wal/a']);
    });

    test('a swap takes sealed and open objects, once, and leaves sizes exact', async () => {
      const [a, b] = (await partitions(2)) as [number, number];
      const { objects } = store.metadata;
      const [one] = await commit(flushes.of([{ partitionId: a, records: 4 }], { key: 'wal/1' }));
      const sealed = entryOf(a, { end: 4, commitNumber: 1 });
      await log().seal({ objectId: one!.objectId, bytes: 400, entries: [sealed] });
      const [two] = await commit(
        flushes.of([
          { partitionId: a, records: 2 },
          { partitionId: b, records: 1 },
        ]),
      );
      const rows = await objects.flushesOf([two!.objectId]);
      expect(rows).toMatchObject([{ commitNumber: 2 }]);
      const swap = {
        object: { key: 'stream/1', bytes: 450 },
        entries: [
          { ...entryOf(a, { end: 6, commitNumber: 2 }), bytes: 350 },
          entryOf(b, { end: 1, commitNumber: 2 }),
        ],
        replaced: [{ partitionId: a, baseOffset: 0, endOffset: 4, objectId: one!.objectId }],
        openObjects: [two!.objectId],
        openCommit: 2,
        cleanings: [cleaningOf(a), cleaningOf(999)],
        nowMs: 5000,
      };
      await expect(objects.replace({ ...swap, openCommit: 1 })).rejects.toMatchObject({
        code: 'conflict',
      });
      const wrong = { partitionId: b, baseOffset: 0, endOffset: 1, objectId: one!.objectId };
      await expect(
        objects.replace({ ...swap, replaced: [...swap.replaced, wrong] }),
      ).rejects.toMatchObject({ code: 'conflict' });
      const objectId = await objects.replace(swap);
      expect(await objects.replace(swap)).toBe(objectId);
      expect(await log().partitions([a, b])).toMatchObject([
        { sizeBytes: 350 },
        { sizeBytes: 100 },
      ]);
      expect(await log().flushesAfter(0, 10)).toEqual([]);
      expect((await objects.entriesOf([objectId])).map((each) => each.endOffset)).toEqual([6, 1]);
      expect(await objects.cleanings()).toEqual([cleaningOf(a)]);
      const uses = await objects.uses(0, 10);
      expect(uses.map(({ entries, liveBytes }) => [entries, liveBytes]).sort()).toEqual([
        [0, 0],
        [0, 0],
        [2, 450],
      ]);
      const gone = await objects.claimUnreferenced(6000, 10);
      expect(gone.map((each) => each.objectId).sort()).toEqual([one!.objectId, two!.objectId]);
      expect(await objects.list('sealed', 0, 10)).toMatchObject([{ objectId, bytes: 450 }]);
      expect(await objects.entryAtTime(a, -1, 0)).toMatchObject({ objectId });
      expect(await objects.entryAtTime(a, 5, 0)).toBeUndefined();
      // What retention has passed goes with its bytes.
      await log().deleteRecords(a, -1);
      expect(await objects.dropExpired(10)).toEqual([{ partitionId: a, bytes: 350 }]);
      expect(await log().partitions([a])).toMatchObject([{ sizeBytes: 0, logStartOffset: 6 }]);
    });

    test('compactions by key are told since a version: the newest of each partition, each once', async () => {
      const [a, b, c] = (await partitions(3)) as [number, number, number];
      const { objects, topics } = store.metadata;
      const told = async (version: number) => {
        const since = await objects.cleanedSince(version);
        return {
          ...since,
          cleanings: since.cleanings.map((one) => [one.partitionId, one.cleanEnd]),
        };
      };
      expect(await told(-1)).toEqual({ version: -1, cleanings: [] });
      await objects.noteCleaned([cleaningOf(b, 3)]);
      await objects.noteCleaned([cleaningOf(a, 2)]);
      await objects.noteCleaned([cleaningOf(c, 7)]);
      const { version, cleanings } = await told(-1);
      expect(cleanings).toEqual([
        [b, 3],
        [a, 2],
        [c, 7],
      ]);
      expect(await told(version)).toEqual({ version, cleanings: [] });
      await objects.noteCleaned([cleaningOf(b, 4)]);
      // The same again, at the same time: it is something new all the same.
      await objects.noteCleaned([cleaningOf(b, 4)]);
      await objects.noteCleaned([cleaningOf(c, 9), cleaningOf(999, 1)]);
      expect((await told(version)).cleanings).toEqual([
        [b, 4],
        [c, 9],
      ]);
      // Nothing outlasts the topic, and no version comes twice.
      const newest = (await told(-1)).version;
      await topics.delete(ORDERS);
      expect(await told(-1)).toEqual({ version: -1, cleanings: [] });
      expect(await objects.cleanings()).toEqual([]);
      await store.reopen();
      const [d] = (await partitions(1)) as [number];
      await store.metadata.objects.noteCleaned([cleaningOf(d, 1)]);
      expect((await store.metadata.objects.cleanedSince(newest)).cleanings).toEqual([
        { partitionId: d, cleanEnd: 1 },
      ]);
    });

    test('of many partitions those that hold records come a page at a time', async () => {
      const ids = await partitions(5);
      const [a, , c, d, e] = ids as [number, number, number, number, number];
      expect(await log().written(0, 10)).toEqual([]);
      await commit(flushes.of([e, a, d, c].map((partitionId) => ({ partitionId, records: 2 }))));
      await log().deleteRecords(d, -1);
      await log().deleteRecords(c, 1);
      const written = async (after: number, limit: number) =>
        (await log().written(after, limit)).map(({ partitionId }) => partitionId);
      expect(await written(0, 10)).toEqual([a, c, e]);
      expect(await written(0, 2)).toEqual([a, c]);
      expect(await written(c, 2)).toEqual([e]);
      expect(await log().written(a, 1)).toEqual(await log().partitions([c]));
    });

    test('partitions grow, names are taken once, ids are never used again', async () => {
      const { topics } = store.metadata;
      const [a, b] = (await partitions(2)) as [number, number];
      await expect(partitions(1)).rejects.toMatchObject({ code: 'conflict' });
      const grown = await topics.addPartitions(ORDERS, 3);
      expect(grown).toMatchObject({ partitions: [a, b, expect.any(Number)], version: 2 });
      await expect(topics.addPartitions(ORDERS, 3)).rejects.toMatchObject({ code: 'invalid' });
      const changed = await topics.alterConfig(ORDERS, { 'retention.ms': '1', other: null });
      expect(changed).toMatchObject({ config: { 'retention.ms': '1' }, version: 3 });
      expect(await topics.list()).toEqual([changed]);
      await topics.delete(ORDERS);
      await expect(topics.delete(ORDERS)).rejects.toMatchObject({ code: 'not-found' });
      await expect(topics.alterConfig(ORDERS, {})).rejects.toMatchObject({ code: 'not-found' });
      const again = await partitions(1);
      expect(again[0]).toBeGreaterThan(grown.partitions[2]!);
      expect(await topics.alterBrokerConfig('1', { x: 'y', z: '' })).toEqual({ x: 'y', z: '' });
      expect(await topics.alterBrokerConfig('1', { x: null, q: 'r' })).toEqual({ z: '', q: 'r' });
      expect(await topics.brokerConfig('')).toEqual({});
    });
  });
}

function entryOf(
  partitionId: number,
  { end, commitNumber }: { readonly end: number; readonly commitNumber: number },
): NewObjectEntry {
  return {
    partitionId,
    baseOffset: 0,
    endOffset: end,
    indexPosition: 400,
    indexLength: 60,
    bytes: end * 100,
    recordCount: end,
    runCount: 1,
    maxTimestamp: -1,
    commitNumber,
  };
}
