// M2, T5: which files go, when, and which stay.
import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { seededPrng } from '../base/prng.ts';
import { newSnapshotId, prepareAppend } from '../formats/iceberg/index.ts';
import { sweep } from './sweep.ts';
import { Bench } from './testing/bench.ts';
import { type CatalogFaults, FaultyCatalog } from './testing/faulty.ts';
import { liveFiles } from './testing/parquet-rows.ts';

const TEXT = { 'table.topic.convert.value.type': 'string' };
const NONE: CatalogFaults = {
  loadFails: 0,
  conflict: 0,
  lostRequest: 0,
  lostReply: 0,
  late: 0,
  raced: 0,
};
const AGE_MS = 1_000;
const clock = new ManualClock();
let bench: Bench;
let catalog: FaultyCatalog;

beforeEach(async () => {
  bench = await Bench.open({ clock, settings: { 'table.commit.attempts': '1' } });
  catalog = new FaultyCatalog(bench.catalog, seededPrng(1), async () => {});
  bench.start({ catalog });
});

const keys = async (end: string) => {
  const found: string[] = [];
  for await (const { key } of bench.store.list('')) if (key.endsWith(end)) found.push(key);
  return found;
};

/** A pass after some time. */
async function pass(laterMs = 2 * AGE_MS): Promise<number> {
  await clock.advance(laterMs);
  const { tables } = bench.metadata;
  const { warehouse } = bench;
  const jobsUnderWay = new Set<string>();
  const logger = silentLogger;
  return sweep({
    tables,
    catalog: bench.catalog,
    warehouse,
    clock,
    logger,
    ageMs: AGE_MS,
    jobsUnderWay,
  });
}

async function pump(times = 20): Promise<void> {
  for (let n = 0; n < times; n += 1) await clock.advance(50);
}

/** A table with one row, then a second row in a commit that nobody answered; then the topic goes. */
async function deletedMidCommit(fault: Partial<CatalogFaults>): Promise<void> {
  const topic = await bench.topic('t', TEXT);
  bench.produce(topic, [{ value: 'a' }]);
  await pump();
  catalog.faults = { ...NONE, ...fault };
  bench.produce(topic, [{ value: 'b' }]);
  await pump();
  await bench.directory.delete(topic.topicId);
  await pump();
  catalog.faults = undefined;
}

/** Somebody else's commit: `main` moves. */
async function foreignCommit(): Promise<void> {
  const identifier = { namespace: ['kafka'], name: 't' };
  const { metadata } = await bench.catalog.loadTable(identifier);
  const ids = bench.seeded();
  const prepared = await prepareAppend({
    metadata,
    io: bench.warehouse,
    snapshotId: newSnapshotId(ids, metadata),
    commitUuid: ids.uuid(),
    nowMs: clock.now(),
    added: [],
    summary: {},
  });
  for (const { path, bytes } of prepared.objects) await bench.warehouse.write(path, bytes);
  await bench.catalog.commitTable(identifier, prepared);
}

test('a commit that was lost with its topic: files stay while it may arrive, and go by proof', async () => {
  await deletedMidCommit({ lostRequest: 1 });
  expect(await keys('.parquet')).toHaveLength(2);
  const before = await keys('.avro');
  for (let n = 0; n < 3; n += 1) expect(await pass()).toBe(0);
  await foreignCommit();
  expect(await pass()).toBeGreaterThan(1);
  const live = await liveFiles(bench.warehouse, await bench.load('t'));
  expect(live).toHaveLength(1);
  expect(await keys('.parquet')).toHaveLength(1);
  // One manifest and one list of the first commit; the foreign one wrote a list of its own.
  expect(before.length).toBeGreaterThan(2);
  expect((await keys('.avro')).filter((key) => before.includes(key))).toHaveLength(2);
});

test('without proof they go after a day', async () => {
  await deletedMidCommit({ lostRequest: 1 });
  await pass();
  expect(await keys('.parquet')).toHaveLength(2);
  expect(await pass(86_400_000)).toBeGreaterThan(0);
  expect(await keys('.parquet')).toHaveLength(1);
});

test('a commit whose answer alone was lost keeps everything', async () => {
  await deletedMidCommit({ lostReply: 1 });
  const before = [...(await keys('.avro')), ...(await keys('.parquet'))];
  await pass();
  await foreignCommit();
  expect(await pass(100_000_000)).toBe(0);
  const live = await liveFiles(bench.warehouse, await bench.load('t'));
  expect(live).toHaveLength(2);
  const after = [...(await keys('.avro')), ...(await keys('.parquet'))];
  expect(before.filter((key) => !after.includes(key))).toEqual([]);
});

test('a table that was dropped to live elsewhere keeps its files', async () => {
  await deletedMidCommit({ lostReply: 1 });
  await bench.catalog.dropTable({ namespace: ['kafka'], name: 't' }, { purge: false });
  await pass();
  expect(await pass(100_000_000)).toBe(0);
  expect(await keys('.parquet')).toHaveLength(2);
});

test('replacing a deleted topic’s table leaves nothing of it, dead letters included', async () => {
  const config = { ...TEXT, 'table.topic.convert.value.type': 'json' };
  const topic = await bench.topic('t', config);
  bench.produce(topic, [{ value: '{"a":1}' }, { value: 'no json' }]);
  await pump();
  await bench.directory.delete(topic.topicId);
  await pump();
  const before = [...(await keys('.parquet')), ...(await keys('.avro')), ...(await keys('.json'))];
  expect(before.filter((key) => key.endsWith('.parquet'))).toHaveLength(2);
  const again = await bench.topic('t', { ...config, 'table.topic.recreated': 'replace' });
  bench.produce(again, [{ value: '{"b":true}' }]);
  await pump();
  const metadata = await bench.load('t');
  expect(metadata.schemas.at(-1)!.fields.map((field) => field.name)).not.toContain('a');
  expect(await liveFiles(bench.warehouse, metadata)).toHaveLength(1);
  await expect(bench.load('t_dlq')).rejects.toMatchObject({ code: 'not-found' });
  const after = [...(await keys('.parquet')), ...(await keys('.avro')), ...(await keys('.json'))];
  expect(before.filter((key) => after.includes(key))).toEqual([]);
});

/** Writes a file that an intent names. */
async function intended(name: string, parent: string | null): Promise<string> {
  const { location } = await bench.load('t');
  const prefix = `${location}/data/${name}`;
  const about = { topicId: 'T', createdMs: clock.now(), namespace: ['kafka'], table: 't' };
  await bench.metadata.tables.addIntents([{ ...about, prefix, parent }]);
  await bench.warehouse.write(prefix, new Uint8Array(1));
  return prefix;
}

test('what must wait keeps nobody from a turn, however much it is', async () => {
  const topic = await bench.topic('t', TEXT);
  bench.produce(topic, [{ value: 'a' }]);
  await pump();
  const about = { topicId: 'T', createdMs: clock.now(), namespace: ['kafka'], table: 't' };
  const { metadata } = await bench.catalog.loadTable({ namespace: ['kafka'], name: 't' });
  const parent = `${metadata['current-snapshot-id']}@1`;
  const waiting = Array.from({ length: 2_500 }, (_, n) => ({ ...about, prefix: `w${n}`, parent }));
  await bench.metadata.tables.addIntents(waiting);
  await clock.advance(1);
  await intended('abandoned.parquet', null);
  expect(await pass()).toBe(1);
  expect(await bench.metadata.tables.intents(Number.MAX_SAFE_INTEGER, 5_000)).toHaveLength(2_500);
});

test('what a killed expiry left goes at once, but not a file that a snapshot needs', async () => {
  const topic = await bench.topic('t', TEXT);
  bench.produce(topic, [{ value: 'a' }]);
  await pump();
  const gone = await intended('expired-deletes.parquet', '');
  const kept = await intended('figures.stats', '');
  await bench.catalog.commitTable(
    { namespace: ['kafka'], name: 't' },
    {
      requirements: [],
      updates: [
        {
          action: 'set-statistics',
          statistics: {
            'snapshot-id': (await bench.load('t'))['current-snapshot-id']!,
            'statistics-path': kept,
            'file-size-in-bytes': 1,
            'file-footer-size-in-bytes': 1,
            'blob-metadata': [],
          },
        },
      ],
    },
  );
  expect(await pass()).toBe(1);
  const names = [...(await keys('.parquet')), ...(await keys('.stats'))];
  expect(names.some((key) => gone.endsWith(key))).toBe(false);
  expect(names.some((key) => kept.endsWith(key))).toBe(true);
  expect(await bench.metadata.tables.intents(Number.MAX_SAFE_INTEGER, 10)).toEqual([]);
});
