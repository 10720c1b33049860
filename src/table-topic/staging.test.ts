// The clock of a table's commits where partitions move between nodes.
import { expect, test } from 'vitest';
import { ManualClock } from '../base/clock.ts';
import type { Topic } from '../metadata/topics.ts';
import { TableProgress } from './progress.ts';
import { Signal } from './signal.ts';
import { type StagingDeps, type StagingTable, TableStaging } from './staging.ts';

const topic = { topicId: 'ab-000001', name: 't', partitions: [7], config: {}, version: 1 };

test('what a partition brings along that moves here is committed, though no record follows', async () => {
  const clock = new ManualClock();
  const marks = { logStartOffset: 0, highWatermark: 40, lastStableOffset: 40 };
  // The other node has staged all of it, as it was told to, and is gone before the next commit.
  const stored = [{ partition: 0, stagedEnd: 40, committedEnd: 0 }];
  const tables = { positions: async () => stored, openLetters: async () => [] };
  const log = { watermarks: () => marks, subscribe: () => () => {} };
  let moved = () => {};
  let here: readonly number[] = [];
  const placement = {
    lanesOf: () => here,
    lanesElsewhere: () => [0].filter((partition) => !here.includes(partition)),
    onChange: (listener: () => void) => {
      moved = listener;
      return () => {};
    },
  };
  const settings = { 'table.job.start.bytes': 1e6, 'table.staged.max.bytes': 1e9 };
  const deps = { clock, log, tables, placement, settings, lanes: 1 } as unknown as StagingDeps;
  const progress = new TableProgress(deps, topic as unknown as Topic);
  progress.setStagedEnd(0, 0);
  const staging = new TableStaging(deps, {
    topic,
    progress,
    session: { binding: { table: {} }, epoch: 1, record: { generation: 0 } },
    signal: new Signal(clock),
    mayStage: () => true,
  } as unknown as StagingTable);
  staging.open();
  here = [0];
  moved();
  // Looked at before the partition is taken in, it is nobody's.
  staging.rearm();
  expect(staging.dueInMs()).toBeUndefined();
  await staging.runWorthy();
  expect(staging.dueInMs()).toBeGreaterThan(0);
});
