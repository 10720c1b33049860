// The same check on PostgreSQL and a store of single flushes: well as it is written and once it is compacted, where ends of
// logs are exact; then a hole, an end that nothing reaches, an object that is gone.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ManualClock, systemClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng, uuidToBytes } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { groupByPartition } from '../../metadata/batch-columns.ts';
import { openPostgresMetadata } from '../../metadata/postgres/index.ts';
import { startPostgres, type TestServer } from '../../metadata/postgres/testing.ts';
import { objectSource } from '../../storage/log/byte-source.ts';
import { Compactor } from '../../storage/log/compactor.ts';
import { layoutFlush } from '../../storage/log/layout.ts';
import { TEST_CLUSTER, TestLog, toItem } from '../../storage/log/test-log.ts';
import { clusterTag } from '../../storage/log/wal-format.ts';
import { MemoryObjectStore } from '../../storage/objects/memory.ts';
import { walKey } from '../../storage/paths.ts';
import { serverSettings } from '../settings.ts';
import { fsckOpen } from './fsck.ts';
import { askPostgres } from './metadata.ts';

const settings = resolveSettings(serverSettings, {});
const ids = seededIds(seededPrng(1));
let server: TestServer;
/** Lays batches out, nothing else. */
let layout: TestLog;
beforeAll(async () => {
  server = await startPostgres();
  layout = await TestLog.open();
}, 60_000);
afterAll(async () => {
  await layout?.stop();
  await server?.stop();
});

async function newCluster() {
  const url = await server.empty();
  const options = { url, clock: systemClock, prng: seededPrng(1), settings };
  const metadata = await openPostgresMetadata({
    ...options,
    applicationName: 'test',
    unsafeServer: true,
  });
  await metadata.cluster.keepClusterId(TEST_CLUSTER);
  const topic = { topicId: ids.uuid(), name: 'orders', partitionCount: 2, config: {}, nowMs: 1 };
  const { partitions } = await metadata.topics.create(topic);
  const store = new MemoryObjectStore(new ManualClock());
  const flush = async () => {
    const item = (partitionId: number) =>
      toItem({ partitionId, records: [{ key: 'k', value: 'v', timestamp: 5 }] });
    const { batches, slab } = layout.lay(partitions.map(item));
    const key = walKey(TEST_CLUSTER, { timeMs: systemClock.now(), id: ids.uuid() });
    const flushId = uuidToBytes(ids.uuid());
    const laid = layoutFlush({
      batches,
      order: groupByPartition(batches),
      slab,
      position: 0,
      clusterTag: clusterTag(TEST_CLUSTER),
      generation: 0,
      flushId,
    });
    await store.put(key, laid.parts);
    const object = { key, kind: 'object', generation: 0, bytes: laid.bytes } as const;
    await metadata.log.commit([{ flushId, object, nowMs: 1, batches }]);
  };
  const check = () =>
    fsckOpen({
      asked: askPostgres(metadata.database),
      store,
      clusterId: TEST_CLUSTER,
      settings,
      samplePercent: 100,
      prng: seededPrng(1),
      pause: async () => {},
    });
  const compact = async () => {
    const compactor = new Compactor({
      clusterId: TEST_CLUSTER,
      store,
      source: objectSource(store),
      metadata,
      limits: {
        smallRunBytes: 16_384,
        gapBytes: 1_024,
        smallShareBytes: 65_536,
        fanIn: 4,
        objectBytes: 262_144,
        minAgeMs: 0,
      },
      blockBytes: 65_536,
      clock: systemClock,
      ids,
      logger: silentLogger,
      metrics: noMetrics,
      onReplaced: () => {},
    });
    while ((await compactor.step()) > 0);
  };
  const run = (sql: string) => metadata.database.on('background').run(sql);
  return { metadata, store, partitions, flush, check, compact, run };
}

const wrongs = (findings: Awaited<ReturnType<typeof fsckOpen>>) =>
  findings.filter(({ severity }) => severity !== 'ok').map(({ what, value }) => [what, value]);

test('flushes, compacted or not; a hole, a lost end, a lost object', {
  timeout: 60_000,
}, async () => {
  const { metadata, store, partitions, flush, check, compact, run } = await newCluster();
  const [first, second] = partitions;
  for (let n = 0; n < 6; n += 1) await flush();
  const written = await check();
  expect(wrongs(written)).toEqual([]);
  expect(written.map(({ value }) => value)).toEqual(
    expect.arrayContaining([
      'tile the logs of 2 partitions',
      '6 that rows refer to, all there with their bytes',
      expect.stringMatching(/^100 %: 12 blocks, 12 batches/),
    ]),
  );
  await compact();
  await flush();
  await metadata.log.deleteRecords(first!, 3);
  expect(wrongs(await check())).toEqual([]);

  await run(`UPDATE log_partitions SET high_watermark = 9 WHERE partition_id = ${first}`);
  await run(`UPDATE log_partitions SET high_watermark = 6 WHERE partition_id = ${second}`);
  expect(wrongs(await check())).toEqual([
    ['entries', `orders 0 (partition id ${first}): nothing holds offsets 7 to 8`],
    [
      'entries',
      `orders 1 (partition id ${second}): entries hold offsets up to 6, though the high watermark is 6`,
    ],
  ]);
  await run('UPDATE log_partitions SET high_watermark = 7');
  await run(`DELETE FROM object_entries WHERE partition_id = ${second}`);
  expect(wrongs(await check())).toEqual([
    ['entries', `orders 1 (partition id ${second}): nothing holds offsets 0 to 5`],
  ]);
  const [open] = await metadata.log.flushesAfter(0, 1);
  await store.delete([open!.objectKey]);
  expect(wrongs(await check()).at(-1)).toEqual(['missing', `${open!.objectKey}: missing`]);
  await metadata.close();
});
