// In-process benchmark of the read path: catching up from storage, no sockets and no protocol. What is measured is
// planning, the reader thread's preads into shared blocks, checks, and slices. Beside it the floor: bare preads of the
// same files into warm memory. Then one partition of 1,000 that were written record by record, before and after
// compaction. Prints MB/s, MB per CPU second of the whole process, and read calls.
// Run: node bench/read-path.ts [MiB] [MiB of the second part; 3750 is an hour of 1,000 records of 1 KiB a second]
import { mkdtempSync, openSync, readdirSync, readSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.ts';
import { silentLogger } from '../src/base/log.ts';
import { noMetrics } from '../src/base/metrics.ts';
import { systemIds, systemPrng } from '../src/base/prng.ts';
import { resolveSettings } from '../src/base/settings.ts';
import { lastOffsetDelta } from '../src/protocol/record-batch.ts';
import { Compactor } from '../src/storage/log/compactor.ts';
import type { AppendItem, ReadRun } from '../src/storage/log/log.ts';
import { maintenanceSettings } from '../src/storage/log/maintenance-settings.ts';
import { type OpenedLog, openLog } from '../src/storage/log/open-log.ts';
import { readSettings } from '../src/storage/log/read-settings.ts';
import { logSettings } from '../src/storage/log/settings.ts';
import { testItem } from '../src/storage/log/test-items.ts';
import { LocalObjectStore } from '../src/storage/objects/local.ts';

const MIB = 1024 * 1024;
const megabytes = Number(process.argv[2] ?? 1_024);
const mixedMegabytes = Number(process.argv[3] ?? megabytes / 2);
const settings = resolveSettings(
  { ...logSettings, ...readSettings, ...maintenanceSettings },
  // Everything is read from storage, nothing from slabs.
  { 'log.tail.bytes': '0' },
);

interface Timed {
  readonly bytes: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

async function timed(work: () => Promise<number> | number): Promise<Timed> {
  const cpu = process.cpuUsage();
  const started = performance.now();
  const bytes = await work();
  const used = process.cpuUsage(cpu);
  const cpuSeconds = (used.user + used.system) / 1e6;
  return { bytes, seconds: (performance.now() - started) / 1_000, cpuSeconds };
}

function report(name: string, { bytes, seconds, cpuSeconds }: Timed, more = ''): void {
  const perSecond = (bytes / 1e6 / seconds).toFixed(0);
  console.log(
    `${name}: ${perSecond} MB/s, ${(bytes / 1e6 / cpuSeconds).toFixed(0)} MB per CPU s${more}`,
  );
}

async function inLog(
  work: (opened: OpenedLog, store: LocalObjectStore, root: string) => Promise<void>,
) {
  const root = mkdtempSync(join(process.cwd(), '.bench-'));
  const store = await LocalObjectStore.open(root, { clock: systemClock, ids: systemIds });
  const opened = await openLog({
    dataDir: root,
    store,
    settings,
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    logger: silentLogger,
    logLevel: 'silent',
    metrics: noMetrics,
  });
  try {
    await work(opened, store, root);
  } finally {
    await opened.stop();
    rmSync(root, { recursive: true });
  }
}

async function createTopic(opened: OpenedLog, partitionCount: number): Promise<readonly number[]> {
  const topicId = systemIds.uuid();
  const nowMs = systemClock.now();
  const topic = await opened.directory.create({
    topicId,
    name: 'bench',
    partitionCount,
    config: {},
    nowMs,
  });
  return topic.partitions;
}

/** Appends until `bytes` are in, with a few requests under way. */
async function fill(opened: OpenedLog, bytes: number, request: () => AppendItem[]): Promise<void> {
  let left = bytes;
  const producer = async () => {
    while (left > 0) {
      const items = request();
      for (const item of items) left -= item.bytes.length;
      await opened.log.append(items);
    }
  };
  await Promise.all(Array.from({ length: 8 }, producer));
}

/** Reads partitions from their start to their end, 1 MiB of each at a time, as a consumer of a broker would. */
async function catchUp(opened: OpenedLog, partitions: readonly number[]): Promise<number> {
  const next = new Map(partitions.map((partitionId) => [partitionId, 0]));
  let bytes = 0;
  while (next.size > 0) {
    const wanted = [...next].map(([partitionId, offset]) => ({
      partitionId,
      offset,
      maxBytes: MIB,
    }));
    const result = await opened.log.read({
      partitions: wanted,
      maxBytes: 50 * MIB,
      isolation: 'read_uncommitted',
      purpose: 'consumer',
    });
    for (const { partitionId, runs, highWatermark, errorCode } of result.partitions) {
      if (errorCode !== 0) throw new Error(`error ${errorCode} at ${next.get(partitionId)}`);
      for (const run of runs) bytes += run.bytes.length;
      const last = runs.at(-1);
      const end = last === undefined ? next.get(partitionId)! : runEnd(last);
      if (end >= highWatermark) next.delete(partitionId);
      else next.set(partitionId, end);
    }
    result.release();
  }
  return bytes;
}

function runEnd({ baseOffset, bytes }: ReadRun): number {
  let offset = baseOffset;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at < bytes.length; at += view.getInt32(at + 8) + 12)
    offset += lastOffsetDelta(bytes, at) + 1;
  return offset;
}

/** What the kernel alone takes to hand over the same bytes. */
function barePreads(folder: string): number {
  const into = new Uint8Array(new SharedArrayBuffer(16 * MIB));
  let bytes = 0;
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const fd = openSync(path, 'r');
    for (let at = 0, slot = 0; at < statSync(path).size; at += MIB, slot = (slot + 1) % 16)
      bytes += readSync(fd, into, slot * MIB, MIB, at);
  }
  return bytes;
}

await inLog(async (opened, _store, root) => {
  const partitions = await createTopic(opened, 16);
  const items = partitions.map((partitionId) =>
    testItem({ partitionId, records: 16, bytes: 16 * 1_090 }),
  );
  await fill(opened, megabytes * MIB, () => items);
  for (let round = 0; round < 3; round += 1) {
    const folder = join(root, opened.clusterId, 'file');
    report('bare preads of 1 MiB', await timed(() => barePreads(folder)));
    const { loads } = opened.reader.hotStats;
    const run = await timed(() => catchUp(opened, partitions));
    const calls = opened.reader.hotStats.loads - loads;
    report(
      'catch-up, 16 partitions',
      run,
      `, ${(run.bytes / calls / 1024).toFixed(0)} KiB a read call`,
    );
  }
});

await inLog(async (opened, store) => {
  const partitions = await createTopic(opened, 1_000);
  const one = partitions.map((partitionId) => testItem({ partitionId, records: 1, bytes: 1_090 }));
  let n = 0;
  // 50 partitions a request, one record each: what an hour at 1,000 records a second leaves.
  await fill(opened, mixedMegabytes * MIB, () => one.slice((n = (n + 50) % 1_000), n + 50));
  const measure = async (name: string) => {
    const { loads } = opened.reader.hotStats;
    const run = await timed(() => catchUp(opened, [partitions[500]!]));
    const calls = opened.reader.hotStats.loads - loads;
    report(
      name,
      run,
      `, ${(run.bytes / 1e6).toFixed(1)} MB, ${(run.bytes / calls / 1024).toFixed(0)} KiB a read call`,
    );
  };
  await measure('one of 1,000, as written');
  const compactor = new Compactor({
    ...opened,
    store,
    clock: systemClock,
    ids: systemIds,
    logger: silentLogger,
    metrics: noMetrics,
    limits: {
      smallRunBytes: settings['log.compact.small.run.bytes'],
      gapBytes: settings['log.read.gap.bytes'],
      smallShareBytes: settings['log.compact.small.share.bytes'],
      fanIn: settings['log.compact.fan.in'],
      objectBytes: settings['log.compact.object.bytes'],
      minAgeMs: 0,
    },
    blockBytes: settings['log.compact.block.bytes'],
    onReplaced: (objectIds) => opened.reader.replaced(objectIds),
  });
  report(
    'compaction',
    await timed(async () => {
      let written = 0;
      for (let bytes = -1; bytes !== 0; written += bytes) bytes = await compactor.step();
      return written;
    }),
  );
  for (let round = 0; round < 3; round += 1) await measure('one of 1,000, compacted');
});
