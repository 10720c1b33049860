// The commit protocol against the real catalog: what each request asserts and carries, and what becomes of attempts
// whose outcome is unknown.
import { beforeEach, expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import { FloeError } from '../base/error.ts';
import { silentLogger } from '../base/log.ts';
import { seededIds, seededPrng } from '../base/prng.ts';
import type { CommitTableRequest, TableIdentifier } from '../catalog/catalog.ts';
import type { DataFile } from '../formats/iceberg/types.ts';
import { createTable } from './catalog-table.ts';
import { TableCommitter } from './commit.ts';
import type { PlannedStage } from './plan.ts';
import { wholeValue } from './system-columns.ts';
import { Bench } from './testing/bench.ts';
import { FaultyCatalog } from './testing/faulty.ts';
import { COMMIT_ID_SUMMARY, EPOCH_SUMMARY, RANGES_SUMMARY, readBack } from './watermark.ts';

const identifier: TableIdentifier = { namespace: ['kafka'], name: 't' };
const TOPIC = 'topic-1';
const clock = new ManualClock();
let bench: Bench;
let catalog: FaultyCatalog;
let requests: CommitTableRequest[];
let events: string[];
let tableUuid: string;

beforeEach(async () => {
  bench = await Bench.open({ clock });
  catalog = new FaultyCatalog(bench.catalog, seededPrng(1), async () => {});
  requests = [];
  events = [];
  const created = await createTable(catalog, {
    identifier,
    owner: { topicId: TOPIC, topicName: 't', shared: false },
    proposed: wholeValue('string'),
    layout: {
      partitionBy: [],
      sortBy: [],
      renames: [],
      formatVersion: 2,
      identifiers: [],
      properties: {},
    },
  });
  tableUuid = created.metadata['table-uuid'];
  const { commitTable } = catalog;
  catalog.commitTable = (table, request) => {
    requests.push(request);
    return commitTable.call(catalog, table, request);
  };
});

function committer(seed = 1): TableCommitter {
  const deps = {
    catalog,
    warehouse: bench.warehouse,
    clock,
    prng: seededPrng(seed),
    ids: seededIds(seededPrng(seed)),
    logger: silentLogger,
    settings: {
      'table.commit.attempts': 3,
      'table.retry.first.ms': 1,
      'table.retry.max.ms': 2,
    },
  };
  return new TableCommitter(deps, { identifier, topicId: TOPIC, role: 'data', tableUuid });
}

const file = (path: string): DataFile => ({
  content: 0,
  filePath: `${bench.store.uri}/${path}`,
  fileFormat: 'PARQUET',
  specId: 0,
  partition: [],
  recordCount: 5,
  fileSizeInBytes: 10,
  metrics: {
    columnSizes: new Map(),
    valueCounts: new Map(),
    nullValueCounts: new Map(),
    nanValueCounts: new Map(),
    lowerBounds: new Map(),
    upperBounds: new Map(),
  },
});

const stage = (sequence: number, start: number, end: number, files = 1): PlannedStage => ({
  sequence,
  schemaId: 0,
  ranges: [{ partition: 0, start, end }],
  files: Array.from({ length: files }, (_, n) => file(`f${sequence}-${n}.parquet`)),
});

async function run(one: TableCommitter, stages: PlannedStage[], epoch = 1) {
  const committed = one.commit({
    stages,
    epoch,
    maxPartitions: 100,
    onFiles: async (prefixes) => void events.push(`files ${prefixes.length}`),
    onFilesSettled: async (prefixes) => void events.push(`settled ${prefixes.length}`),
    onAttempt: async (sequences) => void events.push(`attempt ${sequences.join()}`),
  });
  committed.catch(() => {});
  for (let n = 0; n < 20; n += 1) await clock.advance(5);
  return committed;
}

const manifests = async () => {
  const keys: string[] = [];
  for await (const { key } of bench.store.list('')) if (key.endsWith('.avro')) keys.push(key);
  return keys;
};

test('T2, T3: a commit carries watermark, summary of what changed, tag; and asserts uuid, main, schema', async () => {
  const one = committer();
  expect(await run(one, [stage(1, 0, 10)])).toMatchObject({
    kind: 'committed',
    sequences: [1],
    files: 1,
  });
  await run(one, [stage(1, 0, 10), stage(2, 10, 12)]);
  const metadata = await bench.load('t');
  const head = metadata.snapshots!.at(-1)!;
  expect(head.summary).toMatchObject({ [EPOCH_SUMMARY]: '1', [RANGES_SUMMARY]: '0:10-12' });
  expect(readBack(metadata)).toMatchObject({
    kind: 'at',
    watermark: {
      commitId: head.summary![COMMIT_ID_SUMMARY],
      snapshotId: head['snapshot-id'],
      sequenceNumber: head['sequence-number'],
      topics: new Map([[TOPIC, new Map([[0, 12]])]]),
    },
  });
  expect(metadata.refs?.['floe-watermark']).toMatchObject({
    'snapshot-id': head['snapshot-id'],
    type: 'tag',
  });
  expect(requests[1]!.requirements).toEqual([
    { type: 'assert-table-uuid', uuid: tableUuid },
    {
      type: 'assert-ref-snapshot-id',
      ref: 'main',
      'snapshot-id': metadata.snapshots![0]!['snapshot-id'],
    },
    { type: 'assert-current-schema-id', 'current-schema-id': 0 },
  ]);
  expect(events.slice(0, 3)).toEqual(['files 2', 'attempt 1', 'settled 2']);
  // Nothing new, no commit.
  const before = requests.length;
  expect(await run(one, [stage(2, 10, 12)])).toMatchObject({
    kind: 'committed',
    files: 0,
    sequences: [2],
  });
  expect(requests.length).toBe(before);
});

test('T4: after a 409 the table is loaded again and the commit derived afresh', async () => {
  const loads = catalog.calls.load;
  catalog.faults = { ...calm, raced: 0, conflict: 1 };
  const failing = run(committer(), [stage(1, 0, 10)]);
  await expect(failing).rejects.toMatchObject({ code: 'conflict' });
  expect(catalog.calls.load - loads).toBe(3);
  // Refused answers are proof: their manifests are gone (T5).
  expect(await manifests()).toEqual([]);
  expect(events.filter((one) => one.startsWith('settled'))).toHaveLength(3);
});

test('T5: an attempt without an answer keeps its files until the history proves it in', async () => {
  catalog.faults = { ...calm, lostReply: 1 };
  const one = committer();
  const outcome = await run(one, [stage(1, 0, 10)]);
  expect(outcome).toMatchObject({ kind: 'committed', sequences: [1], files: 1 });
  expect(requests).toHaveLength(1);
  const metadata = await bench.load('t');
  expect(metadata.snapshots).toHaveLength(1);
  expect(await manifests()).toHaveLength(2);
});

test('T5: what fails after the catalog said yes is no refusal: the files stay', async () => {
  const one = committer();
  const committed = one.commit({
    stages: [stage(1, 0, 10)],
    epoch: 1,
    maxPartitions: 100,
    onFiles: async () => {},
    // As a store says whose credentials were changed, or whose lease has gone.
    onFilesSettled: () => Promise.reject(new FloeError('conflict', 'not now')),
    onAttempt: async () => {},
  });
  expect(await committed).toMatchObject({ kind: 'committed', sequences: [1], files: 1 });
  expect(await manifests()).toHaveLength(2);
  expect(requests).toHaveLength(1);
});

test('T5: or out, which is when main has moved past what it asserted', async () => {
  catalog.faults = { ...calm, late: 1 };
  const one = committer();
  await expect(run(one, [stage(1, 0, 10)])).rejects.toMatchObject({ code: 'timeout' });
  expect(await manifests()).toHaveLength(6);
  catalog.faults = undefined;
  expect(await run(one, [stage(1, 0, 10)])).toMatchObject({ kind: 'committed', sequences: [1] });
  // Nothing is proven while the head is the parent they asserted; the next look finds them refused.
  await catalog.deliver();
  await run(one, [stage(2, 10, 20)]);
  const metadata = await bench.load('t');
  expect(metadata.snapshots).toHaveLength(2);
  expect(await manifests()).toHaveLength(4);
});

test('T4: one’s own late success is no reason to commit again', async () => {
  catalog.faults = { ...calm, late: 1 };
  await expect(run(committer(), [stage(1, 0, 10)])).rejects.toMatchObject({ code: 'timeout' });
  catalog.faults = undefined;
  await catalog.deliver();
  // Another process, which knows nothing of the attempts.
  expect(await run(committer(9), [stage(1, 0, 10)], 2)).toMatchObject({
    kind: 'committed',
    sequences: [1],
  });
  expect((await bench.load('t')).snapshots).toHaveLength(1);
});

test('T6: the coordinator of an older epoch stops', async () => {
  await run(committer(), [stage(1, 0, 10)], 5);
  expect(await run(committer(2), [stage(2, 10, 20)], 4)).toEqual({ kind: 'fenced', epoch: 5 });
});

test('T3: a table dropped and created again does not pass for the same', async () => {
  await bench.catalog.dropTable(identifier, { purge: false });
  await createTable(bench.catalog, {
    identifier,
    owner: { topicId: TOPIC, topicName: 't', shared: false },
    proposed: wholeValue('string'),
    layout: {
      partitionBy: [],
      sortBy: [],
      renames: [],
      formatVersion: 2,
      identifiers: [],
      properties: {},
    },
  });
  expect(await run(committer(), [stage(1, 0, 10)])).toMatchObject({ kind: 'replaced' });
  expect(requests).toHaveLength(0);
});

test('offsets without rows move the watermark and make no snapshot', async () => {
  const one = committer();
  expect(await run(one, [stage(1, 0, 10, 0)])).toMatchObject({ kind: 'committed', files: 0 });
  let metadata = await bench.load('t');
  expect(metadata.snapshots ?? []).toHaveLength(0);
  expect(readBack(metadata)).toMatchObject({ kind: 'at' });
  await run(one, [stage(2, 10, 20), stage(3, 20, 30, 0)]);
  metadata = await bench.load('t');
  expect(metadata.snapshots).toHaveLength(1);
  expect(readBack(metadata)).toMatchObject({
    watermark: { topics: new Map([[TOPIC, new Map([[0, 30]])]]) },
  });
});

test('what the catalog refuses for good is thrown, not tried again', async () => {
  catalog.commitTable = async () => {
    throw new FloeError('unauthorized', 'no');
  };
  await expect(run(committer(), [stage(1, 0, 10)])).rejects.toMatchObject({ code: 'unauthorized' });
  expect(await manifests()).toEqual([]);
});

const calm = { loadFails: 0, conflict: 0, lostRequest: 0, lostReply: 0, late: 0, raced: 0 };
