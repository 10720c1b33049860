// Contract of `TablesMetadata`, for every store: the staging chain, epochs, intents, letters. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { StageRequest, TablesMetadata } from '../tables.ts';
import type { TopicsMetadata } from '../topics.ts';
import type { OpenStore, StoreUnderTest } from './store.ts';

const topicId = '11111111-1111-4111-8111-111111111111';
const ofTable = { namespace: ['kafka'], table: 'orders', parent: null };

/** Runs the suite on stores that `open` makes. */
export function tablesContract(name: string, open: OpenStore): void {
  describe(`tables contract: ${name}`, () => {
    let store: StoreUnderTest;
    let topics: TopicsMetadata;
    let tables: TablesMetadata;

    afterEach(() => store.close());
    beforeEach(async () => {
      store = await open();
      ({ topics, tables } = store.metadata);
      await topics.create({ topicId, name: 'orders', partitionCount: 2, config: {}, nowMs: 1 });
      await tables.claim({ topicId, topicName: 'orders', namespace: ['kafka'], table: 'orders' });
      await tables.initPositions(topicId, [
        { partition: 0, offset: 0 },
        { partition: 1, offset: 5 },
      ]);
    });

    /** Stages without files: those need intents first. */
    function stage(overrides: Partial<StageRequest> & { from?: number; to?: number } = {}) {
      const { from = 0, to = 10, ...rest } = overrides;
      return {
        stageId: `stage-${from}-${to}`,
        topicId,
        epoch: 1,
        generation: 1,
        tableUuid: 'u',
        schemaId: 0,
        specId: 0,
        configEpoch: 1,
        ranges: [{ partition: 0, start: from, end: to, deadLettersFrom: from, gaps: [] }],
        rows: to - from,
        deadLetters: 0,
        skipped: 0,
        bytes: 100,
        filePrefixes: [],
        payload: '{}',
        nowMs: 2,
        ...rest,
      } satisfies StageRequest;
    }

    async function stageWithFiles(from: number, to: number) {
      const filePrefixes = [`data/stage-${from}-${to}`];
      await tables.addIntents([{ prefix: filePrefixes[0]!, topicId, createdMs: 1, ...ofTable }]);
      expect(await tables.stage(stage({ from, to, filePrefixes }))).toMatchObject({
        kind: 'staged',
      });
    }

    test('T1: stages chain by compare-and-set, and the same range twice is one', async () => {
      expect(await tables.stage(stage())).toMatchObject({ kind: 'staged' });
      expect(await tables.stage(stage())).toEqual({ kind: 'duplicate', stageId: 'stage-0-10' });
      expect(await tables.stage(stage({ stageId: 'other' }))).toEqual({
        kind: 'duplicate',
        stageId: 'stage-0-10',
      });
      expect(await tables.stage(stage({ from: 5, to: 15 }))).toMatchObject({ kind: 'refused' });
      expect(await tables.stage(stage({ from: 11, to: 12 }))).toMatchObject({
        kind: 'refused',
        positions: [
          { partition: 0, stagedEnd: 10, committedEnd: 0 },
          { partition: 1, stagedEnd: 5, committedEnd: 5 },
        ],
      });
      expect(await tables.stage(stage({ from: 10, to: 12 }))).toMatchObject({ kind: 'staged' });
      expect((await tables.stages(topicId, 10)).map((one) => one.stageId)).toEqual([
        'stage-0-10',
        'stage-10-12',
      ]);
      expect(await tables.counters(topicId)).toMatchObject({ rows: 12 });
    });

    test('a stage over several partitions enters whole or not at all', async () => {
      const ranges = [
        { partition: 0, start: 0, end: 3, deadLettersFrom: 0, gaps: [] },
        { partition: 1, start: 4, end: 9, deadLettersFrom: 4, gaps: [] },
      ];
      expect(await tables.stage(stage({ ranges }))).toMatchObject({ kind: 'refused' });
      expect((await tables.positions(topicId))[0]).toMatchObject({ stagedEnd: 0 });
    });

    test('T6: an older epoch stages, marks and changes nothing', async () => {
      const claimed = await tables.claim({
        topicId,
        topicName: 'orders',
        namespace: ['kafka'],
        table: 'orders',
      });
      expect(claimed.epoch).toBe(2);
      expect(await tables.stage(stage())).toMatchObject({ kind: 'refused' });
      await expect(tables.update(topicId, 1, { state: 'running' })).rejects.toMatchObject({
        code: 'conflict',
      });
      await expect(
        tables.markAttempted(topicId, 1, { sequences: [], parent: '' }),
      ).rejects.toMatchObject({ code: 'conflict' });
      await expect(
        tables.markCommitted({ topicId, epoch: 1, sequences: [], positions: [] }),
      ).rejects.toMatchObject({ code: 'conflict' });
      expect(await tables.update(topicId, 2, { tableUuid: 'u', state: 'running' })).toMatchObject({
        tableUuid: 'u',
      });
    });

    test('committed stages leave and move the committed position', async () => {
      await tables.stage(stage());
      const [first] = await tables.stages(topicId, 10);
      await tables.markAttempted(topicId, 1, { sequences: [first!.sequence], parent: '7' });
      expect((await tables.stages(topicId, 10))[0]).toMatchObject({ attempted: true });
      await tables.markCommitted({
        topicId,
        epoch: 1,
        sequences: [first!.sequence],
        positions: [{ partition: 0, committedEnd: 10 }],
        commit: { files: 2, nowMs: 9, snapshotId: '9007199254740993' },
      });
      expect(await tables.stages(topicId, 10)).toEqual([]);
      expect(await tables.positions(topicId)).toContainEqual({
        partition: 0,
        stagedEnd: 10,
        committedEnd: 10,
      });
      expect(await tables.counters(topicId)).toMatchObject({
        commits: 1,
        files: 2,
        lastSnapshotId: '9007199254740993',
      });
    });

    test('rewinding voids the stages; what a commit request named keeps what it asserted', async () => {
      await stageWithFiles(0, 10);
      await stageWithFiles(10, 20);
      const [first] = await tables.stages(topicId, 10);
      await tables.markAttempted(topicId, 1, { sequences: [first!.sequence], parent: '7' });
      const record = await tables.rewind(topicId, 1, {
        positions: [{ partition: 0, offset: 3 }],
        nowMs: 7,
      });
      expect(record.generation).toBe(2);
      expect(await tables.stages(topicId, 10)).toEqual([]);
      expect((await tables.positions(topicId))[0]).toMatchObject({ stagedEnd: 3, committedEnd: 3 });
      const intent = { topicId, createdMs: 7, namespace: ['kafka'], table: 'orders' };
      expect(await tables.intents(100, 10)).toEqual([
        { ...intent, prefix: 'data/stage-0-10', parent: '7' },
        { ...intent, prefix: 'data/stage-10-20', parent: null },
      ]);
      expect(await tables.stage(stage({ from: 3, to: 4 }))).toMatchObject({ kind: 'refused' });
      expect(await tables.stage(stage({ from: 3, to: 4, generation: 2 }))).toMatchObject({
        kind: 'staged',
      });
    });

    test('deleting the topic ends its stages; their files are left to the sweep', async () => {
      await stageWithFiles(0, 10);
      await topics.delete(topicId);
      expect(await tables.list()).toEqual([]);
      expect(await tables.stages(topicId, 10)).toEqual([]);
      await expect(tables.stage(stage())).rejects.toMatchObject({ code: 'not-found' });
      const [intent, ...others] = await tables.intents(1, 10);
      expect(others).toEqual([]);
      expect(intent).toMatchObject({ ...ofTable, createdMs: 0 });
      // An age that begins later is kept.
      await tables.addIntents([{ ...intent!, createdMs: 5 }]);
      await tables.addIntents([{ ...intent!, createdMs: 9 }]);
      expect(await tables.intents(6, 10)).toHaveLength(1);
      await tables.dropIntents(['data/stage-0-10']);
      expect(await tables.intents(100, 10)).toEqual([]);
    });

    test('M2: intents come a page at a time, in the order of age and name', async () => {
      const old = (prefix: string, createdMs: number) => ({
        prefix,
        topicId,
        createdMs,
        ...ofTable,
      });
      await tables.addIntents([old('b', 1), old('c', 2), old('a', 1), old('d', 0)]);
      const page = async (after?: { createdMs: number; prefix: string }) =>
        (await tables.intents(2, 2, after)).map(({ prefix }) => prefix);
      expect(await page()).toEqual(['d', 'a']);
      expect(await page({ createdMs: 1, prefix: 'a' })).toEqual(['b']);
      expect(await page({ createdMs: 1, prefix: 'b' })).toEqual([]);
    });

    test('M2: intents are there before the files and end with the stage', async () => {
      const filePrefixes = ['data/stage-0-10'];
      expect(await tables.stage(stage({ filePrefixes }))).toMatchObject({ kind: 'refused' });
      await tables.addIntents([{ prefix: filePrefixes[0]!, topicId, createdMs: 1, ...ofTable }]);
      expect(await tables.intents(2, 10)).toHaveLength(1);
      expect(await tables.stage(stage({ filePrefixes }))).toMatchObject({ kind: 'staged' });
      expect(await tables.intents(2, 10)).toEqual([]);
    });

    test('M2: a stage whose files are being swept is refused', async () => {
      const filePrefixes = ['data/stage-0-10'];
      await tables.addIntents([{ prefix: filePrefixes[0]!, topicId, createdMs: 1, ...ofTable }]);
      const claims = [...filePrefixes, 'data/other'].map((prefix) => ({ prefix, parent: null }));
      expect(await tables.claimIntents(claims)).toEqual(filePrefixes);
      expect(await tables.stage(stage({ filePrefixes }))).toMatchObject({ kind: 'refused' });
    });

    test('M2: what is being swept takes no further name, and what was named since is not swept', async () => {
      const intent = { prefix: 'data/a', topicId, createdMs: 1, ...ofTable };
      await tables.addIntents([intent]);
      // Seen without parent, named by a request meanwhile: whoever saw the older word does nothing.
      await tables.addIntents([{ ...intent, parent: '7' }]);
      expect(await tables.claimIntents([intent])).toEqual([]);
      expect(await tables.claimIntents([{ ...intent, parent: '7' }])).toEqual(['data/a']);
      const other = { ...intent, prefix: 'data/b' };
      await expect(tables.addIntents([other, intent])).rejects.toMatchObject({ code: 'conflict' });
      expect(await tables.intents(100, 10)).toMatchObject([{ prefix: 'data/a' }]);
    });

    test('M2: an intent is exchanged for others only while nobody sweeps it', async () => {
      const intent = { prefix: 'data/a', topicId, createdMs: 1, ...ofTable };
      const named = { ...intent, prefix: 'data/a-0.parquet', parent: '7' };
      await tables.addIntents([intent]);
      await tables.addIntents([named], 'data/a');
      expect(await tables.intents(100, 10)).toMatchObject([{ prefix: 'data/a-0.parquet' }]);
      await expect(tables.addIntents([named], 'data/a')).rejects.toMatchObject({
        code: 'conflict',
      });
      await tables.addIntents([intent]);
      await tables.claimIntents([intent]);
      await expect(tables.addIntents([named], 'data/a')).rejects.toMatchObject({
        code: 'conflict',
      });
    });

    test('offsets lost to retention are counted', async () => {
      const gaps = [{ from: 0, to: 4, reason: 'retention' as const }];
      await tables.stage(
        stage({ ranges: [{ partition: 0, start: 0, end: 10, deadLettersFrom: 0, gaps }] }),
      );
      expect(await tables.counters(topicId)).toMatchObject({ lostOffsets: 4 });
    });

    test('M2: an intent named by a further request takes the parent that this one asserted, and keeps its age', async () => {
      const intent = { prefix: 'data/a-0.parquet', topicId, createdMs: 1, ...ofTable };
      await tables.addIntents([{ ...intent, parent: '7' }]);
      await tables.addIntents([{ ...intent, createdMs: 9, parent: '8' }]);
      await tables.addIntents([{ ...intent, createdMs: 10 }]);
      expect(await tables.intents(100, 10)).toMatchObject([{ createdMs: 1, parent: '8' }]);
    });
  });
}
