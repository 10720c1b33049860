// Contract of `TableLanesMetadata`, for every store. Not for production code.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Metadata } from '../metadata.ts';
import { MAX_ASKS } from '../table-lanes.ts';
import type { OpenStore, StoreUnderTest } from './store.ts';

const topicId = '11111111-1111-4111-8111-111111111111';

/** Runs the suite on stores that `open` makes. */
export function tableLanesContract(name: string, open: OpenStore): void {
  describe(`table-lanes contract: ${name}`, () => {
    let store: StoreUnderTest;
    let metadata: Metadata;

    afterEach(() => store.close());
    beforeEach(async () => {
      store = await open();
      metadata = store.metadata;
      await metadata.topics.create({
        topicId,
        name: 'orders',
        partitionCount: 2,
        config: {},
        nowMs: 1,
      });
      await claim();
    });

    const claim = () =>
      metadata.tables.claim({
        topicId,
        topicName: 'orders',
        namespace: ['kafka'],
        table: 'orders',
      });

    const head = async () => (await metadata.tableLanes.heads([topicId, 'unknown']))[0]!;

    test('a head says how the table is, what waits and what was ordered', async () => {
      const { tables, tableLanes } = metadata;
      expect(await head()).toEqual({
        topicId,
        tableUuid: '',
        generation: 1,
        epoch: 1,
        paused: false,
        state: 'starting',
        stagedBytes: 0,
        order: { number: 0, version: '', targets: [] },
        asks: [],
      });
      await tables.update(topicId, 1, { tableUuid: 'u', state: 'running' });
      await tables.initPositions(topicId, [{ partition: 1, offset: 5 }]);
      const targets = [{ partition: 1, offset: 9 }];
      expect(await tableLanes.order(topicId, 1, { version: 'a', targets })).toBe(1);
      expect(await tableLanes.order(topicId, 1, { version: 'b', targets })).toBe(2);
      expect(await head()).toMatchObject({
        tableUuid: 'u',
        state: 'running',
        order: { number: 2, version: 'b', targets },
      });
      await tables.stage({
        stageId: 's',
        topicId,
        epoch: 1,
        generation: 1,
        tableUuid: 'u',
        schemaId: 0,
        specId: 0,
        configEpoch: 1,
        ranges: [{ partition: 1, start: 5, end: 9, deadLettersFrom: 5, gaps: [] }],
        rows: 4,
        deadLetters: 0,
        skipped: 0,
        bytes: 100,
        filePrefixes: [],
        payload: '{}',
        nowMs: 2,
      });
      expect(await head()).toMatchObject({ stagedBytes: 100 });
      expect(await tableLanes.positions([topicId, 'unknown'])).toEqual([
        { topicId, positions: [{ partition: 1, stagedEnd: 9, committedEnd: 5 }] },
      ]);
    });

    test('positions of a table that has none yet are known to be none', async () => {
      expect(await metadata.tableLanes.positions([topicId])).toEqual([{ topicId, positions: [] }]);
    });

    test('T6: a new coordinator gave no order and was asked nothing', async () => {
      const { tableLanes } = metadata;
      await tableLanes.order(topicId, 1, { version: 'a', targets: [] });
      await tableLanes.ask(1, { askId: 'a', topicId, payload: 'p' });
      await claim();
      expect(await head()).toMatchObject({ epoch: 2, order: { number: 0 }, asks: [] });
      expect(await tableLanes.asks([topicId], 10)).toEqual([]);
      const late = { code: 'conflict' };
      const order = { version: 'a', targets: [] };
      await expect(tableLanes.order(topicId, 1, order)).rejects.toMatchObject(late);
      const ask = { askId: 'b', topicId, payload: 'p' };
      await expect(tableLanes.ask(1, ask)).rejects.toMatchObject(late);
      await expect(tableLanes.answer(topicId, 1, ['a'])).rejects.toMatchObject(late);
      // An order number never comes back: whoever saw an older one takes it for news.
      expect(await tableLanes.order(topicId, 2, order)).toBe(2);
    });

    test('asks wait in order until they are answered; the same one is one', async () => {
      const { tableLanes } = metadata;
      for (const askId of ['b', 'a', 'b']) {
        await tableLanes.ask(1, { askId, topicId, payload: `of ${askId}` });
      }
      expect(await tableLanes.asks([topicId, 'unknown'], 10)).toEqual([
        { askId: 'b', topicId, payload: 'of b' },
        { askId: 'a', topicId, payload: 'of a' },
      ]);
      expect((await head()).asks.toSorted()).toEqual(['a', 'b']);
      await tableLanes.answer(topicId, 1, ['b', 'gone']);
      expect((await head()).asks).toEqual(['a']);
    });

    test('a coordinator that answers nothing is asked so much and no more', async () => {
      const { tableLanes } = metadata;
      for (let n = 0; n < MAX_ASKS; n += 1) {
        await tableLanes.ask(1, { askId: `${n}`, topicId, payload: '' });
      }
      const more = { askId: 'more', topicId, payload: '' };
      await expect(tableLanes.ask(1, more)).rejects.toMatchObject({ code: 'exhausted' });
      await claim();
      await tableLanes.ask(2, more);
      expect(await tableLanes.asks([topicId], 10)).toEqual([more]);
    });

    test('a topic takes its words along', async () => {
      const { tableLanes, topics } = metadata;
      await tableLanes.ask(1, { askId: 'a', topicId, payload: '' });
      await topics.delete(topicId);
      expect(await tableLanes.heads([topicId])).toEqual([]);
      expect(await tableLanes.asks([topicId], 10)).toEqual([]);
      const ask = tableLanes.ask(1, { askId: 'b', topicId, payload: '' });
      await expect(ask).rejects.toMatchObject({ code: 'not-found' });
    });
  });
}
