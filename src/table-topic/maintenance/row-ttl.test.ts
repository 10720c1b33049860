// Rows past their time: whole files by their bounds, rows of others by deletes, and what never goes.
import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { Bench } from '../testing/bench.ts';
import { liveRows } from '../testing/live-rows.ts';
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
    const rows = await liveRows(bench.warehouse, await bench.load('t'));
    return rows.map(({ values }) => Number(values['_kafka_offset'])).toSorted((a, b) => a - b);
  };
  return { bench, clock, topic, grow, offsets };
}

test.each(['2', '3'])(
  'version %s: old rows leave, by themselves; files with younger or timeless rows stay',
  async (version) => {
    const { bench, clock, grow, offsets } = await opened({ 'table.topic.format.version': version });
    const now = clock.now();
    const old = now - 25 * HOUR_MS;
    await grow({ at: old }, { at: old + 1 });
    await grow({ at: old }, { at: now });
    await grow({ at: old }, { at: -1 });
    expect(await offsets()).toEqual([0, 1, 2, 3, 4, 5]);
    await bench.tables.maintain('t', 'expire');
    expect(await offsets()).toEqual([3, 5]);
    const metadata = await bench.load('t');
    expect(metadata.snapshots!.at(-1)!.summary).toMatchObject({
      operation: 'delete',
      'deleted-data-files': '1',
      'deleted-records': '2',
      'added-position-deletes': '2',
    });
    expect(readBack(metadata).kind).toBe('at');
    // Nothing came of age: nothing is committed.
    await bench.tables.maintain('t', 'expire');
    expect((await bench.load('t')).snapshots).toHaveLength(metadata.snapshots!.length);
    // A day later the second file is old too, and nobody has to ask.
    await clock.advance(26 * HOUR_MS);
    expect(await offsets()).toEqual([5]);
    await grow({ at: clock.now() });
    expect(await offsets()).toEqual([5, 6]);
    await bench.stop();
  },
);

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

test('rows of a file leave one after another, over restarts, beside deletes of upserts', async () => {
  const { bench, clock, topic, offsets } = await opened({
    'table.topic.upsert.enable': 'true',
    'table.topic.id.columns': '[id]',
  });
  const now = clock.now();
  const rows = [1, 2, 3, 4, 5].map((id) => ({
    value: JSON.stringify({ id, text: 'a' }),
    timestamp: now - (26 - id) * HOUR_MS,
  }));
  const commit = async () => {
    const done = bench.tables.commit('t');
    await clock.advance(500);
    await done;
  };
  bench.produce(topic, rows);
  await commit();
  // Key 4's row in the old file goes before its time.
  bench.produce(topic, [{ value: '{"id":4,"text":"b"}', timestamp: now }]);
  await commit();
  await bench.tables.maintain('t', 'expire');
  expect(await offsets()).toEqual([2, 4, 5]);
  await bench.tables.stop();
  bench.start();
  await commit();
  await clock.advance(HOUR_MS);
  await bench.tables.maintain('t', 'expire');
  expect(await offsets()).toEqual([4, 5]);
  // What expired is no row that a change would have to delete.
  bench.produce(topic, [
    { value: '{"id":1,"text":"c"}', timestamp: clock.now() },
    { value: '{"id":5,"text":"c"}', timestamp: clock.now() },
  ]);
  await commit();
  expect(await offsets()).toEqual([5, 6, 7]);
  await bench.stop();
});
