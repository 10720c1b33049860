import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTopic, Flushes, type StoreUnderTest } from '../contract/store.ts';
import { openStore } from './contract-store.ts';
import { dropFlushRanges, ensureFlushRanges, FLUSH_RANGE } from './flush-ranges.ts';
import type { PostgresMetadata } from './index.ts';
import { startPostgres, type TestServer } from './testing.ts';

const HORIZON_MS = 10_000;

let server: TestServer;
let store: StoreUnderTest;
beforeAll(async () => {
  server = await startPostgres();
  store = await openStore(server);
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

test('tables of flushes are made when needed, and dropped when nobody needs a row of them', async () => {
  const { log, objects, database } = store.metadata as PostgresMetadata;
  const flushes = new Flushes();
  const [a] = (await createTopic(store.metadata, 1)) as [number];
  const tables = async () => {
    const rows = await database
      .on('read')
      .rows<{ name: string }>(
        `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relname ~ '^flushes_' ORDER BY oid`,
      );
    return rows.map(({ name }) => name);
  };
  expect(await tables()).toEqual(['flushes_0']);
  await database.on('write').run('UPDATE log_counter SET last_commit = $1', [FLUSH_RANGE - 2]);
  const send = async () => (await log.commit([flushes.of([{ partitionId: a }])]))[0]!;
  const one = await send();
  // Nobody has made the next table ahead: the commit does.
  const two = await send();
  expect([one.commitNumber, two.commitNumber]).toEqual([FLUSH_RANGE - 1, FLUSH_RANGE]);
  expect(await tables()).toEqual(['flushes_0', `flushes_${FLUSH_RANGE}`]);
  await ensureFlushRanges(database);
  expect((await log.follow(FLUSH_RANGE - 2, 10)).rows).toHaveLength(2);

  // An object that compaction hasn't taken keeps its rows, however old.
  await store.at(50_000);
  expect(await dropFlushRanges(database, HORIZON_MS)).toBe(0);
  const entry = { partitionId: a, baseOffset: 0, endOffset: 1, bytes: 100, recordCount: 1 };
  const rest = { indexPosition: 0, indexLength: 1, runCount: 1, maxTimestamp: -1 };
  const entries = [{ ...entry, ...rest, commitNumber: one.commitNumber }];
  await log.seal({ objectId: one.objectId, bytes: 1, entries });
  // Sealed just now: whoever follows may not have been here yet.
  expect(await dropFlushRanges(database, HORIZON_MS)).toBe(0);
  await store.at(50_000 + HORIZON_MS + 1);
  await log.upkeep(HORIZON_MS);
  expect(await tables()).toEqual([`flushes_${FLUSH_RANGE}`]);
  await expect(log.follow(FLUSH_RANGE - 2, 10)).rejects.toMatchObject({ code: 'not-found' });
  expect((await log.follow(FLUSH_RANGE - 1, 10)).rows).toMatchObject([
    { commitNumber: FLUSH_RANGE },
  ]);
  expect(await log.entriesFrom(a, 0, 10)).toMatchObject([{ objectId: one.objectId }]);
  expect((await send()).baseOffsets[0]).toBe(2);
  expect(await objects.notOpen([one.objectId, two.objectId])).toEqual([one.objectId]);
});
