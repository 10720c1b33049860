import { expect, test } from 'vitest';
import type { ObjectEntry } from '../../metadata/log.ts';
import { type CleanLook, groupRows, judge, sealedEnd } from './clean-choice.ts';

const row = (baseOffset: number, endOffset: number, bytes: number): ObjectEntry => ({
  partitionId: 1,
  objectId: 1,
  objectKey: 'x',
  baseOffset,
  endOffset,
  indexPosition: 0,
  indexLength: 0,
  bytes,
  recordCount: endOffset - baseOffset,
  runCount: 1,
  maxTimestamp: -1,
  commitNumber: 1,
});

/** 60 bytes compacted, 40 sealed since, 10 not yet sealed. */
const look: CleanLook = {
  policy: {
    minLagMs: 0,
    maxLagMs: Infinity,
    minDirtyRatio: 0.5,
    deleteRetentionMs: 0,
    segmentMs: 1_000,
    segmentBytes: 100,
  },
  nowMs: 10_000,
  logStart: 0,
  cleanableEnd: 110,
  rows: [row(0, 60, 60), row(60, 100, 40)],
  cleanEnd: 60,
  expiredBytes: 0,
  sizeBytes: 110,
  highWatermark: 110,
  oldestDirtyMs: 9_500,
  oldestUnsealedMs: 9_900,
};
const policy = (more: Partial<CleanLook['policy']>) => ({ policy: { ...look.policy, ...more } });

test.each<[string, Partial<CleanLook>, { clean?: boolean; roll?: boolean }]>([
  ['too little is dirty', {}, { clean: false, roll: false }],
  ['the ratio is passed', policy({ minDirtyRatio: 0.3 }), { clean: true }],
  ['any dirty byte will do', policy({ minDirtyRatio: 0 }), { clean: true }],
  ['a record waits too long', policy({ maxLagMs: 499 }), { clean: true }],
  ['a record may wait on', policy({ maxLagMs: 500 }), { clean: false }],
  [
    'nothing dirty may be touched yet',
    { ...policy({ minDirtyRatio: 0 }), cleanableEnd: 60 },
    { clean: false },
  ],
  ['tombstones count once their time has come', { expiredBytes: 30 }, { clean: true }],
  ['what waits unsealed is old', policy({ segmentMs: 99 }), { roll: true }],
  ['it may not wait, whatever the segment', policy({ maxLagMs: 99 }), { roll: true }],
  ['it is as large as a segment', policy({ segmentBytes: 10 }), { roll: true }],
  [
    'nothing is unsealed',
    { ...policy({ segmentBytes: 1 }), highWatermark: 100, sizeBytes: 100 },
    { roll: false },
  ],
])('%s', (_name, more, expected) => {
  expect(judge({ ...look, ...more })).toMatchObject(expected);
});

test('the dirty ratio is the share of bytes never compacted', () => {
  expect(judge(look).dirtyRatio).toBeCloseTo(0.4);
  expect(judge({ ...look, cleanEnd: 0 }).dirtyRatio).toBe(1);
  expect(sealedEnd(look)).toBe(100);
  expect(sealedEnd({ rows: [], logStart: 7 })).toBe(7);
});

test('neighbours are taken together up to a size, what is expired or too new is not', () => {
  const rows = [row(0, 10, 10), row(10, 20, 10), row(20, 30, 10), row(35, 40, 10), row(40, 50, 99)];
  const bounds = (logStart: number, end: number) =>
    groupRows(rows, { logStart, end, bytes: 20 }).map((group) =>
      group.map(({ baseOffset }) => baseOffset),
    );
  // A hole between rows (expired ones in between) ends a group.
  expect(bounds(0, 100)).toEqual([[0, 10], [20], [35], [40]]);
  expect(bounds(10, 36)).toEqual([[10, 20], [35]]);
});
