import { afterEach, beforeEach, expect, test } from 'vitest';
import { openSqliteMetadata } from '../../metadata/sqlite/index.ts';
import { testItem } from './test-items.ts';
import { TestLog } from './test-log.ts';

const SECOND = 1_000;
let log: TestLog;
beforeEach(async () => {
  log = await TestLog.open();
});
afterEach(() => log.stop());

const rows = (table: string) =>
  log.metadata.database.prepare(`SELECT * FROM ${table}`).all() as Record<string, number>[];

test('stored state follows memory, and flush rows go once their file is sealed', async () => {
  const [a] = (await log.createTopic(1)) as [number];
  for (let n = 0; n < 20; n += 1) await log.appendItems([testItem({ partitionId: a })]);
  expect(rows('log_partitions')[0]).toMatchObject({ high_watermark: 0 });
  await log.clock.advance(10 * SECOND);
  expect(rows('log_partitions')[0]).toMatchObject({ high_watermark: 20 });
  // A file that is being filled is indexed by its rows alone.
  expect(rows('flushes')).toHaveLength(20);
  await log.seal();
  await log.clock.advance(10 * SECOND);
  // The newest stays: commit numbers go on from it after a restart.
  expect(rows('flushes').map((row) => row['commit_number'])).toEqual([20]);
});

test('SQLite’s own log is moved into its file by upkeep, not by commits', async () => {
  const fresh = openSqliteMetadata(':memory:');
  expect(fresh.database.prepare('PRAGMA wal_autocheckpoint').get()).toEqual({
    wal_autocheckpoint: 0,
  });
  expect(fresh.database.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 });
  fresh.close();
  const [a] = (await log.createTopic(1)) as [number];
  await log.appendItems([testItem({ partitionId: a })]);
  expect(log.metadata.log.pendingLogBytes).toBeGreaterThan(0);
  await log.clock.advance(SECOND);
  expect(log.metadata.log.pendingLogBytes).toBe(0);
});
