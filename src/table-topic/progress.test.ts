import { expect, test } from 'vitest';
import type { Topic } from '../metadata/topics.ts';
import { type ProgressDeps, TableProgress } from './progress.ts';

const topic: Topic = {
  topicId: '00000000-0000-4000-8000-000000000001',
  name: 't',
  partitions: [7, 8],
  config: {},
  version: 1,
  createdMs: 0,
} as Topic;

test('what another node staged before its partition came here waits for a commit, whatever is known of its bytes', async () => {
  let stored = [
    { partition: 0, stagedEnd: 10, committedEnd: 10 },
    { partition: 1, stagedEnd: 5, committedEnd: 5 },
  ];
  const tables = { positions: async () => stored, openLetters: async () => [] };
  const progress = new TableProgress({ tables } as unknown as ProgressDeps, topic);
  expect(progress.hasStaged()).toBe(false);
  await progress.loadPositions();
  expect(progress.hasStaged()).toBe(false);
  stored = [stored[0]!, { partition: 1, stagedEnd: 45, committedEnd: 5 }];
  await progress.loadPositions();
  expect([progress.stagedBytes, progress.hasStaged()]).toEqual([0, true]);
  progress.committed(new Map([[1, 45]]), 100);
  expect(progress.hasStaged()).toBe(false);
  progress.setStagedEnd(0, 12);
  expect(progress.hasStaged()).toBe(true);
});
