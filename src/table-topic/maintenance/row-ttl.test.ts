// Rows past their time: whole files by their bounds, and what never goes.
import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { Bench } from '../testing/bench.ts';
import { readRows } from '../testing/parquet-rows.ts';
import { readBack } from '../watermark.ts';

const HOUR_MS = 3_600_000;

async function opened(config: Readonly<Record<string, string>>) {
  const clock = new ManualClock();
  const bench = await Bench.open({ clock });
  bench.start();
  const topic = await bench.topic('t', {
    'table.topic.convert.value.type': 'json',
    'table.topic.json.infer.timestamps': 'true',
    'table.topic.row.ttl.ms': String(24 * HOUR_MS),
    'table.topic.compact.enable': 'false',
    ...config,
  });
  const grow = async (...records: readonly { at: number; value?: object }[]) => {
    const inputs = records.map(({ at, value }) => ({
      value: JSON.stringify(value ?? {}),
      timestamp: at,
    }));
    bench.produce(topic, inputs);
    const done = bench.tables.commit('t');
    await clock.advance(500);
    await done;
  };
  const offsets = async () => {
    const rows = await readRows(bench.warehouse, await bench.load('t'));
    return rows.map((row) => Number(row['_kafka_offset'])).toSorted((a, b) => a - b);
  };
  return { bench, clock, topic, grow, offsets };
}

test('files whose rows are all old leave, by themselves; a younger or timeless row keeps its file', async () => {
  const { bench, clock, grow, offsets } = await opened({});
  const now = clock.now();
  const old = now - 25 * HOUR_MS;
  await grow({ at: old }, { at: old + 1 });
  await grow({ at: old }, { at: now });
  await grow({ at: old }, { at: -1 });
  expect(await offsets()).toEqual([0, 1, 2, 3, 4, 5]);
  await bench.tables.maintain('t', 'expire');
  expect(await offsets()).toEqual([2, 3, 4, 5]);
  const metadata = await bench.load('t');
  expect(metadata.snapshots!.at(-1)!.summary).toMatchObject({
    operation: 'delete',
    'deleted-data-files': '1',
    'deleted-records': '2',
  });
  expect(readBack(metadata).kind).toBe('at');
  // A day later the second file is old too, and nobody has to ask.
  await clock.advance(26 * HOUR_MS);
  expect(await offsets()).toEqual([4, 5]);
  await grow({ at: clock.now() });
  expect(await offsets()).toEqual([4, 5, 6]);
  await bench.stop();
});

test('by a column of the value, partitioned; one that holds no time is said in the status', async () => {
  const { bench, clock, topic, grow, offsets } = await opened({
    'table.topic.row.ttl.column': 'at',
    'table.topic.partition.by': '[day(at)]',
  });
  const iso = (ms: number) => ({ at: ms, value: { at: new Date(ms).toISOString(), n: 1 } });
  const now = clock.now();
  await grow(iso(now), iso(now - 49 * HOUR_MS), iso(now - 50 * HOUR_MS));
  await bench.tables.maintain('t', 'expire');
  expect(await offsets()).toEqual([0]);
  await bench.directory.alterConfig(topic.topicId, { 'table.topic.row.ttl.column': 'n' });
  await grow(iso(now));
  await expect(bench.tables.maintain('t', 'expire')).rejects.toThrow(
    /row\.ttl\.column: "n" is no date or timestamp column/,
  );
  expect(await offsets()).toEqual([0, 3]);
  await bench.stop();
});
