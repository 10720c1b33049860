import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { resolveTopicConfigs, tableSettings } from '../settings/index.ts';
import { Bench } from '../testing/bench.ts';
import { coordinates, liveFiles } from '../testing/parquet-rows.ts';
import { formatWatermark, parseWatermark, readBack, WATERMARK_PROPERTY } from '../watermark.ts';
import { TableMaintenance } from './maintenance.ts';
import type { MaintenanceTasks } from './task.ts';
import { MaintenanceWorker } from './worker.ts';

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

test('unknown files go by opt-in once they are old, what is in use never', async () => {
  const { bench, clock } = await filled(3, {
    'table.topic.orphan.enable': 'true',
    'table.topic.orphan.older.than.hours': '24',
    'table.topic.compact.interval.ms': '3600000',
  });
  const { location } = await bench.load('t');
  const old = [`${location}/data/unknown.parquet`, `${location}/metadata/unknown.avro`];
  for (const uri of old) await bench.warehouse.write(uri, [new Uint8Array(3)]);
  await clock.advance(20 * 3_600_000);
  const young = `${location}/data/young.parquet`;
  await bench.warehouse.write(young, [new Uint8Array(3)]);
  expect((await storedFiles(bench)).filter((uri) => old.includes(uri))).toHaveLength(2);
  await clock.advance(6 * 3_600_000);
  const stored = await storedFiles(bench);
  expect(stored.filter((uri) => old.includes(uri))).toEqual([]);
  expect(stored).toContain(young);
  expect(await coordinates(bench.warehouse, await bench.load('t'))).toHaveLength(15);
  await bench.stop();
});

test('nothing is rewritten in the hours left to another engine', async () => {
  // The clock starts at 22:13 UTC.
  const { bench, clock } = await filled(8, {
    'table.topic.compact.interval.ms': '1000',
    'table.topic.compact.pause': '22:00-23:00',
  });
  await clock.advance(30 * 60_000);
  expect(await liveFiles(bench.warehouse, await bench.load('t'))).toHaveLength(8);
  await clock.advance(30 * 60_000);
  expect(await liveFiles(bench.warehouse, await bench.load('t'))).toHaveLength(1);
  await bench.stop();
});

test('T6: a coordinator of a higher epoch ends the maintenance of this one', async () => {
  const { bench } = await filled(8);
  const before = await bench.load('t');
  const watermark = parseWatermark(before.properties![WATERMARK_PROPERTY]!);
  await bench.catalog.commitTable(
    { namespace: ['kafka'], name: 't' },
    {
      requirements: [],
      updates: [
        {
          action: 'set-properties',
          updates: { [WATERMARK_PROPERTY]: formatWatermark({ ...watermark, epoch: 9 }) },
        },
      ],
    },
  );
  await expect(bench.tables.maintain('t', 'compact')).rejects.toMatchObject({
    message: expect.stringContaining('T6'),
  });
  expect((await bench.load('t')).snapshots).toHaveLength(8);
  expect((await bench.tables.status('t')).maintenance!.error).toContain('T6');
  await bench.stop();
});

test('dead letters are maintained too; T9: trouble with one table leaves the others their turns', async () => {
  const clock = new ManualClock();
  const bench = await Bench.open({ clock });
  bench.start();
  const config = {
    'table.topic.convert.value.type': 'json',
    'table.topic.compact.interval.ms': '1000',
  };
  const topics = [await bench.topic('good', config), await bench.topic('bad', config)];
  for (let n = 0; n < 9; n += 1) {
    for (const topic of topics)
      bench.produce(topic, [{ value: `{"a":${n}}` }, { value: '{"broken' }]);
    const done = Promise.allSettled([bench.tables.commit('good'), bench.tables.commit('bad')]);
    await clock.advance(500);
    await done;
    // The first manifest of one table goes as soon as it is there.
    if (n === 0) {
      const list = (await bench.load('bad')).snapshots!.at(-1)!['manifest-list'];
      await bench.warehouse.delete([list]);
    }
  }
  await clock.advance(20_000);
  for (const name of ['good', 'good_dlq'])
    expect((await liveFiles(bench.warehouse, await bench.load(name))).length).toBeLessThan(4);
  const { deadLetterMaintenance } = await bench.tables.status('good');
  expect(deadLetterMaintenance).toMatchObject({ error: '', totals: { rewrites: 1 } });
  await bench.stop();
});

test('an operator’s orders of one table are carried out one after the other, each by one worker', async () => {
  const { bench, clock, topic } = await filled(4);
  const metadata = await bench.load('t');
  let active = 0;
  let most = 0;
  const worker = (): MaintenanceTasks => {
    const inner = new MaintenanceWorker(bench.warehouse);
    const { plan } = inner;
    inner.plan = async (task) => {
      active += 1;
      most = Math.max(most, active);
      await new Promise((resolve) => setImmediate(resolve));
      active -= 1;
      return plan.call(inner, task);
    };
    return inner;
  };
  const identifier = { namespace: ['kafka'], name: 't' };
  const table = { topicId: topic.topicId, identifier, role: 'data', mainName: 't' } as const;
  const maintenance = new TableMaintenance({
    ...{ catalog: bench.catalog, warehouse: bench.warehouse, tables: bench.metadata.tables },
    ...{ clock, prng: seededPrng(1), ids: bench.seeded(), logger: silentLogger },
    ...{ jobsUnderWay: new Set<string>(), metrics: noMetrics },
    settings: resolveSettings(tableSettings, {}),
    workers: [worker(), worker()],
    subjects: () => [
      {
        key: 't',
        table: { ...table, tableUuid: metadata['table-uuid'], epoch: 1 },
        config: resolveTopicConfigs(topic.config),
        committing: () => false,
      },
    ],
  });
  const orders = [1, 2, 3].map(() => maintenance.runNow('t', 'compact'));
  await Promise.all(orders);
  expect(most).toBe(1);
  expect(await liveFiles(bench.warehouse, await bench.load('t'))).toHaveLength(1);
  await maintenance.stop();
  await bench.stop();
});
