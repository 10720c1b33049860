import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { type Metrics, noMetrics } from '../../base/metrics.ts';
import { seededIds, seededPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import { MemoryObjectStore } from '../objects/memory.ts';
import { type Disk, type DiskFile, nodeDisk } from './disk.ts';
import { type InThreadLog, openInThread } from './open-in-thread.ts';
import { readSettings } from './read-settings.ts';
import { logSettings } from './settings.ts';
import { testItem } from './test-items.ts';

/** A real disk that counts, fails on demand, and knows up to where each file is synced. */
class WatchedDisk {
  readonly disk: Disk;
  syncs = 0;
  writes = 0;
  failSyncs = 0;
  failWrites: 'EIO' | 'ENOSPC' | undefined;
  readonly unsynced = new Map<string, number>();

  constructor(root: string) {
    const inner = nodeDisk(root);
    this.disk = { ...inner, open: (name, mode) => this.#watch(name, inner.open(name, mode)) };
  }

  #watch(name: string, file: DiskFile): DiskFile {
    return {
      pread: (into, position) => file.pread(into, position),
      size: () => file.size(),
      truncate: (bytes) => file.truncate(bytes),
      close: () => file.close(),
      pwritev: (parts, position) => {
        if (this.failWrites !== undefined)
          throw Object.assign(new Error('write failed'), { code: this.failWrites });
        this.writes += 1;
        this.unsynced.set(name, (this.unsynced.get(name) ?? 0) + 1);
        file.pwritev(parts, position);
      },
      fdatasync: () => {
        if (this.failSyncs > 0) {
          this.failSyncs -= 1;
          throw Object.assign(new Error('sync failed'), { code: 'EIO' });
        }
        file.fdatasync();
        this.syncs += 1;
        this.unsynced.delete(name);
      },
    };
  }
}

let root: string;
let watched: WatchedDisk;
let metadata: SqliteMetadata;
let opened: InThreadLog;
let partitions: readonly number[];
const clock = new ManualClock();
const gauges = new Map<string, () => number>();
const metrics: Metrics = {
  ...noMetrics,
  observeGauge: (name, _help, read) => gauges.set(name, read),
};

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'floe-seq-'));
  watched = new WatchedDisk(root);
  metadata = openSqliteMetadata(':memory:');
  opened = await openInThread({
    metadata,
    clusterId: 'AAAAAAAAAAAAAAAAAAAAAA',
    store: new MemoryObjectStore(clock, 'test'),
    disk: watched.disk,
    settings: {
      ...resolveSettings({ ...logSettings, ...readSettings }, {}),
      'log.slab.bytes': 65_536,
      'log.slab.count': 3,
      'log.tail.bytes': 65_536,
      'log.in.flight.bytes': 10_000,
      'log.wal.file.bytes': 100_000,
      'log.disk.reserve.bytes': 0,
      'log.disk.ballast.bytes': 0,
    },
    clock,
    prng: seededPrng(1),
    ids: seededIds(seededPrng(2)),
    logger: silentLogger,
    metrics,
  });
  const topic = await opened.directory.create({
    topicId: '11111111-1111-4111-8111-111111111111',
    name: 'orders',
    partitionCount: 2,
    config: {},
    nowMs: 1,
  });
  partitions = topic.partitions;
});
afterEach(async () => {
  await opened.stop();
  metadata.close();
  rmSync(root, { recursive: true });
});

const send = (n = 0, bytes = 40) =>
  opened.log.append([testItem({ partitionId: partitions[n % 2]!, bytes, fill: n })]);

test('acks never outrun syncs, and one sync serves all that came in one turn (L11)', async () => {
  const { syncs } = watched;
  const commits = opened.host.sequencer.commits;
  const acked = await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      const [outcome] = await send(n);
      expect(watched.unsynced.size).toBe(0);
      return outcome!.errorCode;
    }),
  );
  expect(acked).toEqual(new Array(50).fill(0));
  expect(watched.syncs - syncs).toBe(1);
  expect(opened.host.sequencer.commits - commits).toBe(1);
});

test('a failed sync abandons the file; the flush goes to another and is acked', async () => {
  await send(1);
  const before = opened.host.wal!.current().number;
  watched.failSyncs = 1;
  const [outcome] = await send(3);
  expect(outcome).toMatchObject({ errorCode: 0, baseOffset: 1 });
  expect(opened.host.wal!.current().number).toBeGreaterThan(before);
  const read = await opened.log.read({
    partitions: [{ partitionId: partitions[1]!, offset: 0, maxBytes: 1_000 }],
    maxBytes: 1_000,
    isolation: 'read_uncommitted',
    purpose: 'consumer',
  });
  expect(read.partitions[0]).toMatchObject({ errorCode: 0, highWatermark: 2, bytes: 202 });
  read.release();
});

test('files that failed before anything was committed in them do not pile up', async () => {
  await send(0);
  watched.failWrites = 'EIO';
  for (let n = 0; n < 5; n += 1) expect((await send(0))[0]!.errorCode).toBe(56);
  watched.failWrites = undefined;
  watched.failSyncs = 2;
  expect((await send(0))[0]!.errorCode).toBe(56);
  expect((await send(0))[0]).toMatchObject({ errorCode: 0, baseOffset: 1 });
  expect(filesBesides()).toEqual([]);
  // A failed commit may come back with a crash, until the next one: so long its bytes stay.
  const commit = vi.spyOn(metadata.log, 'commitNow');
  for (let n = 0; n < 5; n += 1) {
    commit.mockImplementationOnce(() => {
      throw new Error('disk I/O error');
    });
  }
  for (let n = 0; n < 2; n += 1) expect((await send(0))[0]!.errorCode).toBe(56);
  expect(filesBesides()).toHaveLength(3);
  expect((await send(0))[0]).toMatchObject({ errorCode: 0, baseOffset: 2 });
  expect(filesBesides()).toEqual([]);
});

/** Write-ahead files that no row knows. */
function filesBesides(): string[] {
  const known = new Set(metadata.log.files().map(({ key }) => key));
  return opened.host.wal!.names().filter((key) => !known.has(key));
}

test('a full disk refuses with a retriable error and its remedy, and recovers by itself', async () => {
  await send(0);
  watched.failWrites = 'ENOSPC';
  const [refused] = await send(0);
  expect(refused).toMatchObject({ errorCode: 56, baseOffset: -1 });
  const [again] = await send(0);
  expect(again!.errorMessage).toContain('log.disk.reserve.bytes');
  expect(await opened.log.deleteRecords(partitions[0]!, -1)).toBe(1);
  watched.failWrites = undefined;
  await clock.advance(2_000);
  expect((await send(0))[0]).toMatchObject({ errorCode: 0, baseOffset: 1 });
});

test('past the bound the log is congested, and says when that ends', async () => {
  const sends = [send(0, 6_000), send(0, 6_000)];
  expect(opened.log.congested).toBe(true);
  let relieved = false;
  opened.log.whenRelieved(() => {
    relieved = true;
  });
  expect(relieved).toBe(false);
  await Promise.all(sends);
  expect(relieved).toBe(true);
  expect(opened.log.congested).toBe(false);
});

test('with every slab in use a batch is refused, never queued without bound', async () => {
  const outcomes = (await Promise.all(Array.from({ length: 5 }, () => send(0, 60_000)))).flat();
  expect(outcomes.map((o) => o.errorCode)).toEqual([0, 0, 0, 56, 56]);
  expect(outcomes[3]!.errorMessage).toContain('log.slab.count');
  expect((await send(0, 60_000))[0]!.errorCode).toBe(0);
});

test('readers that hold on to what they read never starve producers', async () => {
  const held = [];
  for (let n = 0; n < 8; n += 1) {
    expect((await send(0, 60_000))[0]).toMatchObject({ errorCode: 0, baseOffset: n });
    const result = await opened.log.read({
      partitions: [{ partitionId: partitions[0]!, offset: n, maxBytes: 100_000 }],
      maxBytes: 100_000,
      isolation: 'read_uncommitted',
      purpose: 'consumer',
    });
    expect(result.partitions[0]!.bytes).toBe(60_061);
    held.push(result);
  }
  for (const result of held) result.release();
});

test('a front hears of a sealed file after the flushes that filled it', async () => {
  // The second flush fills the file: it is committed, sealed and answered in one turn.
  for (let n = 0; n < 2; n += 1) expect((await send(0, 60_000))[0]!.errorCode).toBe(0);
  await vi.waitFor(() =>
    expect(metadata.log.files().map((file) => file.state)).toEqual(['sealed']),
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(gauges.get('floe_log_recent_index_entries')!()).toBe(0);
});

test('stop flushes what was admitted and refuses what comes later', async () => {
  const last = send(0);
  const stopped = opened.log.stop();
  const [refused] = await send(0);
  await stopped;
  expect((await last)[0]!.errorCode).toBe(0);
  expect(refused).toMatchObject({ errorCode: 56, errorMessage: 'the broker is stopping' });
  expect(opened.slabs.free).toBe(3);
});
