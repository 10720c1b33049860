// Two brokers' logs on a real PostgreSQL and one object store: what one commits the other shows, in order, at once when
// hinted; topics, deletions and transactions too; a stop loses nothing.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/log.ts';
import { noMetrics } from '../../src/base/metrics.ts';
import { systemIds, systemPrng } from '../../src/base/prng.ts';
import { resolveSettings } from '../../src/base/settings.ts';
import { postgresSettings } from '../../src/metadata/postgres/settings.ts';
import { startPostgres, type TestServer } from '../../src/metadata/postgres/testing.ts';
import type { TransactionEvent } from '../../src/metadata/transactions.ts';
import { type OpenedLog, openLog } from '../../src/storage/log/open-log.ts';
import { readSettings } from '../../src/storage/log/read-settings.ts';
import { logSettings } from '../../src/storage/log/settings.ts';
import { testItem } from '../../src/storage/log/test-items.ts';
import { MemoryObjectStore } from '../../src/storage/objects/memory.ts';

let server: TestServer;
let url: string;
let folder: string;
const store = new MemoryObjectStore(systemClock, 'following');
const nodes: OpenedLog[] = [];

/** So seldom that a test which waits for it fails. */
const NEVER = '60000';

async function open(name: string, settings: Readonly<Record<string, string>> = {}) {
  const opened = await openLog({
    dataDir: join(folder, name),
    store,
    metadata: {
      kind: 'postgres',
      url,
      settings: resolveSettings(postgresSettings, {}),
      applicationName: `floe ${name}`,
      unsafeServer: true,
    },
    settings: resolveSettings(
      { ...logSettings, ...readSettings },
      { 'log.slab.bytes': '1048576', 'log.slab.count': '6', ...settings },
    ),
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    logger: silentLogger,
    logLevel: 'silent',
    metrics: noMetrics,
  });
  nodes.push(opened);
  return opened;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'floe-following-'));
  server = await startPostgres();
  url = await server.empty();
});
afterAll(async () => {
  for (const node of nodes.splice(0)) await node.stop();
  await server?.stop();
  rmSync(folder, { recursive: true });
});

async function createTopic(node: OpenedLog, name: string): Promise<number> {
  const topicId = systemIds.uuid();
  const request = { topicId, name, partitionCount: 1, config: {}, nowMs: systemClock.now() };
  return (await node.directory.create(request)).partitions[0]!;
}

const append = async (node: OpenedLog, partitionId: number, producer: object = {}) =>
  (await node.log.append([testItem({ partitionId, records: 2, ...producer })]))[0]!;

/** Resolves with the high watermark when it has moved. */
const nextMove = (node: OpenedLog, partitionId: number): Promise<number> =>
  new Promise((resolve) => {
    const stop = node.log.subscribe([partitionId], () => {
      stop();
      resolve(node.log.watermarks(partitionId)!.highWatermark);
    });
  });

async function read(node: OpenedLog, partitionId: number, offset: number) {
  const request = { partitionId, offset, maxBytes: 1e6 };
  const result = await node.log.read({
    partitions: [request],
    maxBytes: 1e6,
    isolation: 'read_committed',
    purpose: 'consumer',
  });
  const [partition] = result.partitions;
  const bases = partition!.runs.map((run) => run.baseOffset);
  result.release();
  return { errorCode: partition!.errorCode, bases, aborted: partition!.abortedTransactions };
}

test('two brokers are one log', async () => {
  const never = { 'log.follow.poll.ms': NEVER, 'log.follow.idle.ms': NEVER };
  const [a, b] = [await open('a', never), await open('b', never)];
  expect(b.clusterId).toBe(a.clusterId);
  a.follower!.onCommitted((commitNumber) => b.follower!.hinted(commitNumber));

  // A topic that b has never heard of comes with its first commit.
  const partitionId = await createTopic(a, 'one');
  expect(await append(a, partitionId)).toMatchObject({ errorCode: 0, baseOffset: 0 });
  await expect.poll(() => b.log.watermarks(partitionId)?.highWatermark).toBe(2);
  expect(await read(b, partitionId, 0)).toMatchObject({ errorCode: 0, bases: [0] });

  // A long poll at b wakes by the hint alone.
  const woken = nextMove(b, partitionId);
  await append(a, partitionId);
  expect(await woken).toBe(4);
  expect((await read(b, partitionId, 2)).bases).toEqual([2]);

  // b commits behind what it has not heard of; a, which nobody hints, asks when it must not be stale.
  expect(await append(b, partitionId)).toMatchObject({ errorCode: 0, baseOffset: 4 });
  expect(a.log.watermarks(partitionId)!.highWatermark).toBe(4);
  await a.log.caughtUp();
  expect(a.log.watermarks(partitionId)!.highWatermark).toBe(6);
  // Its own next commit tells it of those before it, too.
  await append(b, partitionId);
  expect(await append(a, partitionId)).toMatchObject({ baseOffset: 8 });
  expect(a.log.lastCommitNumber).toBe(5);

  // An idempotent producer moves, and sends again what it had no answer to.
  const { producerId } = await a.metadata.producers.initProducerId(systemClock.now());
  const send = (node: OpenedLog, sequence: number) =>
    append(node, partitionId, { producerId, epoch: 0, sequence });
  expect(await send(a, 0)).toMatchObject({ errorCode: 0, baseOffset: 10 });
  expect(await send(b, 0)).toMatchObject({ errorCode: 0, baseOffset: 10 });
  expect(await send(b, 2)).toMatchObject({ errorCode: 0, baseOffset: 12 });
  expect(await send(a, 6)).toMatchObject({ errorCode: 45 });

  // Whichever broker shows it (DescribeLogDirs), the size is the same.
  await Promise.all([a.log.caughtUp(), b.log.caughtUp()]);
  const [stored] = await a.metadata.log.partitions([partitionId]);
  expect(stored!.sizeBytes).toBeGreaterThan(0);
  const sizes = [a, b].map(({ log }) => log.sizeOf(partitionId));
  expect(sizes).toEqual([stored!.sizeBytes, stored!.sizeBytes]);
});

test('transactions end everywhere', async () => {
  const [a, b] = nodes as [OpenedLog, OpenedLog];
  const partitionId = await createTopic(a, 'ended');
  const apply = async (node: OpenedLog, event: TransactionEvent) =>
    (await node.metadata.transactions.apply([{ transactionalId: 't', event }], 0))[0]!;
  const begun = (await apply(a, { type: 'init', timeoutMs: 60_000 })).state!;
  const { producerId, producerEpoch: epoch, incarnation } = begun;
  const transaction = { incarnation, mode: 'implicit' } as const;
  await append(a, partitionId, { producerId, epoch, sequence: 0, transaction });
  await b.log.caughtUp();
  expect(b.log.watermarks(partitionId)).toMatchObject({ lastStableOffset: 0, highWatermark: 2 });
  const ended = await apply(b, {
    type: 'end',
    committed: false,
    bump: true,
    producerId,
    producerEpoch: epoch,
  });
  expect(ended.errorCode).toBe(0);
  // The answer comes when its marker is visible here.
  expect(b.log.watermarks(partitionId)).toMatchObject({ lastStableOffset: 3, highWatermark: 3 });
  await a.log.caughtUp();
  for (const node of [a, b])
    expect(await read(node, partitionId, 0)).toMatchObject({
      errorCode: 0,
      aborted: [{ producerId, firstOffset: 0 }],
    });
});

test('log starts move everywhere, and a broker that starts again knows everything', async () => {
  const [a, b] = nodes as [OpenedLog, OpenedLog];
  const partitionId = await createTopic(b, 'short');
  for (let n = 0; n < 3; n += 1) await append(b, partitionId);
  await a.log.caughtUp();
  // However soon one comes after the other.
  for (const logStartOffset of [2, 4]) {
    await b.log.deleteRecords(partitionId, logStartOffset);
    await a.log.caughtUp();
    expect(a.log.watermarks(partitionId)).toMatchObject({ logStartOffset, highWatermark: 6 });
  }
  expect((await read(a, partitionId, 0)).errorCode).toBe(1);
  // Who is told of news asks at once: what was deleted is served no longer, though nobody asks for offsets.
  const untell = b.onMetadataRaised(() => void a.log.caughtUp());
  await b.log.deleteRecords(partitionId, 5);
  await expect.poll(() => a.log.watermarks(partitionId)!.logStartOffset).toBe(5);
  untell();
  const pending = append(a, partitionId);
  await a.stop();
  expect(await pending).toMatchObject({ errorCode: 0, baseOffset: 6 });
  const again = await open('a');
  expect(again.log.watermarks(partitionId)).toMatchObject({ logStartOffset: 5, highWatermark: 8 });
  expect((await read(again, partitionId, 5)).bases).toEqual([4]);
});

test('a database that goes down for a moment costs a moment', async () => {
  const [, b] = nodes as [OpenedLog, OpenedLog];
  const partitionId = await createTopic(b, 'patient');
  expect(await append(b, partitionId)).toMatchObject({ baseOffset: 0 });
  if (process.env['FLOE_TEST_POSTGRES'] !== undefined) return;
  await Promise.all([server.crash(), append(b, partitionId)]);
  expect(await append(b, partitionId)).toMatchObject({ errorCode: 0, baseOffset: 4 });
}, 60_000);
