// The log over S3 beside the log over a local folder, in one run: what a produce takes at moderate load, what a core
// carries, how many requests it costs, and how many a reader far behind pays before and after compaction. The bucket is
// the S3 double in a process of its own (100 ms PUT, 30 ms GET); metadata is the embedded SQLite. No sockets of clients.
// Run: node bench/s3.ts [seconds]
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { silentLogger } from '../src/base/log.ts';
import { noMetrics } from '../src/base/metrics.ts';
import { systemIds, systemPrng } from '../src/base/prng.ts';
import { resolveSettings } from '../src/base/settings.ts';
import { Compactor } from '../src/storage/log/compactor.ts';
import { compactionOf } from '../src/storage/log/maintenance.ts';
import { maintenanceSettings } from '../src/storage/log/maintenance-settings.ts';
import { type OpenedLog, openLog } from '../src/storage/log/open-log.ts';
import { readSettings } from '../src/storage/log/read-settings.ts';
import { logSettings } from '../src/storage/log/settings.ts';
import { testItem } from '../src/storage/log/test-items.ts';
import { objectSettings, openObjectStore } from '../src/storage/objects/index.ts';
import type { ObjectStore } from '../src/storage/objects/object-store.ts';
import { quantile } from '../test/measured.ts';
import { type DoubleProcess, latencyOf, startDoubleProcess } from '../test/s3/double-process.ts';

const PUT_MS = 100;
const GET_MS = 30;
const PARTITIONS = 4;
const RECORD_BYTES = 1024;
const RECORDS = 16;
const CATCH_UP_BYTES = 192 * 1024 * 1024;
const MIB = 1024 * 1024;
const seconds = Number(process.argv[2] ?? 10);

const settings = resolveSettings(
  { ...logSettings, ...readSettings, ...maintenanceSettings, ...objectSettings },
  {},
);

interface Opened {
  readonly log: OpenedLog;
  readonly store: ObjectStore;
  readonly partitions: readonly number[];
  stop(): Promise<void>;
}

async function open(uri: string, endpoint: string): Promise<Opened> {
  const directory = mkdtempSync(join(process.cwd(), '.bench-'));
  const common = {
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    logger: silentLogger,
    metrics: noMetrics,
  };
  const store = await openObjectStore(uri === 'local' ? `file://${directory}` : uri, {
    ...common,
    settings: {
      ...settings,
      's3.endpoint': endpoint,
      's3.access.key.id': 'any',
      's3.secret.access.key': 'any',
    },
  });
  const log = await openLog({ ...common, dataDir: directory, store, settings, logLevel: 'silent' });
  const topic = await log.directory.create({
    topicId: systemIds.uuid(),
    name: 'bench',
    partitionCount: PARTITIONS,
    config: {},
    nowMs: systemClock.now(),
  });
  return {
    log,
    store,
    partitions: topic.partitions,
    async stop() {
      await log.stop();
      rmSync(directory, { recursive: true });
    },
  };
}

const batchOf = (partitionId: number) =>
  testItem({ partitionId, records: RECORDS, bytes: RECORDS * RECORD_BYTES, maxTimestamp: 1 });

/** Produce requests of all partitions, `inFlight` at once, until the time or the bytes are over. */
async function press(
  { log, partitions }: Opened,
  { forMs = Infinity, bytes = Infinity }: { readonly forMs?: number; readonly bytes?: number },
): Promise<number> {
  const items = partitions.map(batchOf);
  const size = items.reduce((sum, item) => sum + item.bytes.length, 0);
  const until = systemClock.monotonic() + forMs;
  let sent = 0;
  const loop = async () => {
    while (systemClock.monotonic() < until && sent < bytes) {
      if (log.log.congested) await new Promise<void>((resolve) => log.log.whenRelieved(resolve));
      sent += size;
      for (const { errorCode } of await log.log.append(items))
        if (errorCode !== 0) throw new Error(`refused with ${errorCode}`);
    }
  };
  // As many as fill the bytes in flight: a PUT takes its time, the requests of clients pile up meanwhile.
  await Promise.all(Array.from({ length: 512 }, loop));
  return sent;
}

async function throughput(
  opened: Opened,
): Promise<{ readonly mbS: number; readonly perCpu: number }> {
  await press(opened, { forMs: 1_000 });
  const cpu = process.cpuUsage();
  const startedMs = systemClock.monotonic();
  const bytes = await press(opened, { forMs: seconds * 1_000 });
  const elapsed = (systemClock.monotonic() - startedMs) / 1_000;
  const used = process.cpuUsage(cpu);
  const cpuS = (used.user + used.system) / 1e6;
  return { mbS: bytes / 1e6 / elapsed, perCpu: bytes / 1e6 / cpuS };
}

/** One request every 5 ms: acks, and when a consumer that waits at the tail has the records. */
async function moderate({ log, partitions }: Opened) {
  const acks: number[] = [];
  const ends: number[] = [];
  const sentMs = new Map<number, number[]>(partitions.map((id) => [id, []]));
  const next = new Map(partitions.map((id) => [id, log.log.watermarks(id)!.highWatermark]));
  const stop = log.log.subscribe(partitions, (partitionId) => {
    const { highWatermark } = log.log.watermarks(partitionId)!;
    const nowMs = systemClock.monotonic();
    const batches = (highWatermark - next.get(partitionId)!) / RECORDS;
    next.set(partitionId, highWatermark);
    for (const startedMs of sentMs.get(partitionId)!.splice(0, batches))
      ends.push(nowMs - startedMs);
  });
  const waiting: Promise<unknown>[] = [];
  const until = systemClock.monotonic() + seconds * 1_000;
  for (let n = 0; systemClock.monotonic() < until; n += 1) {
    const partitionId = partitions[n % partitions.length]!;
    const startedMs = systemClock.monotonic();
    sentMs.get(partitionId)!.push(startedMs);
    const appended = log.log.append([batchOf(partitionId)]);
    waiting.push(appended.then(() => acks.push(systemClock.monotonic() - startedMs)));
    await systemClock.sleep(5);
  }
  await Promise.all(waiting);
  stop();
  return { acks, ends };
}

/** Reads everything as a group does that is far behind. @returns bytes. */
async function catchUp({ log, partitions }: Opened): Promise<number> {
  const readOne = async (partitionId: number) => {
    let bytes = 0;
    const { highWatermark } = log.log.watermarks(partitionId)!;
    for (let offset = 0; offset < highWatermark; ) {
      const read = await log.log.read({
        partitions: [{ partitionId, offset, maxBytes: MIB }],
        maxBytes: MIB,
        isolation: 'read_uncommitted',
        purpose: 'consumer',
      });
      const [found] = read.partitions;
      if (found!.errorCode !== 0) throw new Error(`a read failed with ${found!.errorCode}`);
      bytes += found!.bytes;
      offset += (found!.bytes / batchOf(partitionId).bytes.length) * RECORDS;
      read.release();
    }
    return bytes;
  };
  return (await Promise.all(partitions.map(readOne))).reduce((a, b) => a + b, 0);
}

async function compact({ log, store }: Opened): Promise<void> {
  const { limits, ...how } = compactionOf(settings, true);
  const compactor = new Compactor({
    ...how,
    limits: { ...limits, minAgeMs: 0 },
    gatherMs: 0,
    clusterId: log.clusterId,
    store,
    source: log.source,
    metadata: log.metadata,
    blockBytes: settings['log.compact.block.bytes'],
    clock: systemClock,
    ids: systemIds,
    logger: silentLogger,
    metrics: noMetrics,
    onReplaced: (objectIds) => log.reader.replaced(objectIds),
  });
  let idle = 0;
  while (idle < 20) idle = (await compactor.step()) === 0 ? idle + 1 : 0;
}

async function reads(opened: Opened, double: DoubleProcess, name: string): Promise<void> {
  await double.resetCounters();
  const startedMs = systemClock.monotonic();
  const bytes = await catchUp(opened);
  const elapsed = (systemClock.monotonic() - startedMs) / 1_000;
  const { get } = await double.counters();
  const per = get.requests / (bytes / (4 * MIB));
  console.log(
    `catch-up ${name}: ${(bytes / 1e6 / elapsed).toFixed(0)} MB/s, ${get.requests} GETs, ${per.toFixed(2)} per 4 MiB`,
  );
}

const rate = async (double: DoubleProcess, overMs: number) =>
  ((await double.counters()).put.requests / (overMs / 1_000)).toFixed(1);

const double = await startDoubleProcess({ latency: latencyOf(PUT_MS, GET_MS) });
try {
  const local = await open('local', double.endpoint);
  const embedded = await throughput(local);
  await local.stop();
  console.log(`local: ${embedded.mbS.toFixed(0)} MB/s, ${embedded.perCpu.toFixed(0)} MB per CPU s`);

  const remote = await open('s3://loaded', double.endpoint);
  await double.resetCounters();
  const stored = await throughput(remote);
  const { put } = await double.counters();
  console.log(
    `S3: ${stored.mbS.toFixed(0)} MB/s, ${stored.perCpu.toFixed(0)} MB per CPU s ` +
      `(${(stored.perCpu / embedded.perCpu).toFixed(2)} of local), ${(put.bytes / put.requests / MIB).toFixed(1)} MiB a PUT`,
  );
  await remote.stop();

  const calm = await open('s3://calm', double.endpoint);
  await double.resetCounters();
  const { acks, ends } = await moderate(calm);
  const puts = await rate(double, seconds * 1_000);
  const limit = settings['log.flush.age.ms'] + 1.5 * PUT_MS;
  console.log(
    `moderate: ack p50 ${quantile(acks, 0.5).toFixed(0)} p99 ${quantile(acks, 0.99).toFixed(0)} ms (limit ${limit}), ` +
      `end to end p50 ${quantile(ends, 0.5).toFixed(0)} p99 ${quantile(ends, 0.99).toFixed(0)} ms, ${puts} PUT/s`,
  );
  await double.resetCounters();
  await systemClock.sleep(3_000);
  console.log(`idle: ${await rate(double, 3_000)} PUT/s`);
  await calm.stop();

  const behind = await open('s3://behind', double.endpoint);
  await press(behind, { bytes: CATCH_UP_BYTES });
  await reads(behind, double, 'before compaction');
  await compact(behind);
  await reads(behind, double, 'after compaction');
  await behind.stop();
} finally {
  await double.stop();
}
