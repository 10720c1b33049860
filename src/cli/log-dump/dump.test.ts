// What a dump tells of each kind of object: unsealed, sealed, compacted; torn ends, damage, what is no object at all.
import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { resolveSettings } from '../../base/settings.ts';
import { Compression } from '../../protocol/codecs.ts';
import { Compactor } from '../../storage/log/compactor.ts';
import { testItem } from '../../storage/log/test-items.ts';
import { TEST_CLUSTER, TestLog, toItem } from '../../storage/log/test-log.ts';
import { askSqlite } from '../fsck/metadata.ts';
import { serverSettings } from '../settings.ts';
import { type BatchLine, type DumpLine, dump } from './dump.ts';
import { findObject, metadataOf } from './find.ts';
import { printed } from './print.ts';

const settings = resolveSettings(serverSettings, {});
let log: TestLog;
let first: number;
let second: number;
beforeEach(async () => {
  log = await TestLog.open();
  [first, second] = (await log.createTopic(2, 'orders')) as [number, number];
});
afterEach(() => log.stop());

/** Two batches of the first partition, one of the second. */
async function write(): Promise<void> {
  await log.appendItems([
    toItem({ partitionId: first, records: records(3) }),
    toItem({ partitionId: second, records: records(1), compression: Compression.LZ4 }),
    toItem({ partitionId: first, records: records(2) }),
  ]);
}

const records = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ key: `k${n}`, value: 'v', timestamp: 1_000 + n }));

const keys = () =>
  log.metadata.database
    .prepare('SELECT key FROM log_objects ORDER BY object_id')
    .all()
    .map(({ key }) => key as string);

interface Asked {
  readonly key?: string;
  /** Default: the log's. */
  readonly metadata?: 'none';
  readonly records?: boolean;
}

async function lines({ key = keys().at(-1)!, ...asked }: Asked = {}): Promise<DumpLine[]> {
  const path = join(log.root, key);
  const place = { dataDir: log.root, metadata: undefined, storage: undefined, settings };
  const found = await findObject({ ...place, object: path, metadataNamed: false });
  const metadata =
    asked.metadata === 'none' ? undefined : metadataOf(askSqlite(log.metadata.database), key);
  try {
    const all: DumpLine[] = [];
    const options = { ...found, metadata, records: asked.records ?? false };
    for await (const line of dump(options)) all.push(line);
    return all;
  } finally {
    await found.close();
  }
}

const offsets = (found: readonly DumpLine[]) =>
  found
    .filter((line): line is BatchLine => line.kind === 'batch')
    .map(({ topic, partition, baseOffset, lastOffset, crc }) =>
      [topic, partition, baseOffset, lastOffset, crc].join(' '),
    );

const others = (found: readonly DumpLine[]) =>
  found.flatMap((line) =>
    line.kind === 'damage' || line.kind === 'tail' ? [`${line.kind}: ${line.text}`] : [],
  );

function change(key: string, position: number, bytes: Uint8Array): void {
  const content = readFileSync(join(log.root, key));
  content.set(bytes, position);
  writeFileSync(join(log.root, key), content);
}

test('an unsealed file: offsets from the metadata, zeros behind the last flush', async () => {
  await write();
  await write();
  const found = await lines();
  expect(found[0]).toMatchObject({
    kind: 'object',
    generation: 1,
    state: 'open',
    offsets: 'metadata',
  });
  expect(offsets(found)).toEqual([
    'orders 0 0 2 ok',
    'orders 0 3 4 ok',
    'orders 1 0 0 ok',
    'orders 0 5 7 ok',
    'orders 0 8 9 ok',
    'orders 1 1 1 ok',
  ]);
  expect(found[1]).toEqual({
    kind: 'batch',
    partitionId: first,
    topic: 'orders',
    partition: 0,
    position: 64,
    length: expect.any(Number),
    baseOffset: 0,
    lastOffset: 2,
    records: 3,
    maxTimestamp: 1_002,
    producerId: -1,
    producerEpoch: -1,
    baseSequence: -1,
    transactional: false,
    control: false,
    compression: 'none',
    crc: 'ok',
    indexed: true,
  });
  expect(found[3]).toMatchObject({ compression: 'lz4' });
  expect(others(found)).toEqual(['tail: zeros: room for what comes']);
});

test('without metadata: batches all the same, offsets not known', async () => {
  await write();
  const found = await lines({ metadata: 'none' });
  expect(found[0]).toMatchObject({ offsets: 'unknown', state: null });
  expect(found[0]).toMatchObject({ note: expect.stringContaining('--data-dir or --metadata') });
  expect(offsets(found)).toEqual(['    ok', '    ok', '    ok']);
  expect(found[1]).toMatchObject({ partitionId: first, baseOffset: null, indexed: null });
});

test('a sealed file and a compacted object explain themselves', async () => {
  await write();
  await log.seal();
  const sealed = await lines({ metadata: 'none' });
  expect(sealed[0]).toMatchObject({ offsets: 'footer' });
  const expected = ['  0 2 ok', '  3 4 ok', '  0 0 ok'];
  expect(offsets(sealed)).toEqual(expected);
  expect(others(sealed)).toEqual([]);
  const limits = {
    smallRunBytes: 16_384,
    gapBytes: 1_024,
    smallShareBytes: 65_536,
    fanIn: 2,
    objectBytes: 262_144,
    minAgeMs: 0,
  };
  await write();
  await log.seal();
  const compactor = new Compactor({
    clusterId: TEST_CLUSTER,
    store: log.store,
    source: log.source,
    metadata: log.metadata,
    limits,
    blockBytes: 65_536,
    clock: log.clock,
    ids: log.ids,
    logger: silentLogger,
    metrics: noMetrics,
    onReplaced: (ids) => log.reader.replaced(ids),
  });
  while ((await compactor.step()) > 0);
  expect(keys().at(-1)).toContain('/stream/');
  const stream = await lines();
  expect(stream[0]).toMatchObject({ generation: 0, state: 'sealed', offsets: 'footer' });
  expect(offsets(stream)).toEqual([
    'orders 0 0 2 ok',
    'orders 0 3 4 ok',
    'orders 0 5 7 ok',
    'orders 0 8 9 ok',
    'orders 1 0 0 ok',
    'orders 1 1 1 ok',
  ]);
  expect(others(stream)).toEqual([]);
});

test('producers, transactions, and a batch that was there already', async () => {
  const once = { partitionId: first, producerId: 7, epoch: 2, sequence: 0, records: 2 };
  await log.appendItems([testItem(once)]);
  await log.appendItems([testItem(once), testItem({ ...once, sequence: 2 })]);
  const ended = { committed: false, producerId: 7, markerEpoch: 3, startMs: 0, offsets: new Map() };
  log.metadata.log.endTransactionsNow([{ ...ended, partitions: new Set([second]) }], 5_000);
  const found = await lines();
  expect(offsets(found)).toEqual(['orders 0 0 1 ok', 'orders 0   ok', 'orders 0 2 3 ok']);
  expect(found[2]).toMatchObject({
    indexed: false,
    producerId: 7,
    producerEpoch: 2,
    baseSequence: 0,
  });
  expect(found.at(-1)).toEqual({
    kind: 'marker',
    partitionId: second,
    topic: 'orders',
    partition: 1,
    offset: 0,
    committed: false,
    producerId: 7,
    producerEpoch: 3,
    timestampMs: 5_000,
  });
});

test('a torn end is told and no damage, whether offsets are known or not', async () => {
  await write();
  const key = keys().at(-1)!;
  const committed = await lines();
  const last = committed.filter((line) => line.kind === 'batch').at(-1)!;
  // A flush whose first page came to the disk, no other.
  const torn = readFileSync(join(log.root, key)).subarray(0, 300);
  truncateSync(join(log.root, key), 4_096);
  appendFileSync(join(log.root, key), torn);
  expect(others(await lines())).toEqual([
    'tail: no block: a flush that never ended, or remains of the use before',
  ]);
  truncateSync(join(log.root, key), last.position + last.length - 1);
  expect(others(await lines({ metadata: 'none' }))).toEqual([
    expect.stringMatching(/^tail: the last 1 bytes are lacking/),
  ]);
  // Here it is known that the batch was committed.
  expect(others(await lines())).toEqual([expect.stringMatching(/^damage: the last 1 bytes/)]);
});

test('a whole flush behind the last one that was committed', async () => {
  await write();
  const [key] = keys();
  await write();
  log.metadata.database.prepare('DELETE FROM flushes WHERE commit_number = 2').run();
  const found = await lines({ key: key! });
  expect(offsets(found).slice(2)).toEqual([
    'orders 1 0 0 ok',
    'orders 0   ok',
    'orders 0   ok',
    'orders 1   ok',
  ]);
  expect(found[4]).toMatchObject({ indexed: null });
  expect(others(found)).toEqual(['tail: zeros: room for what comes']);
});

test('damage is named by its place: a batch, a header, a footer', async () => {
  await write();
  await write();
  const key = keys().at(-1)!;
  const batches = (await lines()).filter((line): line is BatchLine => line.kind === 'batch');
  change(key, batches[0]!.position + 70, Uint8Array.of(0xee));
  const flipped = await lines();
  expect(offsets(flipped).slice(0, 3)).toEqual([
    'orders 0 0 2 wrong',
    'orders 0   ok',
    'orders 1 0 0 ok',
  ]);
  expect(others(flipped)).toEqual([
    'damage: record batches that fail their CRC, in the block at 0',
    'tail: zeros: room for what comes',
  ]);
  expect(others(await lines({ metadata: 'none' }))).toEqual([
    'damage: record batches that fail their CRC, in the block at 0',
    'tail: zeros: room for what comes',
  ]);
  change(key, 30, Uint8Array.of(0xee));
  const headless = await lines();
  expect(others(headless)[0]).toBe('damage: no block of the log, though blocks follow');
  expect(offsets(headless)).toHaveLength(4);
  await log.seal();
  change(key, readFileSync(join(log.root, key)).length - 40, Uint8Array.of(0xee));
  expect(others(await lines())[0]).toBe('damage: the footer of a log object is damaged');
});

test('what is no object of the log', async () => {
  const foreign = join(log.root, 'foreign');
  const place = { dataDir: log.root, metadata: undefined, storage: undefined, settings };
  const read = async () => {
    const found = await findObject({ ...place, object: foreign, metadataNamed: false });
    for await (const line of dump({ ...found, records: false })) void line;
    await found.close();
  };
  writeFileSync(
    foreign,
    'something else, and more than a header of a block takes, so that it is read',
  );
  await expect(read()).rejects.toThrow(/foreign: \d+ bytes without a block of the log/);
  const folder = findObject({ ...place, object: log.root, metadataNamed: false });
  await expect(folder).rejects.toThrow(/is no file: name an object of the log/);
  const missing = findObject({ ...place, object: 'x/wal/1.wal', metadataNamed: false });
  await expect(missing).rejects.toThrow(/neither a file x\/wal\/1.wal here nor an object/);
  const unknown = findObject({ ...place, object: foreign, metadataNamed: true });
  await expect(unknown).rejects.toThrow(/holds no metadata.db/);
});

test('records are printed as text or bytes, cut, and never obeyed by a terminal', async () => {
  await log.append([
    {
      partitionId: first,
      compression: Compression.ZSTD,
      records: [
        {
          key: Buffer.from([0xff, 0x00, 0x01]),
          value: `\u001b[31m${'ä'.repeat(40)}`,
          timestamp: 1_700_000_000_000,
          headers: [['h\n', Buffer.from('w')]],
        },
        { key: null, value: null, timestamp: -1 },
      ],
    },
  ]);
  const found = await lines({ records: true });
  const textOf = async (format: 'table' | 'json') => {
    let text = '';
    async function* given() {
      yield* found.filter((line) => line.kind !== 'object');
    }
    for await (const piece of printed(given(), { format, maxBytes: 16 })) text += piece;
    return text.split('\n').slice(0, -1);
  };
  const table = await textOf('table');
  expect(table[0]).toMatch(
    /^partition +bytes +offsets +records +max timestamp +producer +flags +crc$/,
  );
  expect(table[1]).toMatch(
    /^orders 0 \(id 1\) +64–\d+ +0–1 +2 +2023-11-14T22:13:20.000Z +zstd +ok$/,
  );
  expect(table[2]).toBe(
    '  0  2023-11-14T22:13:20.000Z  key 0xff0001, value "\\u001b[31määäää"… (85 bytes), headers "h\\n"="w"',
  );
  expect(table[3]).toBe('  1  -1  key null, value null');
  const json = (await textOf('json')).map((line) => JSON.parse(line));
  expect(json[1]).toEqual({
    kind: 'record',
    offset: 0,
    timestamp: 1_700_000_000_000,
    key: { bytes: 3, base64: '/wAB' },
    value: { bytes: 85, text: '\u001b[31määäää' },
    headers: [{ name: 'h\n', value: { bytes: 1, text: 'w' } }],
  });
});
