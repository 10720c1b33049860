// What the layout configs make of tables, while records flow: specs, orders, versions, properties, file sizes.
import avsc from 'avsc';
import { parquetMetadata } from 'hyparquet';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { manifestsOf } from '../formats/iceberg/index.ts';
import type { DataFile, TableMetadata } from '../formats/iceberg/types.ts';
import type { Topic } from '../metadata/topics.ts';
import { CONFIGURED_PROPERTY } from './table-layout.ts';
import { Bench, framed } from './testing/bench.ts';
import { liveFiles, readRows } from './testing/parquet-rows.ts';

let bench: Bench;

beforeEach(async () => {
  // Every record is worth a job: rows are staged long before they are committed.
  bench = await Bench.open({ settings: { 'table.job.start.bytes': '1' } });
  bench.start();
});

afterEach(() => bench.stop());

const schema = {
  type: 'record',
  name: 'Event',
  fields: [
    { name: 'id', type: 'long' },
    {
      name: 'place',
      type: [
        'null',
        { type: 'record', name: 'Place', fields: [{ name: 'country', type: 'string' }] },
      ],
    },
    { name: 'at', type: { type: 'long', logicalType: 'timestamp-micros' } },
  ],
} as const;
const events = avsc.Type.forSchema(schema as unknown as avsc.Schema);
const COUNTRIES = ['dk', 'se', 'no', null] as const;
const HOUR_US = 3_600_000_000;

async function topicOf(config: Readonly<Record<string, string>>): Promise<Topic> {
  await bench.schemas.register('events-value', JSON.stringify(schema));
  return bench.topic('events', { 'table.topic.commit.interval.ms': '900000', ...config });
}

function produce(topic: Topic, from: number, count: number): void {
  bench.produce(
    topic,
    Array.from({ length: count }, (_, i) => {
      const n = from + i;
      const country = COUNTRIES[n % 4]!;
      return {
        value: framed(
          1,
          events.toBuffer({
            id: (n * 7_919) % 1_000,
            place: country === null ? null : { country },
            at: n * HOUR_US,
          }),
        ),
      };
    }),
  );
}

const alter = (topic: Topic, changes: Readonly<Record<string, string | null>>) =>
  bench.directory.alterConfig(topic.topicId, changes);

async function until(what: () => Promise<boolean>): Promise<void> {
  while (!(await what())) await bench.clock.sleep(5);
}

const staged = () => until(async () => (await bench.tables.status('events')).stagedBytes > 0);

async function files(): Promise<{ metadata: TableMetadata; files: DataFile[] }> {
  const metadata = await bench.load('events');
  return { metadata, files: await liveFiles(bench.warehouse, metadata) };
}

async function ids(): Promise<number[]> {
  const rows = await readRows(bench.warehouse, await bench.load('events'));
  return rows.map((row) => Number(row['id'])).toSorted((a, b) => a - b);
}

const expectedIds = (count: number) =>
  Array.from({ length: count }, (_, n) => (n * 7_919) % 1_000).toSorted((a, b) => a - b);

test('T8: a spec that changes under staged rows: they land with theirs, one manifest per spec', async () => {
  const topic = await topicOf({ 'table.topic.partition.by': '[place.country]' });
  produce(topic, 0, 40);
  await staged();
  await alter(topic, { 'table.topic.partition.by': '[day(at), bucket(id, 4), truncate(id, 100)]' });
  produce(topic, 40, 40);
  await bench.tables.commit('events');
  const first = await files();
  expect(first.metadata['partition-specs'].map((spec) => spec['spec-id'])).toEqual([0, 1]);
  expect(first.metadata['default-spec-id']).toBe(1);
  expect(new Set(first.files.map((file) => file.specId))).toEqual(new Set([0, 1]));
  const ofFirstSpec = first.files.filter((file) => file.specId === 0);
  expect(ofFirstSpec.map((file) => file.partition[0]).toSorted()).toEqual(['dk', 'no', null, 'se']);
  const snapshot = first.metadata.snapshots!.at(-1);
  const manifests = await manifestsOf(bench.warehouse, snapshot);
  expect(manifests.map((manifest) => manifest.partitionSpecId).toSorted()).toEqual([0, 1]);
  expect(await ids()).toEqual(expectedIds(80));
  // Back to the first: the spec that is there is used again. Then none, then a void field.
  for (const [partitionBy, specId] of [
    ['[place.country]', 0],
    ['[]', 2],
    ['[void(place.country), year(at), month(at)]', 3],
  ] as const) {
    await alter(topic, { 'table.topic.partition.by': partitionBy });
    produce(topic, 80, 4);
    await bench.tables.commit('events');
    const after = await files();
    expect(after.metadata['default-spec-id'], partitionBy).toBe(specId);
    expect(after.files.some((file) => file.specId === specId)).toBe(true);
  }
  // Field ids of equal fields stay over specs; the void one reads null.
  const { metadata, files: all } = await files();
  const fieldIds = metadata['partition-specs'].flatMap((spec) =>
    spec.fields.map((field) => [field['field-id'], `${field['source-id']} ${field.transform}`]),
  );
  expect(new Map(fieldIds.map(([id, text]) => [text, id])).size).toBe(
    new Set(fieldIds.map(([id]) => id)).size,
  );
  expect(all.filter((file) => file.specId === 3).every((file) => file.partition[0] === null)).toBe(
    true,
  );
});

/** `id` of a file's rows in the file's order. */
async function idsOf(file: DataFile): Promise<number[]> {
  const { parquetReadObjects } = await import('hyparquet');
  const { zstdDecompressSync } = await import('node:zlib');
  const bytes = await bench.warehouse.read(file.filePath);
  const rows = await parquetReadObjects({
    file: bytes.slice().buffer as ArrayBuffer,
    compressors: { ZSTD: (input: Uint8Array) => zstdDecompressSync(input) },
  });
  return rows.map((row) => Number(row['id']));
}

test('a sort order sorts each file and says so; a new one leaves the old files theirs', async () => {
  const topic = await topicOf({
    'table.topic.sort.by': '[id desc]',
    'table.topic.partition.by': '[place.country]',
  });
  produce(topic, 0, 200);
  await bench.tables.commit('events');
  const first = await files();
  expect(first.files).toHaveLength(4);
  for (const file of first.files) {
    expect(file.sortOrderId).toBe(1);
    const found = await idsOf(file);
    expect(found).toEqual(found.toSorted((a, b) => b - a));
    const bytes = await bench.warehouse.read(file.filePath);
    const footer = parquetMetadata(bytes.slice().buffer as ArrayBuffer);
    expect(footer.row_groups[0]!.sorting_columns).toEqual([
      { column_idx: 0, descending: true, nulls_first: false },
    ]);
  }
  await alter(topic, { 'table.topic.sort.by': '[bucket(id, 3), id asc nulls last]' });
  produce(topic, 200, 50);
  await bench.tables.commit('events');
  const second = await files();
  expect(second.metadata['sort-orders'].map((order) => order['order-id'])).toEqual([1, 2]);
  expect(second.metadata['default-sort-order-id']).toBe(2);
  expect(second.files.filter((file) => file.sortOrderId === 2)).toHaveLength(4);
  await alter(topic, { 'table.topic.sort.by': null });
  produce(topic, 250, 50);
  await bench.tables.commit('events');
  const third = await files();
  expect(third.metadata['default-sort-order-id']).toBe(0);
  expect(third.files.filter((file) => file.sortOrderId === undefined)).toHaveLength(4);
  expect(await ids()).toEqual(expectedIds(300));
});

test('format version 3: rows get their numbers; a table of version 2 is upgraded, and none goes back', async () => {
  const topic = await topicOf({});
  produce(topic, 0, 10);
  await bench.tables.commit('events');
  expect((await bench.load('events'))['format-version']).toBe(2);
  await alter(topic, { 'table.topic.format.version': '3' });
  produce(topic, 10, 10);
  await bench.tables.commit('events');
  const upgraded = await bench.load('events');
  expect(upgraded['format-version']).toBe(3);
  // The ten rows from before are numbered with the first snapshot after the upgrade.
  expect(upgraded['next-row-id']).toBe(20);
  expect(upgraded.snapshots!.at(-1)).toMatchObject({ 'first-row-id': 0, 'added-rows': 20 });
  produce(topic, 20, 5);
  await bench.tables.commit('events');
  expect((await bench.load('events'))['next-row-id']).toBe(25);
  const firstRowIds = (await liveFiles(bench.warehouse, await bench.load('events')))
    .map((file) => file.firstRowId!)
    .toSorted((a, b) => a - b);
  expect(new Set(firstRowIds).size).toBe(3);
  expect(firstRowIds.at(-1)).toBe(20);
});

test('properties follow the config: set, changed, taken back; those of others stay', async () => {
  const at = (name: string) => `table.topic.properties.${name}`;
  const topic = await topicOf({
    [at('write.parquet.compression-codec')]: 'gzip',
    [at('write.metadata.previous-versions-max')]: '7',
    [at('team')]: 'ice',
  });
  produce(topic, 0, 300);
  await bench.tables.commit('events');
  const codecs = async () => {
    const found = new Set<string>();
    for (const file of (await files()).files) {
      const bytes = await bench.warehouse.read(file.filePath);
      for (const group of parquetMetadata(bytes.slice().buffer as ArrayBuffer).row_groups) {
        for (const chunk of group.columns) found.add(chunk.meta_data!.codec);
      }
    }
    return found;
  };
  expect(await codecs()).toContain('GZIP');
  const { identifier, metadata } = await bench.catalog.loadTable({
    namespace: ['kafka'],
    name: 'events',
  });
  expect(metadata.properties).toMatchObject({
    team: 'ice',
    'write.metadata.previous-versions-max': '7',
  });
  await bench.catalog.commitTable(identifier, {
    requirements: [],
    updates: [{ action: 'set-properties', updates: { stranger: 'yes' } }],
  });
  await alter(topic, {
    [at('write.parquet.compression-codec')]: 'snappy',
    [at('write.metadata.previous-versions-max')]: null,
    [at('team')]: null,
  });
  produce(topic, 300, 300);
  await bench.tables.commit('events');
  const { properties = {} } = await bench.load('events');
  expect(properties).toMatchObject({
    stranger: 'yes',
    'write.metadata.previous-versions-max': '100',
    [CONFIGURED_PROPERTY]: '["write.parquet.compression-codec"]',
  });
  expect(properties).not.toHaveProperty('team');
  expect(await codecs()).toContain('SNAPPY');
  await alter(topic, { [at('write.parquet.compression-codec')]: null });
  produce(topic, 600, 1);
  await bench.tables.commit('events');
  const after = (await bench.load('events')).properties!;
  expect(after['write.parquet.compression-codec']).toBe('zstd');
  expect(after).not.toHaveProperty(CONFIGURED_PROPERTY);
});

test('row groups and files are cut at the sizes that the table asks for', async () => {
  const at = (name: string) => `table.topic.properties.write.${name}`;
  const topic = await topicOf({
    [at('target-file-size-bytes')]: '20000',
    [at('parquet.row-group-size-bytes')]: '15000',
    'table.topic.sort.by': '[id]',
  });
  produce(topic, 0, 5_000);
  await bench.tables.commit('events');
  const cut = (await files()).files;
  expect(cut.length).toBeGreaterThan(2);
  expect(cut.some((file) => file.splitOffsets!.length > 1)).toBe(true);
  for (const file of cut) expect(file.fileSizeInBytes).toBeLessThan(30_000);
  expect(cut.reduce((sum, file) => sum + file.recordCount, 0)).toBe(5_000);
  expect(await ids()).toEqual(expectedIds(5_000));
  // One job's rows are sorted over its files.
  const all: number[] = [];
  for (const file of cut.toSorted((a, b) =>
    a.filePath.localeCompare(b.filePath, 'en', { numeric: true }),
  )) {
    all.push(...(await idsOf(file)));
  }
  expect(all).toEqual(all.toSorted((a, b) => a - b));
});

test('a spec or order that doesn’t fit suspends the table with the reason, and is cured by another', async () => {
  const topic = await topicOf({});
  produce(topic, 0, 5);
  await bench.tables.commit('events');
  for (const [name, value, reason] of [
    ['table.topic.partition.by', '[hour(id)]', /hour can't take "id", a long/],
    ['table.topic.sort.by', '[nothing]', /no column "nothing"/],
    ['table.topic.sort.by', '[place]', /identity can't take "place", a struct/],
  ] as const) {
    await alter(topic, { [name]: value });
    await until(async () => (await bench.tables.status('events')).state === 'suspended');
    expect((await bench.tables.status('events')).reason).toMatch(reason);
    await alter(topic, { [name]: null });
    await until(async () => (await bench.tables.status('events')).state === 'running');
  }
});

test('what another engine made of the layout stays until the config changes; an adopted table keeps its own', async () => {
  const topic = await topicOf({ 'table.topic.partition.by': '[place.country]' });
  produce(topic, 0, 5);
  await bench.tables.commit('events');
  const { identifier, metadata } = await bench.catalog.loadTable({
    namespace: ['kafka'],
    name: 'events',
  });
  const id = metadata.schemas.at(-1)!.fields.find((field) => field.name === 'id')!.id;
  const order = {
    'order-id': 1,
    fields: [
      { transform: 'identity', 'source-id': id, direction: 'asc', 'null-order': 'nulls-first' },
    ],
  };
  await bench.catalog.commitTable(identifier, {
    requirements: [],
    updates: [
      { action: 'add-spec', spec: { 'spec-id': 1, fields: [] } },
      { action: 'set-default-spec', 'spec-id': -1 },
      { action: 'add-sort-order', 'sort-order': order },
      { action: 'set-default-sort-order', 'sort-order-id': -1 },
    ],
  });
  // Another config of the topic, so the table is opened anew.
  await alter(topic, { 'table.topic.commit.interval.ms': '800000' });
  produce(topic, 5, 20);
  await bench.tables.commit('events');
  const after = await files();
  expect(after.metadata['default-spec-id']).toBe(1);
  expect(after.metadata['default-sort-order-id']).toBe(1);
  const last = after.files.find((file) => file.specId === 1)!;
  expect(last.sortOrderId).toBe(1);
  expect(await idsOf(last)).toEqual((await idsOf(last)).toSorted((a, b) => a - b));
  await alter(topic, { 'table.topic.partition.by': '[year(at)]' });
  produce(topic, 25, 5);
  await bench.tables.commit('events');
  expect((await files()).metadata['default-spec-id']).toBe(2);
});

test('nanoseconds on version 3, and microseconds by floor without', async () => {
  const nanosSchema = {
    type: 'record',
    name: 'N',
    fields: [{ name: 'at', type: { type: 'long', logicalType: 'timestamp-nanos' } }],
  };
  const type = avsc.Type.forSchema({
    type: 'record',
    name: 'N',
    fields: [{ name: 'at', type: 'long' }],
  });
  for (const [name, config, columnType] of [
    [
      'fine',
      { 'table.topic.types.nanos': 'true', 'table.topic.format.version': '3' },
      'timestamptz_ns',
    ],
    ['coarse', { 'table.topic.format.version': '3' }, 'timestamptz'],
  ] as const) {
    const id = await bench.schemas.register(`${name}-value`, JSON.stringify(nanosSchema));
    const topic = await bench.topic(name, {
      ...config,
      'table.topic.partition.by': '[hour(at)]',
      'table.topic.sort.by': '[at desc]',
    });
    bench.produce(topic, [
      { value: framed(id, type.toBuffer({ at: 1_500 })) },
      { value: framed(id, type.toBuffer({ at: -1 })) },
    ]);
    await bench.tables.commit(name);
    const metadata = await bench.load(name);
    expect(metadata.schemas.at(-1)!.fields[0]).toMatchObject({ name: 'at', type: columnType });
    const [first, second] = await liveFiles(bench.warehouse, metadata);
    expect([first!.partition, second!.partition].toSorted()).toEqual([[-1], [0]]);
  }
});
