import { expect, test } from 'vitest';
import type { DataFile, Schema, Snapshot, TableMetadata } from '../formats/iceberg/types.ts';
import { type PlannedStage, type PlanRequest, planCommit } from './plan.ts';
import {
  COMMIT_ID_SUMMARY,
  formatRanges,
  formatWatermark,
  NO_SNAPSHOT,
  offsetsUpTo,
  parseRanges,
  parseWatermark,
  RANGES_SUMMARY,
  readBack,
  WATERMARK_PROPERTY,
  type Watermark,
} from './watermark.ts';

const TOPIC = 'topic-1';
const UUID = 'table-1';

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [{ id: 1, name: 'a', required: false, type: 'int' }],
};

function snapshot(id: bigint, parent: bigint | undefined, own?: string): Snapshot {
  return {
    'snapshot-id': id,
    ...(parent === undefined ? {} : { 'parent-snapshot-id': parent }),
    'sequence-number': Number(id),
    'timestamp-ms': Number(id),
    'manifest-list': `m${id}`,
    summary: own === undefined ? {} : { [COMMIT_ID_SUMMARY]: own },
  };
}

function watermark(over: Partial<Watermark> = {}): Watermark {
  return {
    commitId: 'c1',
    topicId: TOPIC,
    epoch: 3,
    snapshotId: 1n,
    sequenceNumber: 1,
    topics: new Map([[TOPIC, new Map([[0, 10]])]]),
    ...over,
  };
}

function table(over: Partial<TableMetadata> & { mark?: Watermark; head?: bigint } = {}) {
  const { mark, head, ...rest } = over;
  return {
    'format-version': 2,
    'table-uuid': UUID,
    location: 'memory://floe/t',
    'last-sequence-number': 9,
    'last-updated-ms': 0,
    'last-column-id': 1,
    schemas: [schema],
    'current-schema-id': 0,
    'partition-specs': [{ 'spec-id': 0, fields: [] }],
    'default-spec-id': 0,
    'last-partition-id': 999,
    'sort-orders': [{ 'order-id': 0, fields: [] }],
    'default-sort-order-id': 0,
    properties: mark === undefined ? {} : { [WATERMARK_PROPERTY]: formatWatermark(mark) },
    ...(head === undefined
      ? {}
      : { 'current-snapshot-id': head, refs: { main: { 'snapshot-id': head, type: 'branch' } } }),
    ...rest,
  } as TableMetadata;
}

const file = (path: string, over: Partial<DataFile> = {}) =>
  ({ filePath: path, specId: 0, partition: [], ...over }) as DataFile;

function stage(sequence: number, ...ranges: [number, number, number][]): PlannedStage {
  return {
    sequence,
    schemaId: 0,
    ranges: ranges.map(([partition, start, end]) => ({ partition, start, end })),
    files: [file(`f${sequence}`)],
  };
}

const plan = (over: Partial<PlanRequest>) =>
  planCommit({
    metadata: table(),
    topicId: TOPIC,
    role: 'data',
    tableUuid: UUID,
    epoch: 3,
    stages: [],
    maxPartitions: 100,
    ...over,
  });

const committed = table({
  mark: watermark(),
  head: 1n,
  snapshots: [snapshot(1n, undefined, 'c1')],
});

test('T4: what the table holds is left out, the rest is chained onto it', () => {
  const result = plan({
    metadata: committed,
    stages: [stage(1, [0, 0, 10]), stage(2, [0, 10, 15], [1, 0, 4]), stage(3, [0, 15, 20])],
  });
  expect(result).toMatchObject({
    kind: 'commit',
    parent: 1n,
    done: [1],
    adding: [2, 3],
    ranges: [
      { partition: 0, start: 10, end: 20 },
      { partition: 1, start: 0, end: 4 },
    ],
  });
  expect(result.kind === 'commit' && [...result.topics.get(TOPIC)!]).toEqual([
    [0, 20],
    [1, 4],
  ]);
});

test('T2: nothing new, no commit', () => {
  expect(plan({ metadata: committed, stages: [stage(1, [0, 0, 10])] })).toMatchObject({
    kind: 'nothing',
    done: [1],
  });
  expect(plan({ stages: [] })).toMatchObject({ kind: 'nothing' });
});

test('T4: a range that doesn’t continue the table is discarded, with the table’s own offsets', () => {
  for (const ranges of [
    [0, 12, 20],
    [0, 5, 12],
  ] as [number, number, number][]) {
    expect(plan({ metadata: committed, stages: [stage(1, ranges)] })).toMatchObject({
      kind: 'discard',
      offsets: new Map([[0, 10]]),
    });
  }
  // A stage is committed whole or not at all, so one that is half there was made for another history.
  const torn = stage(1, [0, 0, 10], [1, 0, 5]);
  expect(plan({ metadata: committed, stages: [torn] })).toMatchObject({ kind: 'discard' });
});

test('T3: a table of another uuid is not ours', () => {
  expect(plan({ metadata: table({ 'table-uuid': 'other' }) })).toEqual({
    kind: 'replaced',
    tableUuid: 'other',
  });
});

test('T6: a higher epoch in the table stops us, but not that of a deleted namesake', () => {
  expect(plan({ metadata: committed, epoch: 2 })).toEqual({ kind: 'fenced', epoch: 3 });
  const mark = watermark({ topicId: 'gone', topics: new Map([['gone', new Map([[0, 10]])]]) });
  const metadata = table({ mark, head: 1n, snapshots: committed.snapshots! });
  expect(plan({ metadata, epoch: 1 }).kind).not.toBe('fenced');
});

test('T8: a dropped or changed column, a schema or spec that is gone: discarded and read again', () => {
  const now = (fields: Schema['fields']) =>
    table({ schemas: [schema, { ...schema, 'schema-id': 1, fields }], 'current-schema-id': 1 });
  const a = schema.fields[0]!;
  const stages = [stage(1, [0, 0, 10])];
  expect(plan({ metadata: now([{ ...a, name: 'renamed', type: 'long' }]), stages }).kind).toBe(
    'commit',
  );
  expect(plan({ metadata: now([]), stages })).toMatchObject({ reason: 'column "a" was dropped' });
  expect(plan({ metadata: now([{ ...a, type: 'string' }]), stages })).toMatchObject({
    reason: 'column "a" changed its type',
  });
  const required = { id: 2, name: 'b', required: true, type: 'int' } as const;
  expect(plan({ metadata: now([a, required]), stages })).toMatchObject({
    reason: 'column "b" is required now',
  });
  expect(plan({ stages: [{ ...stages[0]!, schemaId: 7 }] })).toMatchObject({ kind: 'discard' });
  const spec = { ...stages[0]!, files: [file('f', { specId: 4 })] };
  expect(plan({ stages: [spec] })).toMatchObject({ reason: 'partition spec 4 is gone' });
});

test('max.partitions.per.commit bounds a commit, but a single stage always goes', () => {
  const wide = (sequence: number, from: number, tuples: string[]) => ({
    ...stage(sequence, [0, from, from + 10]),
    files: tuples.map((tuple) => file(`${sequence}${tuple}`, { partition: [tuple] })),
  });
  const stages = [wide(1, 0, ['a', 'b', 'c']), wide(2, 10, ['a']), wide(3, 20, ['d'])];
  expect(plan({ stages, maxPartitions: 3 })).toMatchObject({ adding: [1, 2] });
  expect(plan({ stages, maxPartitions: 1 })).toMatchObject({ adding: [1] });
});

test('dead letters may leave holes: in between, records became rows', () => {
  const stages = [stage(5, [0, 14, 20])];
  expect(plan({ metadata: committed, stages, role: 'deadLetters' })).toMatchObject({
    kind: 'commit',
    ranges: [{ partition: 0, start: 14, end: 20 }],
  });
});

test('T2: reading back: own newest ancestor, expiry trusted, everything else a roll-back', () => {
  expect(readBack(table())).toEqual({ kind: 'fresh' });
  expect(readBack(committed)).toMatchObject({ kind: 'at' });
  // Foreign commits on top are welcome.
  const foreign = table({
    mark: watermark(),
    head: 2n,
    snapshots: [snapshot(1n, undefined, 'c1'), snapshot(2n, 1n)],
  });
  expect(readBack(foreign)).toMatchObject({ kind: 'at' });
  // Ours was expired: what is left is younger.
  const expired = table({ mark: watermark(), head: 2n, snapshots: [snapshot(2n, 1n)] });
  expect(readBack(expired)).toMatchObject({ kind: 'at' });
  // Rolled back to an older one of ours, to a foreign one from before, to nothing.
  const line = [snapshot(1n, undefined, 'c1'), snapshot(3n, 1n, 'c2')];
  const mark = watermark({ snapshotId: 3n, sequenceNumber: 3 });
  expect(readBack(table({ mark, head: 1n, snapshots: line }))).toMatchObject({
    kind: 'moved',
    ancestor: { 'snapshot-id': 1n },
  });
  expect(readBack(table({ mark, head: 1n, snapshots: [snapshot(1n, undefined)] }))).toMatchObject({
    kind: 'moved',
  });
  expect(readBack(table({ mark }))).toMatchObject({ kind: 'moved' });
  expect(plan({ metadata: table({ mark }) })).toMatchObject({ kind: 'moved' });
  // Offsets without rows so far: no snapshot is expected.
  const dry = watermark({ snapshotId: NO_SNAPSHOT, sequenceNumber: 0 });
  expect(readBack(table({ mark: dry }))).toMatchObject({ kind: 'at' });
});

test('the watermark survives its JSON, 64-bit ids included', () => {
  const mark = watermark({
    snapshotId: 9_007_199_254_740_993n,
    topics: new Map([
      [
        'x',
        new Map([
          [11, 5],
          [2, 2 ** 52],
        ]),
      ],
    ]),
  });
  expect(parseWatermark(formatWatermark(mark))).toEqual(mark);
  expect(() => parseWatermark('{}')).toThrow(/unreadable/);
  const ranges = [
    { partition: 0, start: 1, end: 4 },
    { partition: 12, start: 0, end: 2 },
  ];
  expect(parseRanges(formatRanges(ranges))).toEqual(ranges);
});

test('rewinding finds the newest range of each partition that history still has', () => {
  const own = (id: bigint, parent: bigint | undefined, ranges: string): Snapshot => ({
    ...snapshot(id, parent, `c${id}`),
    summary: { [COMMIT_ID_SUMMARY]: `c${id}`, [RANGES_SUMMARY]: ranges },
  });
  const metadata = table({
    head: 2n,
    snapshots: [own(1n, undefined, '0:0-5,1:0-3'), own(2n, 1n, '0:5-9'), own(3n, 2n, '0:9-12')],
  });
  expect(offsetsUpTo(metadata, TOPIC)).toEqual(
    new Map([
      [0, 9],
      [1, 3],
    ]),
  );
});
