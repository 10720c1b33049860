import { afterEach, beforeEach, expect, test } from 'vitest';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { Maintenance, type MaintenanceOptions } from './maintenance.ts';
import { maintenanceSettings } from './maintenance-settings.ts';
import { LocalRangeCleaner } from './range-cleaner.ts';
import { readSettings } from './read-settings.ts';
import { TEST_CLUSTER, TestLog } from './test-log.ts';
import { clusterTag } from './wal-format.ts';

let log: TestLog;
let running: Maintenance | undefined;
beforeEach(async () => {
  log = await TestLog.open();
});
afterEach(async () => {
  await running?.stop();
  await log.stop();
});

function start(more: Partial<MaintenanceOptions> = {}): void {
  running = new Maintenance({
    clusterId: TEST_CLUSTER,
    store: log.store,
    source: log.source,
    metadata: log.metadata,
    reader: log.reader,
    settings: resolveSettings(
      { ...maintenanceSettings, ...readSettings },
      { 'log.compact.age.ms': '0', 'log.compact.rate.bytes': '65536' },
    ),
    clock: log.clock,
    ids: log.ids,
    prng: seededPrng(1),
    compacted: () => [],
    endOf: () => undefined,
    cleaner: new LocalRangeCleaner(clusterTag(TEST_CLUSTER), 1 << 30),
    roll: () => log.seal(),
    logger: silentLogger,
    metrics: noMetrics,
    policy: () => ({ retentionMs: 3_600_000, retentionBytes: -1 }),
    pin: () => Infinity,
    onMoved: () => {},
    onCompacted: () => {},
    onAbortsGone: () => {},
    retireFiles: (keys) => log.host.sequencer.retireFiles(keys),
    hasRoom: () => true,
    ...more,
  });
}

const streams = async () => {
  const found: string[] = [];
  for await (const { key } of log.store.list(`${TEST_CLUSTER}/stream/`)) found.push(key);
  return found.length;
};

/** Lets file operations of a job end, which no clock moves, and time go by between. */
async function settle(holds: () => Promise<boolean>, stepMs: number): Promise<void> {
  const deadline = Date.now() + 15_000;
  while (!(await holds()) && Date.now() < deadline) {
    await new Promise((resolve) => setImmediate(resolve));
    await log.clock.advance(stepMs);
  }
  expect(await holds()).toBe(true);
}

async function scatter(): Promise<readonly number[]> {
  const partitions = await log.createTopic(60);
  for (let n = 0; n < 10; n += 1) {
    const records = [{ value: 'x'.repeat(500), timestamp: log.clock.now() }];
    await log.append(partitions.map((partitionId) => ({ partitionId, records })));
  }
  await log.seal();
  return partitions;
}

test('compacts, lets retention go by, and gives the files back, by the clock alone', async () => {
  const partitions = await scatter();
  start();
  await settle(async () => (await streams()) === 1, 1_000);
  expect(await log.readAll(partitions[7]!)).toHaveLength(10);
  await log.clock.advance(2 * 3_600_000);
  await settle(async () => (await streams()) === 0, 30_000);
  const [partition] = await log.metadata.log.partitions([partitions[7]!]);
  expect(partition).toMatchObject({ logStartOffset: 10, highWatermark: 10, sizeBytes: 0 });
});

test('compaction waits while producers press', async () => {
  await scatter();
  let producedBytes = 0;
  const { reader } = log;
  start({
    reader: {
      get followedBytes() {
        return producedBytes;
      },
      read: (request) => reader.read(request),
      replaced: (objectIds) => reader.replaced(objectIds),
      offsetReaching: (...args) => reader.offsetReaching(...args),
    },
  });
  for (let n = 0; n < 12; n += 1) {
    producedBytes += 5 * 33 * 1024 * 1024;
    await log.clock.advance(5_000);
  }
  expect(await streams()).toBe(0);
  await settle(async () => (await streams()) === 1, 1_000);
});

test('compaction waits while the disk is nearly full', async () => {
  let asked = 0;
  let room = false;
  start({
    hasRoom: () => {
      asked += 1;
      return room;
    },
  });
  await scatter();
  await settle(async () => asked > 3, 5_000);
  expect(await streams()).toBe(0);
  room = true;
  await settle(async () => (await streams()) > 0, 5_000);
});

test('a job that fails is tried again, and the others go on', async () => {
  await scatter();
  let failures = 0;
  start({
    source: {
      async read(...args) {
        if ((failures += 1) < 3) throw new FloeError('unavailable', 'not now');
        await log.source.read(...args);
      },
    },
  });
  await settle(async () => (await streams()) === 1, 1_000);
  expect(failures).toBeGreaterThan(2);
});
