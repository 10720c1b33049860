// What a rewrite keeps beside the rows: lineage on v3, order, what it leaves alone. Files are read by hyparquet.
import { expect, test } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { currentSnapshot, manifestSource, planScan } from '../../formats/iceberg/index.ts';
import { Bench } from '../testing/bench.ts';
import { coordinate, ForeignWriter } from '../testing/foreign-writer.ts';
import { liveRows } from '../testing/live-rows.ts';
import { liveFiles } from '../testing/parquet-rows.ts';

async function opened(config: Record<string, string>) {
  const clock = new ManualClock();
  const bench = await Bench.open({ clock });
  bench.start();
  const topic = await bench.topic('t', { 'table.topic.convert.value.type': 'string', ...config });
  const commit = async (values: readonly string[]) => {
    bench.produce(
      topic,
      values.map((value) => ({ value })),
    );
    const done = bench.tables.commit('t');
    await clock.advance(500);
    await done;
  };
  const writer = new ForeignWriter(
    {
      ...{ catalog: bench.catalog, warehouse: bench.warehouse },
      ...{ ids: seededIds(seededPrng(5)), prng: seededPrng(6), now: () => clock.now() },
    },
    { namespace: ['kafka'], name: 't' },
  );
  return { bench, clock, commit, writer };
}

/** Row id and sequence number of the last change of every live row, as the specification derives them. */
async function lineage(bench: Bench): Promise<Map<string, string>> {
  const metadata = await bench.load('t');
  const { files } = await planScan({ metadata, source: manifestSource(bench.warehouse) });
  const byPath = new Map(files.map((scan) => [scan.file.filePath, scan]));
  const rows = await liveRows(bench.warehouse, metadata);
  return new Map(
    rows.map((row) => {
      const { file, sequenceNumber } = byPath.get(row.filePath)!;
      const id = row.values['_row_id'] ?? file.firstRowId! + row.position;
      const changed = row.values['_last_updated_sequence_number'] ?? sequenceNumber;
      return [coordinate(row), `${id} at ${changed}`];
    }),
  );
}

test('v3: a row keeps its id and the number of its last change, through several rewrites', async () => {
  const { bench, commit, writer } = await opened({ 'table.topic.format.version': '3' });
  for (let n = 0; n < 4; n += 1) await commit(['a', 'b', 'c']);
  await writer.deletePositions(3);
  const before = await lineage(bench);
  expect(new Set([...before.values()].map((text) => text.split(' ')[0])).size).toBe(9);
  await bench.tables.maintain('t', 'compact');
  const files = await liveFiles(bench.warehouse, await bench.load('t'));
  expect(files.map((file) => [file.content, file.recordCount])).toEqual([[0, 9]]);
  // Nothing of the reserved columns in the manifest.
  expect([...files[0]!.metrics.valueCounts.keys()].every((id) => id < 1_000)).toBe(true);
  expect(await lineage(bench)).toEqual(before);

  await commit(['d']);
  const grown = await lineage(bench);
  await bench.tables.maintain('t', 'compact');
  expect(await liveFiles(bench.warehouse, await bench.load('t'))).toHaveLength(1);
  expect(await lineage(bench)).toEqual(grown);
  expect(new Set(grown.values()).size).toBe(10);
  await bench.stop();
});

test('rows come in the table’s sort order, and the files say so', async () => {
  const { bench, commit } = await opened({ 'table.topic.sort.by': '[_kafka_value desc]' });
  for (const letter of ['m', 'c', 'x', 'a']) await commit([letter, `${letter}${letter}`]);
  await bench.tables.maintain('t', 'compact');
  const metadata = await bench.load('t');
  const [file] = await liveFiles(bench.warehouse, metadata);
  expect(file!.sortOrderId).toBe(metadata['default-sort-order-id']);
  const rows = await liveRows(bench.warehouse, metadata);
  expect(rows.map((row) => row.values['_kafka_value'])).toEqual(
    ['a', 'aa', 'c', 'cc', 'm', 'mm', 'x', 'xx'].toReversed(),
  );
  await bench.stop();
});

test('equality deletes of another engine are applied, and leave once nothing needs them', async () => {
  const { bench, commit, writer } = await opened({});
  for (let n = 0; n < 3; n += 1) await commit(['a', 'b', 'c']);
  const gone = await writer.deleteEqual(2);
  await bench.tables.maintain('t', 'compact');
  const metadata = await bench.load('t');
  const files = await liveFiles(bench.warehouse, metadata);
  expect(files.map((file) => [file.content, file.recordCount])).toEqual([[0, 7]]);
  const left = (await liveRows(bench.warehouse, metadata)).map(coordinate);
  expect(left).toHaveLength(7);
  expect(left.filter((row) => gone.includes(row))).toEqual([]);
  await bench.stop();
});

test('a file that can’t be read exactly is left alone, the others are rewritten', async () => {
  const { bench, commit } = await opened({});
  for (let n = 0; n < 4; n += 1) await commit(['a', 'b']);
  const metadata = await bench.load('t');
  const [damaged] = await liveFiles(bench.warehouse, metadata);
  const bytes = (await bench.warehouse.read(damaged!.filePath)).slice();
  bytes.fill(0xff, 20, 60);
  await bench.warehouse.delete([damaged!.filePath]);
  await bench.warehouse.write(damaged!.filePath, bytes);
  await bench.tables.maintain('t', 'compact');
  await bench.tables.maintain('t', 'compact');
  const files = await liveFiles(bench.warehouse, await bench.load('t'));
  expect(files.map((file) => file.recordCount).toSorted()).toEqual([2, 6]);
  const { maintenance } = await bench.tables.status('t');
  expect(maintenance).toMatchObject({ leftAlone: 1, totals: { rewrites: 1 } });
  await bench.stop();
});

test('the manifests of rewritten files become one', async () => {
  const { bench, commit } = await opened({});
  for (let n = 0; n < 12; n += 1) await commit(['a']);
  const count = async () => {
    const metadata = await bench.load('t');
    return (await manifestSource(bench.warehouse).list(currentSnapshot(metadata))).length;
  };
  expect(await count()).toBe(12);
  await bench.tables.maintain('t', 'compact');
  expect(await count()).toBe(2);
  expect(await liveRows(bench.warehouse, await bench.load('t'))).toHaveLength(12);
  await bench.stop();
});

test('many manifests are merged before commits have to', async () => {
  const { bench, clock, commit } = await opened({
    'table.topic.compact.min.input.files': '1000',
    'table.topic.compact.interval.ms': '600000',
  });
  for (let n = 0; n < 45; n += 1) await commit(['a']);
  const metadata = await bench.load('t');
  const list = async () =>
    manifestSource(bench.warehouse).list(currentSnapshot(await bench.load('t')));
  expect(await list()).toHaveLength(45);
  const rows = (await liveRows(bench.warehouse, metadata)).map(coordinate).toSorted();
  await clock.advance(700_000);
  expect(await list()).toHaveLength(1);
  const after = (await liveRows(bench.warehouse, await bench.load('t'))).map(coordinate);
  expect(after.toSorted()).toEqual(rows);
  expect((await bench.tables.status('t')).maintenance!.totals.manifestMerges).toBe(1);
  await bench.stop();
});
