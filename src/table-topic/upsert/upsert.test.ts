// Upsert tables end to end in one process: records in, rows out, read with their deletes by our scan planner and a
// Parquet reader that isn't ours.
import { expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import type { Int64Column } from '../../formats/arrow/scalar-columns.ts';
import { TableColumns } from '../../formats/arrow/table-columns.ts';
import {
  manifestSource,
  newSnapshotId,
  planScan,
  prepareCommit,
} from '../../formats/iceberg/index.ts';
import { ParquetWriter } from '../../formats/parquet/writer.ts';
import type { RecordInput } from '../../protocol/record-builder.ts';
import { sweep } from '../sweep.ts';
import { Bench } from '../testing/bench.ts';
import { KeyIndexHost } from './key-index.ts';
import { MemoryRunFiles } from './run-files.ts';
import { liveRows } from './testing/live-rows.ts';

const json = (value: unknown) => JSON.stringify(value);
const put = (id: number | null, text: string, more: object = {}): RecordInput => ({
  key: json({ id }),
  value: json({ id, text, ...more }),
});
const tombstone = (key: string | null): RecordInput => ({ key, value: null });

const CONFIG = {
  'table.topic.convert.value.type': 'json',
  'table.topic.convert.key.type': 'json',
  'table.topic.upsert.enable': 'true',
  'table.topic.id.columns': '[id]',
};

const texts = async (bench: Bench, name = 't') => {
  const rows = await liveRows(bench.warehouse, await bench.load(name));
  return rows.map((row) => `${row['id']}=${row['text']}`).toSorted();
};

test('the newest record of a key is its row; a null value deletes it', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', CONFIG, 2);
  bench.produce(topic, [put(1, 'a'), put(2, 'b'), put(1, 'c'), put(3, 'd')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=c', '2=b', '3=d']);
  bench.produce(topic, [put(2, 'e')]);
  bench.produce(topic, [tombstone(json({ id: 3 })), put(4, 'f')], 1);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=c', '2=e', '4=f']);
  // Deletes alone, by a scalar key, one of a key that never was.
  bench.produce(topic, [tombstone('1'), tombstone('77')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['2=e', '4=f']);
  const { summary } = (await bench.load('t')).snapshots!.at(-1)!;
  expect(summary).toMatchObject({ operation: 'delete' });
  // Sidecars have gone with their stages.
  const left: string[] = [];
  for await (const { key } of bench.store.list('')) if (key.endsWith('-keys.bin')) left.push(key);
  expect(left).toEqual([]);
  await bench.stop();
});

test('v3: vectors take in what was deleted before', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', { ...CONFIG, 'table.topic.format.version': '3' });
  bench.produce(topic, [put(1, 'a'), put(2, 'b'), put(3, 'c'), put(4, 'd')]);
  await bench.tables.commit('t');
  for (const [n, id] of [1, 2, 3].entries()) {
    bench.produce(topic, [put(id, `new${n}`)]);
    await bench.tables.commit('t');
  }
  expect(await texts(bench)).toEqual(['1=new0', '2=new1', '3=new2', '4=d']);
  const { summary } = (await bench.load('t')).snapshots!.at(-1)!;
  expect(summary).toMatchObject({ 'total-delete-files': '1', 'total-position-deletes': '3' });
  // The last row of the first file goes, and the file with it.
  bench.produce(topic, [tombstone('4')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=new0', '2=new1', '3=new2']);
  const after = (await bench.load('t')).snapshots!.at(-1)!.summary;
  expect(after).toMatchObject({ 'total-data-files': '3', 'total-delete-files': '0' });
  await bench.stop();
});

test('a restart finds out what the table holds, and goes on', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', CONFIG, 2);
  bench.produce(topic, [put(1, 'a'), put(2, 'b')]);
  await bench.tables.commit('t');
  await bench.tables.stop();
  bench.start();
  bench.produce(topic, [put(1, 'c')], 1);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=c', '2=b']);
  await bench.stop();
});

test('a key that moves to another partition of the table leaves its old row', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', { ...CONFIG, 'table.topic.partition.by': '[text]' });
  bench.produce(topic, [put(1, 'x'), put(2, 'x'), put(3, 'y')]);
  await bench.tables.commit('t');
  bench.produce(topic, [put(1, 'y'), put(3, 'z')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=y', '2=x', '3=z']);
  await bench.stop();
});

test('records without a key are dead letters, or null is a key', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [put(1, 'a'), put(null, 'b'), tombstone(null), tombstone('"x"')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=a']);
  const letters = await liveRows(bench.warehouse, await bench.load('t_dlq'));
  expect(letters.map((row) => row['reason']).toSorted()).toEqual(['no_key', 'no_key', 'null_id']);
  const matching = await bench.topic('m', { ...CONFIG, 'table.topic.id.null': 'match' });
  bench.produce(matching, [put(1, 'a'), put(null, 'b'), put(null, 'c')]);
  await bench.tables.commit('m');
  expect(await texts(bench, 'm')).toEqual(['1=a', 'null=c']);
  await bench.stop();
});

test('the operation column deletes and truncates', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', { ...CONFIG, 'table.topic.cdc.field': 'op' }, 2);
  const op = (id: number, text: string, word: string) => put(id, text, { op: word });
  bench.produce(topic, [op(1, 'a', 'I'), op(2, 'b', 'c'), op(3, 'c', 'insert')]);
  await bench.tables.commit('t');
  bench.produce(topic, [op(1, 'a', 'D'), op(2, 'bb', 'U'), op(9, 'x', '?')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['2=bb', '3=c']);
  bench.produce(topic, [op(5, 'e', 'c'), op(0, '', 'truncate'), op(3, 'new', 'c')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['3=new']);
  await bench.stop();
});

test('changes of one key in two partitions count in the order of the log’s commits', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', CONFIG, 2);
  bench.produce(topic, [put(1, 'first')], 1);
  bench.produce(topic, [put(1, 'second')], 0);
  bench.produce(topic, [tombstone('1')], 1);
  bench.produce(topic, [put(1, 'third')], 0);
  bench.produce(topic, [put(2, 'x')], 0);
  bench.produce(topic, [tombstone('2')], 1);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=third']);
  await bench.stop();
});

test('the record key is the key when no columns are named', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', {
    'table.topic.convert.value.type': 'string',
    'table.topic.upsert.enable': 'true',
  });
  const record = (key: string, value: string | null) => ({ key, value });
  bench.produce(topic, [record('a', '1'), record('b', '2'), record('a', '3'), record('b', null)]);
  await bench.tables.commit('t');
  const rows = await liveRows(bench.warehouse, await bench.load('t'));
  expect(rows.map((row) => row['_kafka_value'])).toEqual(['3']);
  await bench.stop();
});

test('K2: upserts turned on over duplicates keep the newest row of each key', async () => {
  const bench = await Bench.open();
  bench.start();
  const { 'table.topic.upsert.enable': _on, 'table.topic.id.columns': _ids, ...grows } = CONFIG;
  const topic = await bench.topic('t', grows);
  bench.produce(topic, [put(1, 'a'), put(2, 'b'), put(1, 'c')]);
  await bench.tables.commit('t');
  bench.produce(topic, [put(2, 'd'), put(3, 'e')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toHaveLength(5);
  await bench.tables.stop();
  await bench.directory.alterConfig(topic.topicId, CONFIG);
  bench.start();
  bench.produce((await bench.directory.all()).find((one) => one.name === 't')!, [put(4, 'f')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=c', '2=d', '3=e', '4=f']);
  const metadata = await bench.load('t');
  expect(metadata.snapshots!.at(-1)!.summary).toMatchObject({ 'floe.duplicate-rows-removed': '2' });
  await bench.stop();
});

test('K3: another node starts from the checkpoint', async () => {
  const bench = await Bench.open({ settings: { 'table.keys.checkpoint.ms': '1000' } });
  const reads: string[] = [];
  const io = {
    read: (uri: string) => {
      reads.push(uri);
      return bench.warehouse.read(uri);
    },
    readRange: (uri: string, start: number, end: number) =>
      bench.warehouse.readRange(uri, start, end),
    write: (uri: string, parts: readonly Uint8Array[]) => bench.warehouse.write(uri, parts),
    list: (prefix: string) => bench.warehouse.list(prefix),
    delete: (uris: Iterable<string>) => bench.warehouse.delete(uris),
  };
  const node = () =>
    new KeyIndexHost({
      io,
      ids: bench.seeded(),
      place: () => ({ database: ':memory:', runs: new MemoryRunFiles() }),
    });
  const first = node();
  bench.start({ keys: first });
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [put(1, 'a'), put(2, 'b'), put(3, 'c')]);
  await bench.tables.commit('t');
  const metadata = await bench.load('t');
  const folder = `${metadata.location}/metadata`;
  for (let n = 0; n < 2; n += 1)
    await first.checkpoint({ tableUuid: metadata['table-uuid'], folder });
  await bench.tables.stop();
  reads.length = 0;
  bench.start({ keys: node() });
  bench.produce(topic, [put(2, 'bb'), tombstone('3')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=a', '2=bb']);
  expect(reads.filter((uri) => uri.endsWith('.parquet'))).toEqual([]);
  expect(reads.filter((uri) => uri.includes('/floe-keys/'))).toHaveLength(2);
  await bench.stop();
});

test.each(['2', '3'])(
  'compaction keeps every row where the index finds it (v%s)',
  async (format) => {
    const bench = await Bench.open();
    bench.start();
    const topic = await bench.topic('t', { ...CONFIG, 'table.topic.format.version': format });
    for (let n = 0; n < 10; n += 1) {
      bench.produce(topic, [put(n, `a${n}`), put(n + 1, `b${n}`), put(100, `c${n}`)]);
      await bench.tables.commit('t');
    }
    const before = await texts(bench);
    await bench.tables.maintain('t', 'compact');
    expect(await texts(bench)).toEqual(before);
    const compacted = (await bench.load('t')).snapshots!.at(-1)!.summary!;
    expect(compacted['operation']).toBe('replace');
    bench.produce(topic, [put(3, 'new'), tombstone('100'), put(5, 'newer')]);
    await bench.tables.commit('t');
    const expected = before
      .filter((row) => !row.startsWith('100='))
      .map((row) => row.replace(/^3=.*/, '3=new').replace(/^5=.*/, '5=newer'));
    expect(await texts(bench)).toEqual(expected);
    await bench.stop();
  },
);

test('Debezium’s events make a table that mirrors the source', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', {
    ...CONFIG,
    'table.topic.transform.value.type': 'flatten_debezium',
  });
  const source = {
    version: '3',
    connector: 'postgresql',
    name: 'x',
    ts_ms: 1,
    db: 'd',
    table: 't',
  };
  const event = (op: string, before: object | null, after: object | null) => ({
    key: json({ id: ((after ?? before) as { id: number }).id }),
    value: json({ before, after, source, op, ts_ms: 2 }),
  });
  bench.produce(topic, [
    event('r', null, { id: 1, text: 'a' }),
    event('c', null, { id: 2, text: 'b' }),
    event('u', { id: 1, text: 'a' }, { id: 1, text: 'aa' }),
    event('d', { id: 2, text: 'b' }, null),
    tombstone(json({ id: 2 })),
    event('c', null, { id: 3, text: 'c' }),
    // Sent again after a restart of the connector.
    event('c', null, { id: 3, text: 'c' }),
  ]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=aa', '3=c']);
  bench.produce(topic, [event('d', { id: 1, text: 'aa' }, null)]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['3=c']);
  await bench.stop();
});

test('K5: after an upgrade to v3 vectors take in position deletes, which leave', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [put(1, 'a'), put(2, 'b'), put(3, 'c'), put(4, 'd')]);
  await bench.tables.commit('t');
  bench.produce(topic, [put(1, 'aa'), put(5, 'e'), put(6, 'f')]);
  await bench.tables.commit('t');
  // One delete file about rows of both data files.
  bench.produce(topic, [put(2, 'bb'), put(5, 'ee')]);
  await bench.tables.commit('t');
  await bench.catalog.commitTable(
    { namespace: ['kafka'], name: 't' },
    { requirements: [], updates: [{ action: 'upgrade-format-version', 'format-version': 3 }] },
  );
  bench.produce(topic, [put(3, 'cc')]);
  await bench.tables.commit('t');
  expect(await texts(bench)).toEqual(['1=aa', '2=bb', '3=cc', '4=d', '5=ee', '6=f']);
  const metadata = await bench.load('t');
  const { files } = await planScan({ metadata, source: manifestSource(bench.warehouse) });
  const deletes = files.flatMap(({ positionDeletes }) => positionDeletes.map(({ file }) => file));
  expect(deletes.map(({ fileFormat }) => fileFormat)).toEqual(['PUFFIN', 'PUFFIN']);
  expect(metadata.snapshots!.at(-1)!.summary).toMatchObject({
    'removed-position-delete-files': '2',
    'total-position-deletes': '4',
  });
  await bench.stop();
});

test('K3: an equality delete of somebody else is followed', async () => {
  const bench = await Bench.open();
  bench.start();
  const topic = await bench.topic('t', CONFIG);
  bench.produce(topic, [put(1, 'a'), put(2, 'b'), put(3, 'c')]);
  await bench.tables.commit('t');
  const metadata = await bench.load('t');
  const id = metadata.schemas.at(-1)!.fields.find((field) => field.name === 'id')!;
  const columns = new TableColumns({ type: 'struct', 'schema-id': 0, fields: [id] });
  (columns.columns[0] as Int64Column).append(2);
  columns.endRow();
  const writer = new ParquetWriter({ schema: columns.schema });
  writer.writeRowGroup(columns);
  const written = writer.finish();
  const path = `${metadata.location}/data/foreign-equality.parquet`;
  await bench.warehouse.write(path, written.parts);
  const ids = bench.seeded();
  const prepared = await prepareCommit({
    metadata,
    io: bench.warehouse,
    snapshotId: newSnapshotId(ids, metadata),
    commitUuid: ids.uuid(),
    nowMs: 1,
    added: [
      {
        content: 2,
        filePath: path,
        fileFormat: 'PARQUET',
        specId: 0,
        partition: [],
        recordCount: 1,
        fileSizeInBytes: written.byteLength,
        equalityIds: [id.id],
        metrics: written.metrics,
      },
    ],
  });
  for (const object of prepared.objects) await bench.warehouse.write(object.path, object.bytes);
  await bench.catalog.commitTable({ namespace: ['kafka'], name: 't' }, prepared);
  bench.produce(topic, [put(2, 'bb'), put(3, 'cc')]);
  await bench.tables.commit('t');
  // Of the two only one had a row left.
  expect((await bench.load('t')).snapshots!.at(-1)!.summary).toMatchObject({
    'added-records': '2',
    'added-position-deletes': '1',
  });
  await bench.stop();
});

test('a staged file whose rows were all superseded goes with its stage, also when a crash came in between', async () => {
  const bench = await Bench.open({ settings: { 'table.job.bytes': '65536' } });
  bench.start();
  const topic = await bench.topic('t', CONFIG);
  // Each record is a job of its own, and all are one commit.
  const rewrite = (round: number) => {
    for (const n of [1, 2, 3]) bench.produce(topic, [put(1, `${round}.${n}${'x'.repeat(70_000)}`)]);
  };
  const files = async () => {
    const found: string[] = [];
    for await (const { key } of bench.store.list(''))
      if (key.endsWith('-0.parquet')) found.push(key);
    return found.length;
  };
  rewrite(1);
  await bench.tables.commit('t');
  expect((await texts(bench)).map((text) => text.slice(0, 5))).toEqual(['1=1.3']);
  expect(await files()).toBe(1);

  const { tables } = bench.metadata;
  const addIntents = tables.addIntents.bind(tables);
  tables.addIntents = async (intents) => {
    if (intents.some(({ prefix }) => prefix.endsWith('-keys.bin')))
      throw new FloeError('unavailable', 'the process dies after its commit');
    return addIntents(intents);
  };
  rewrite(2);
  await expect(bench.tables.commit('t')).rejects.toThrow();
  await bench.tables.stop();
  tables.addIntents = addIntents;
  bench.start();
  await bench.tables.commit('t');
  await expect.poll(() => tables.stages(topic.topicId, 10)).toEqual([]);
  expect((await texts(bench)).map((text) => text.slice(0, 5))).toEqual(['1=2.3']);
  await sweep({
    tables,
    catalog: bench.catalog,
    warehouse: bench.warehouse,
    clock: bench.clock,
    logger: silentLogger,
    ageMs: -1,
    jobsUnderWay: new Set(),
  });
  // The row before is a snapshot's still.
  expect(await files()).toBe(2);
  await bench.stop();
});
