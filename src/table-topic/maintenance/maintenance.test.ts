import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { Bench } from '../testing/bench.ts';
import { coordinates, liveFiles } from '../testing/parquet-rows.ts';
import { parseWatermark, readBack, WATERMARK_PROPERTY } from '../watermark.ts';

const STRING = { 'table.topic.convert.value.type': 'string' };

/** A table of `commits` small files, five rows each. */
async function filled(commits: number, config: Record<string, string> = {}) {
  const clock = new ManualClock();
  const bench = await Bench.open({ clock });
  bench.start();
  const topic = await bench.topic('t', { ...STRING, ...config }, 2);
  const grow = async () => {
    bench.produce(
      topic,
      Array.from({ length: 5 }, (_, n) => ({ value: `v${n}` })),
      0,
    );
    const done = bench.tables.commit('t');
    await clock.advance(500);
    await done;
  };
  for (let n = 0; n < commits; n += 1) await grow();
  return { clock, bench, topic, grow };
}

async function storedFiles(bench: Bench): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of bench.store.list('')) found.push(`${bench.store.uri}/${key}`);
  return found;
}

test('small files become one, rows stay, the watermark holds and commits go on', async () => {
  const { bench, grow } = await filled(10);
  const before = await bench.load('t');
  const rows = await coordinates(bench.warehouse, before);
  expect(rows).toHaveLength(50);
  expect(await liveFiles(bench.warehouse, before)).toHaveLength(10);

  await bench.tables.maintain('t', 'compact');
  const after = await bench.load('t');
  const [file, ...others] = await liveFiles(bench.warehouse, after);
  expect(others).toEqual([]);
  expect(file!.recordCount).toBe(50);
  expect(await coordinates(bench.warehouse, after)).toEqual(rows);
  expect(after.snapshots!.at(-1)!.summary).toMatchObject({
    operation: 'replace',
    'deleted-data-files': '10',
    'added-data-files': '1',
    'total-records': '50',
    'total-data-files': '1',
  });
  expect(readBack(after).kind).toBe('at');
  expect((await bench.tables.status('t')).maintenance).toMatchObject({
    state: 'idle',
    error: '',
    totals: { rewrites: 1, lost: 0, filesRemoved: 10, filesAdded: 1 },
  });

  await grow();
  const grown = await bench.load('t');
  expect(await coordinates(bench.warehouse, grown)).toHaveLength(55);
  expect(parseWatermark(grown.properties![WATERMARK_PROPERTY]!).snapshotId).toBe(
    grown['current-snapshot-id'],
  );
  expect(await bench.metadata.tables.intents(Number.MAX_SAFE_INTEGER, 10)).toEqual([]);
  await bench.stop();
});

test('by itself: after an interval, and it comes to rest', async () => {
  const { bench, clock } = await filled(8, { 'table.topic.compact.interval.ms': '1000' });
  await clock.advance(5_000);
  expect(await liveFiles(bench.warehouse, await bench.load('t'))).toHaveLength(1);
  const snapshots = (await bench.load('t')).snapshots!.length;
  await clock.advance(60_000);
  expect((await bench.load('t')).snapshots).toHaveLength(snapshots);
  await bench.stop();
});

test('expired snapshots go with the files that only they need', async () => {
  const { bench, clock } = await filled(10, {
    'table.topic.expire.snapshot.older.than.hours': '1',
  });
  await bench.tables.maintain('t', 'compact');
  await clock.advance(3 * 3_600_000);
  await bench.tables.maintain('t', 'expire');
  const metadata = await bench.load('t');
  // The newest of ours is kept: the watermark is read back by it.
  expect(metadata.snapshots).toHaveLength(2);
  expect(readBack(metadata).kind).toBe('at');
  const live = (await liveFiles(bench.warehouse, metadata)).map((file) => file.filePath);
  const stored = (await storedFiles(bench)).filter((uri) => uri.endsWith('.parquet'));
  // Ten small files are the newest own snapshot's; the other snapshots' manifests are gone.
  expect(stored).toHaveLength(11);
  expect(live.every((uri) => stored.includes(uri))).toBe(true);
  expect(await coordinates(bench.warehouse, metadata)).toHaveLength(50);
  const lists = (await storedFiles(bench)).filter((uri) => uri.includes('/snap-'));
  expect(lists.toSorted()).toEqual(
    metadata.snapshots!.map((one) => one['manifest-list']).toSorted(),
  );
  await bench.stop();
});
