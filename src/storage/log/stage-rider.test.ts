// Batches that bring a stage of table work along: both enter or neither, beside other people's batches, on a local
// WAL and on an object store, when replies are lost and over restarts.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { FloeError } from '../../base/error.ts';
import { silentLogger } from '../../base/log.ts';
import { noMetrics } from '../../base/metrics.ts';
import { systemIds, systemPrng } from '../../base/prng.ts';
import { resolveSettings } from '../../base/settings.ts';
import { openSqliteMetadata, type SqliteMetadata } from '../../metadata/sqlite/index.ts';
import type { StageRequest } from '../../metadata/tables.ts';
import { MemoryObjectStore } from '../objects/memory.ts';
import { nodeDisk } from './disk.ts';
import { openInThread } from './open-in-thread.ts';
import { readSettings } from './read-settings.ts';
import type { SequencerPort } from './sequencer-port.ts';
import { logSettings } from './settings.ts';
import { testItem } from './test-items.ts';
import { TEST_CLUSTER } from './test-log.ts';

const topicId = '11111111-1111-4111-8111-111111111111';
let directory: string;
let metadata: SqliteMetadata;
let node: Awaited<ReturnType<typeof openInThread>>;
let store: MemoryObjectStore;
let local: boolean;
/** Replies that get lost before the next one arrives. */
let lost = 0;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'floe-rider-'));
  store = new MemoryObjectStore(systemClock);
  lost = 0;
});
afterEach(async () => {
  await node.stop();
  metadata.close();
  rmSync(directory, { recursive: true });
});

const losing = (port: SequencerPort): SequencerPort => ({
  submit: async (request) => {
    const reply = await port.submit(request);
    if (lost === 0) return reply;
    lost -= 1;
    throw new FloeError('timeout', 'the reply was lost');
  },
  retireFiles: (keys) => port.retireFiles(keys),
  roll: () => port.roll(),
});

async function open(): Promise<void> {
  metadata = openSqliteMetadata(join(directory, 'metadata.db'));
  node = await openInThread({
    settings: resolveSettings(
      { ...logSettings, ...readSettings },
      { 'log.slab.bytes': '65536', 'log.slab.count': '6' },
    ),
    clock: systemClock,
    prng: systemPrng,
    ids: systemIds,
    logger: silentLogger,
    metrics: noMetrics,
    ...(local ? { disk: nodeDisk(directory) } : {}),
    metadata,
    clusterId: TEST_CLUSTER,
    store,
    wrapSequencer: losing,
  });
}

async function start(onDisk: boolean) {
  local = onDisk;
  await open();
  await metadata.tables.claim({ topicId, topicName: 't', namespace: ['kafka'], table: 't' });
  await metadata.tables.initPositions(topicId, [{ partition: 0, offset: 0 }]);
  const create = async (name: string) => {
    const ids = { topicId: systemIds.uuid(), name, partitionCount: 1, config: {}, nowMs: 1 };
    return (await node.directory.create(ids)).partitions[0]!;
  };
  return { letters: await create('t-dlq'), orders: await create('orders') };
}

function stage(from: number, to: number, overrides: Partial<StageRequest> = {}): StageRequest {
  return {
    stageId: `s-${from}-${to}`,
    topicId,
    epoch: 1,
    generation: 1,
    tableUuid: 'u',
    schemaId: 0,
    specId: 0,
    configEpoch: 1,
    ranges: [{ partition: 0, start: from, end: to, deadLettersFrom: from, gaps: [] }],
    rows: to - from - 1,
    deadLetters: 1,
    skipped: 0,
    bytes: 100,
    filePrefixes: [],
    payload: '{}',
    nowMs: 2,
    letters: { place: 'topic', of: [{ partition: 0, offsets: [from] }] },
    ...overrides,
  };
}

const end = (partitionId: number) => node.log.watermarks(partitionId)!.highWatermark;
const stagedEnd = async () => (await metadata.tables.positions(topicId))[0]!.stagedEnd;

describe.each([
  ['local', true],
  ['object store', false],
])('%s', (_name, onDisk) => {
  test('batches and stage enter together, beside others', async () => {
    const { letters, orders } = await start(onDisk);
    const produced = node.log.append([testItem({ partitionId: orders })]);
    const outcome = await node.log.appendWithStage(
      [testItem({ partitionId: letters }), testItem({ partitionId: letters })],
      stage(0, 10),
    );
    expect(outcome).toMatchObject({ kind: 'staged' });
    expect((await produced)[0]).toMatchObject({ errorCode: 0, baseOffset: 0 });
    expect([end(letters), end(orders), await stagedEnd()]).toEqual([2, 1, 10]);
    expect(await metadata.tables.openLetters(topicId)).toEqual([
      { partition: 0, count: 1, end: 1 },
    ]);
  });

  test('once only, whatever is staged again', async () => {
    const { letters, orders } = await start(onDisk);
    const again = (request: StageRequest) =>
      node.log.appendWithStage([testItem({ partitionId: letters })], request);
    expect(await again(stage(0, 10))).toMatchObject({ kind: 'staged' });
    expect(await again(stage(0, 10))).toMatchObject({ kind: 'duplicate' });
    expect(await again(stage(0, 10, { stageId: 'twin' }))).toMatchObject({ kind: 'duplicate' });
    expect(await again(stage(3, 10))).toMatchObject({ kind: 'refused' });
    // Read again from the start: the letter of offset 0 is known, so a stage that brings it anew is refused.
    await metadata.tables.rewind(topicId, 1, {
      positions: [{ partition: 0, offset: 0 }],
      nowMs: 3,
    });
    const request = stage(0, 10, { stageId: 'second', generation: 2 });
    expect(await again(request)).toMatchObject({ kind: 'refused' });
    const without = stage(0, 10, {
      stageId: 'third',
      generation: 2,
      letters: { place: 'topic', of: [] },
    });
    expect(await metadata.tables.stage(without)).toMatchObject({ kind: 'staged' });
    const [other] = await node.log.append([testItem({ partitionId: orders })]);
    expect(other).toMatchObject({ errorCode: 0, baseOffset: 0 });
    expect(end(letters)).toBe(1);
  });

  test('a topic of dead letters that is gone stages nothing', async () => {
    const { letters } = await start(onDisk);
    const items = [testItem({ partitionId: letters }), testItem({ partitionId: letters + 99 })];
    expect(await node.log.appendWithStage(items, stage(0, 10))).toEqual({ kind: 'unplaced' });
    expect([end(letters), await stagedEnd()]).toEqual([0, 0]);
  });

  test('a lost reply is asked for again, and found', async () => {
    const { letters } = await start(onDisk);
    lost = 2;
    const item = testItem({ partitionId: letters });
    expect(await node.log.appendWithStage([item], stage(0, 10))).toMatchObject({
      kind: 'duplicate',
      stageId: 's-0-10',
    });
    lost = 1;
    expect(await node.log.appendWithStage([item], stage(5, 10))).toMatchObject({ kind: 'refused' });
    expect([end(letters), await stagedEnd()]).toEqual([1, 10]);
  });

  test('more than a slab takes is refused, and nothing happens', async () => {
    const { letters } = await start(onDisk);
    const items = [1, 2].map(() => testItem({ partitionId: letters, bytes: 40_000 }));
    expect(await node.log.appendWithStage(items, stage(0, 10))).toMatchObject({
      kind: 'failed',
      errorCode: 10,
    });
    expect([end(letters), await stagedEnd()]).toEqual([0, 0]);
  });

  test('a topic that was deleted meanwhile hurts no neighbour', async () => {
    const { letters, orders } = await start(onDisk);
    const produced = node.log.append([testItem({ partitionId: orders })]);
    const stranger = stage(0, 10, { topicId: 'unknown' });
    const item = testItem({ partitionId: letters });
    expect(await node.log.appendWithStage([item], stranger)).toMatchObject({ kind: 'refused' });
    expect((await produced)[0]).toMatchObject({ errorCode: 0 });
    expect(end(letters)).toBe(0);
  });

  test('both are there after a restart', async () => {
    const { letters } = await start(onDisk);
    await node.log.appendWithStage([testItem({ partitionId: letters })], stage(0, 10));
    await node.stop();
    metadata.close();
    await open();
    expect([end(letters), await stagedEnd()]).toEqual([1, 10]);
  });
});
