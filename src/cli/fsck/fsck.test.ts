// The check on a real log: one that is well, in each of its states, and each kind of damage by its name and place.
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { Compactor } from '../../storage/log/compactor.ts';
import { TEST_CLUSTER, TestLog } from '../../storage/log/test-log.ts';
import { streamKey, walKey } from '../../storage/paths.ts';
import type { Finding } from '../doctor/finding.ts';
import { serverSettings } from '../settings.ts';
import { fsckOpen } from './fsck.ts';
import { askSqlite } from './metadata.ts';

const KIB = 1024;
const settings = resolveSettings(serverSettings, {});

let log: TestLog;
let orders: readonly number[];
let others: readonly number[];

/** A sealed object, an unsealed one, two topics. */
beforeEach(async () => {
  log = await TestLog.open({ fileBytes: 1024 * KIB });
  orders = await log.createTopic(2, 'orders');
  others = await log.createTopic(1, 'others');
  await write(20);
  await log.seal();
  await write(10);
});
afterEach(() => log.stop());

async function write(flushes: number): Promise<void> {
  for (let n = 0; n < flushes; n += 1)
    await log.append(
      [...orders, ...others].map((partitionId) => ({
        partitionId,
        records: [
          { key: `${n}`, value: Buffer.alloc(500, n), timestamp: n },
          { key: 'x', value: null, timestamp: n },
        ],
      })),
    );
}

async function compact(): Promise<void> {
  const compactor = new Compactor({
    clusterId: TEST_CLUSTER,
    store: log.store,
    source: log.source,
    metadata: log.metadata,
    limits: {
      smallRunBytes: 16 * KIB,
      gapBytes: KIB,
      smallShareBytes: 64 * KIB,
      fanIn: 4,
      objectBytes: 256 * KIB,
      minAgeMs: 0,
    },
    blockBytes: 64 * KIB,
    clock: log.clock,
    ids: log.ids,
    logger: silentLogger,
    metrics: noMetrics,
    onReplaced: (objectIds) => log.reader.replaced(objectIds),
  });
  while ((await compactor.step()) > 0);
}

function check(
  more: { readonly samplePercent?: number; readonly topic?: string } = {},
  onPause: () => void = () => {},
): Promise<readonly Finding[]> {
  return fsckOpen({
    asked: askSqlite(log.metadata.database),
    store: log.store,
    clusterId: TEST_CLUSTER,
    settings,
    samplePercent: 100,
    prng: seededPrng(1),
    pause: async () => onPause(),
    ...more,
  });
}

const wrongs = (findings: readonly Finding[]) =>
  findings.filter(({ severity }) => severity !== 'ok').map(({ what, value }) => [what, value]);

const said = (findings: readonly Finding[], what: string) =>
  findings.find((finding) => finding.what === what)?.value;

const run = (sql: string) => log.metadata.database.prepare(sql).run();

function keys(state: string): string[] {
  return log.metadata.database
    .prepare(
      `SELECT key FROM log_objects o WHERE state = ? AND (state = 'open' OR EXISTS
        (SELECT 1 FROM object_entries e WHERE e.object_id = o.object_id)) ORDER BY object_id`,
    )
    .all(state)
    .map(({ key }) => key as string);
}

const pathOf = (key: string) => join(log.root, key);

/** In the middle of the object. */
function flipBit(key: string, at: number): void {
  const bytes = readFileSync(pathOf(key));
  bytes[at]! ^= 1;
  writeFileSync(pathOf(key), bytes);
}

test('a log that is well: sealed, unsealed, compacted, expired, emptied', async () => {
  const first = await check();
  expect(wrongs(first)).toEqual([]);
  expect(said(first, 'entries')).toBe('tile the logs of 3 partitions');
  expect(said(first, 'sample')).toMatch(/^100 %: 90 blocks, 90 batches, \d+ bytes/);
  await log.seal();
  await compact();
  expect(keys('sealed').some((key) => key.includes('/stream/'))).toBe(true);
  const compacted = await check();
  expect(wrongs(compacted)).toEqual([]);
  expect(said(compacted, 'sample')).toMatch(/blocks, 90 batches/);
  await log.metadata.log.deleteRecords(orders[0]!, 7);
  await log.metadata.log.deleteRecords(orders[1]!, -1);
  await write(1);
  expect(wrongs(await check())).toEqual([]);
  await log.metadata.objects.dropExpired(100);
  expect(wrongs(await check())).toEqual([]);
});

test('a topic by itself; parts of the bytes; none of them', async () => {
  const ofTopic = await check({ topic: 'others' });
  expect(said(ofTopic, 'entries')).toBe('tile the logs of 1 partitions');
  expect(said(ofTopic, 'sample')).toMatch(/^100 %: 30 blocks, 30 batches/);
  expect(said(ofTopic, 'orphans')).toBeUndefined();
  await expect(check({ topic: 'nobody' })).rejects.toThrow(
    '--topic nobody: there is no such topic',
  );
  const [, blocks] = /^50 %: (\d+) blocks/.exec(
    said(await check({ samplePercent: 50 }), 'sample')!,
  )!;
  expect(Number(blocks)).toBeGreaterThan(20);
  expect(Number(blocks)).toBeLessThan(70);
  log.gets.length = 0;
  expect(said(await check({ samplePercent: 0 }), 'sample')).toBeUndefined();
  expect(log.gets).toEqual([]);
});

test('a flipped bit is named by object, place and offsets, in every kind of object', async () => {
  const [sealed] = keys('sealed');
  const [open] = keys('open');
  flipBit(sealed!, 64 + 200);
  flipBit(open!, 64 + 200);
  const found = wrongs(await check());
  expect(found).toEqual([
    [
      'damaged',
      `${sealed}: has a record batch that fails its CRC at 64, in partition id ${orders[0]}, offsets 0 to 1`,
    ],
    [
      'damaged',
      `${open}: has a record batch that fails its CRC at 64, in partition id ${orders[0]}, offsets 40 to 41`,
    ],
  ]);
  expect(wrongs(await check({ samplePercent: 0 }))).toEqual([]);
});

test('headers of blocks and footers that are damaged', async () => {
  const [sealed] = keys('sealed');
  const [open] = keys('open');
  flipBit(open!, 30);
  flipBit(sealed!, readFileSync(pathOf(sealed!)).length - 40);
  expect(wrongs(await check())).toEqual([
    ['damaged', `${sealed}: the footer of a log object is damaged`],
    [
      'damaged',
      `${open}: has no block of partition ${orders[0]} at 0, in partition id ${orders[0]}, offsets 40 to 41`,
    ],
  ]);
});

test('objects that are missing or short', async () => {
  const [sealed] = keys('sealed');
  const [open] = keys('open');
  rmSync(pathOf(sealed!));
  truncateSync(pathOf(open!), 5_000);
  const found = wrongs(await check({ samplePercent: 0 }));
  expect(found[0]).toEqual(['missing', `${sealed}: missing`]);
  expect(found[1]![0]).toBe('missing');
  expect(found[1]![1]).toMatch(/\.wal: 5000 bytes of \d+$/);
  expect(found).toHaveLength(2);
});

test('what was taken meanwhile is no finding', async () => {
  const [sealed] = keys('sealed');
  rmSync(pathOf(sealed!));
  const forget = () => {
    run(
      `DELETE FROM object_entries WHERE object_id = (SELECT object_id FROM log_objects WHERE key = '${sealed}')`,
    );
    run('UPDATE log_partitions SET log_start = 40');
  };
  expect(wrongs(await check({}, forget))).toEqual([]);
});

test('holes, double offsets and lost ends among entries', async () => {
  await log.seal();
  const last = orders.at(-1)!;
  run(`DELETE FROM object_entries WHERE partition_id = ${orders[0]} AND base_offset = 0`);
  run(
    `UPDATE object_entries SET base_offset = 38 WHERE partition_id = ${last} AND base_offset = 40`,
  );
  run(`DELETE FROM object_entries WHERE partition_id = ${others[0]} AND base_offset = 40`);
  log.metadata.log.checkpoint(100);
  expect(wrongs(await check({ samplePercent: 0 }))).toEqual([
    ['entries', `orders 0 (partition id ${orders[0]}): nothing holds offsets 0 to 39`],
    ['entries', `orders 1 (partition id ${last}): offsets from 38 on are held twice, up to 39`],
    ['entries', `others 0 (partition id ${others[0]}): nothing holds offsets 40 to 59`],
  ]);
});

test('a row that says otherwise than the index it points at', async () => {
  run(`UPDATE object_entries SET bytes = bytes + 1 WHERE partition_id = ${orders[0]}`);
  run(`UPDATE object_entries SET end_offset = 39 WHERE partition_id = ${orders[1]}`);
  const found = wrongs(await check());
  expect(found.map(([what]) => what)).toEqual(['entries', 'index', 'index']);
  expect(found[1]![1]).toMatch(/offsets 0 to 39, counts \d+ bytes, its entries \d+$/);
  expect(found[2]![1]).toMatch(/offsets 0 to 38, ends at 39, its entries at 38$/);
});

test('an object that is being deleted while rows refer to it', async () => {
  run("UPDATE log_objects SET state = 'deleting' WHERE state = 'sealed'");
  const found = wrongs(await check());
  expect(found).toHaveLength(3);
  expect(found[0]![1]).toMatch(
    /orders 0 .*: offsets from 0 on lie in object 1, which is deleting$/,
  );
});

test('orphans: young ones are work under way, old ones are told', async () => {
  const nowMs = Date.now();
  const young = walKey(TEST_CLUSTER, { timeMs: nowMs - 60_000, id: 'young' });
  await log.store.put(young, new Uint8Array(10));
  const findings = await check();
  expect(wrongs(findings)).toEqual([]);
  expect(said(findings, 'orphans')).toBe('1, 10 bytes, the oldest of 1 min: younger than 60 min');
  const old = streamKey(TEST_CLUSTER, { timeMs: nowMs - 7_200_000, id: 'old' });
  await log.store.put(old, new Uint8Array(20));
  const found = (await check()).filter(({ severity }) => severity !== 'ok');
  expect(found).toMatchObject([
    { severity: 'warning', value: `1 above 60 min, 20 bytes, the oldest of 120 min: ${old}` },
  ]);
});

test('a table ahead of its log is told, one that is ahead of a lagging row is not', async () => {
  const [topic] = await log.metadata.topics.list();
  const { topicId, name } = topic!;
  await log.metadata.tables.claim({
    topicId,
    topicName: name,
    namespace: ['kafka'],
    table: name,
  });
  const position = (end: number) =>
    run(`INSERT OR REPLACE INTO table_positions VALUES ('${topicId}', 0, ${end}, ${end})`);
  const ahead = async () =>
    wrongs(await check({ samplePercent: 0 })).filter(([what]) => what === 'table ahead');
  position(60);
  expect(await ahead()).toEqual([]);
  position(61);
  expect(await ahead()).toEqual([
    [
      'table ahead',
      `orders 0 (partition id ${orders[0]}): the table has offsets below 61, the log ends at 60`,
    ],
  ]);
});
