// A database that was put back to an earlier time under brokers that know later commits.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createTopic, Flushes } from '../contract/store.ts';
import { noteRecovered } from '../transfer/index.ts';
import { openBroker } from './contract-store.ts';
import { type PostgresMetadata, postgresMigrations } from './index.ts';
import { contradictionOf } from './lineage.ts';
import { startPostgres, type TestServer } from './testing.ts';

let server: TestServer;
let url: string;
let admin: pg.Client;
let partitionId: number;
let opened: PostgresMetadata[];
const flushes = new Flushes();

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

beforeEach(async () => {
  url = await server.migrated(postgresMigrations);
  opened = [];
  admin = new pg.Client({ connectionString: url });
  await admin.connect();
  const first = await broker();
  [partitionId] = (await createTopic(first, 1)) as [number];
  return async () => {
    await Promise.all([...opened.map((one) => one.close()), admin.end()]);
  };
});

/** One that has begun with what is there. */
async function broker(): Promise<PostgresMetadata> {
  const metadata = await openBroker(url);
  opened.push(metadata);
  await metadata.log.snapshot();
  return metadata;
}

const commit = async ({ log }: PostgresMetadata) =>
  (await log.commit([flushes.of([{ partitionId, records: 1 }])]))[0]!.commitNumber;

/** As point-in-time recovery does it: what came later is gone, and so is every connection. */
async function putBack(commitNumber: number): Promise<void> {
  await admin.query('DELETE FROM flushes WHERE commit_number > $1', [commitNumber]);
  await admin.query('UPDATE log_counter SET last_commit = $1', [commitNumber]);
  await admin.query('UPDATE log_partitions SET high_watermark = $1', [commitNumber]);
  await admin.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`);
}

const lost = { code: 'corrupt', message: expect.stringContaining('floe restore --in-place') };

/** Broken connections are no news; what is said once there is a new one is. */
async function said(ask: () => Promise<unknown>): Promise<unknown> {
  for (let n = 0; n < 10; n += 1) {
    const caught = await ask().catch((error: { code: string }) => error);
    if ((caught as { code?: string }).code !== 'unavailable') return caught;
  }
  throw new Error('it is not reached');
}

test('who knows later commits commits nothing, and nobody does after it', async () => {
  const knowing = await broker();
  await commit(knowing);
  const other = await broker();
  await commit(knowing);
  expect(await commit(knowing)).toBe(3);
  await putBack(1);
  // `other` knows of one commit, and would give the second and third offset once more.
  expect(await said(() => commit(knowing))).toMatchObject(lost);
  expect(await said(() => commit(other))).toMatchObject({ code: 'corrupt' });
  expect(await said(() => other.log.follow(1, 10))).toMatchObject(lost);
  await expect(broker()).rejects.toMatchObject(lost);
  expect((await admin.query('SELECT last_commit FROM log_counter')).rows).toEqual([
    { last_commit: '1' },
  ]);
});

test('other commits in the place of known ones are found by their time, connections or not', async () => {
  const knowing = await broker();
  await commit(knowing);
  await commit(knowing);
  await admin.query('UPDATE flushes SET committed_ms = committed_ms + 1 WHERE commit_number = 2');
  await expect(knowing.log.follow(2, 10)).rejects.toMatchObject(lost);
  await expect(commit(knowing)).rejects.toMatchObject({ code: 'corrupt' });
});

test('restored in place, it goes on with ids behind a gap; who ran through it must start again', async () => {
  const knowing = await broker();
  await commit(knowing);
  await commit(knowing);
  const before = await knowing.producers.initProducerId(1);
  await putBack(1);
  expect(await said(() => commit(knowing))).toMatchObject(lost);
  const restorer = await openBroker(url);
  opened.push(restorer);
  await noteRecovered(restorer.database);

  const fresh = await broker();
  expect(await commit(fresh)).toBe(2);
  expect((await fresh.producers.initProducerId(1)).producerId).toBeGreaterThan(
    before.producerId + 999_999,
  );
  expect(await said(() => knowing.log.follow(2, 10))).toMatchObject({
    code: 'corrupt',
    message: expect.stringContaining('start again'),
  });
  // It says nothing to the others.
  expect(await commit(fresh)).toBe(3);
});

test('what proves that commits are lost', () => {
  const known = { commitNumber: 5, committedMs: 100 };
  const of = (last_commit: number, known_ms: number | null) =>
    contradictionOf(known, { last_commit, known_ms });
  expect(of(5, 100)).toBeUndefined();
  expect(of(9, 100)).toBeUndefined();
  expect(of(9, null)).toBeUndefined();
  expect(of(4, null)).toMatch(/1 commits are lost/);
  expect(of(9, 101)).toMatch(/others made in their place/);
  const number = { commitNumber: 5, committedMs: undefined };
  expect(contradictionOf(number, { last_commit: 5, known_ms: 3 })).toBeUndefined();
});
